//! Finding tasks, and finding out about those that nobody works on.

use std::sync::Arc;

use lango_domain::event::SessionId;
use lango_remote::a2a::{
    ErrorKind, ListTasks, Message, MessageId, ProtocolError, Role, TaskId, TaskPage, Wire,
};
use lango_store::TaskQuery;
use tokio_util::sync::CancellationToken;

use super::board::{Live, apply};
use super::desk::{Desk, not_found, shortened};
use super::kept::{Kept, trouble};
use super::worker::Found;

/// So many tasks are on a page unless fewer are asked for.
const PAGE: u32 = 50;

/// A task that was looked up.
pub(crate) struct Looked {
    pub kept: Kept,
    pub standing: Standing,
}

pub(crate) enum Standing {
    Over,
    Live(Arc<Live>),
    Waits,
    Elsewhere,
}

impl Desk {
    /// A task of the caller's. One that nobody works on though it should be is found out about.
    pub async fn look(&self, id: &TaskId) -> Result<Looked, ProtocolError> {
        let board = &self.gateway.a2a().board;
        let live = |live: Arc<Live>| Looked { kept: live.kept(), standing: Standing::Live(live) };
        if let Some(found) = board.get(self.caller.principal(), id.as_str()) {
            return Ok(live(found));
        }
        let row = self.gateway.store().task(self.caller.principal(), id.as_str()).await.map_err(trouble)?;
        let kept = Kept::read(row.ok_or_else(|| not_found(id))?)?;
        // It may have become live while the store was read.
        match board.get(self.caller.principal(), id.as_str()) {
            Some(found) => Ok(live(found)),
            None => self.find(kept).await,
        }
    }

    async fn find(&self, mut kept: Kept) -> Result<Looked, ProtocolError> {
        if kept.is_over() {
            return Ok(Looked { kept, standing: Standing::Over });
        }
        let message = kept.task.history.last().cloned();
        let message = message.unwrap_or_else(|| Message::text(MessageId::new("none"), Role::User, ""));
        let assignment = self.assignment(kept.clone(), message, CancellationToken::new());
        let standing = match self.gateway.a2a().worker.find(&self.gateway, &assignment).await {
            Found::Waits => Standing::Waits,
            Found::Elsewhere => Standing::Elsewhere,
            Found::Ended(steps) => {
                for step in steps {
                    apply(&mut kept, step, self.gateway.now());
                }
                self.gateway.store().keep_task(kept.row()).await.map_err(trouble)?;
                Standing::Over
            }
        };
        Ok(Looked { kept, standing })
    }

    pub async fn list(&self, list: ListTasks) -> Result<TaskPage, ProtocolError> {
        let most = list.page_size.unwrap_or(PAGE);
        let behind = list.page_token.as_deref().map(place_in_list).transpose()?;
        let query = TaskQuery {
            principal: self.caller.principal().clone(),
            session: list.context.as_ref().map(|context| SessionId::new(context.as_str())),
            state: list.state.map(|state| state.as_str(Wire::V1).to_owned()),
            changed_after: list.changed_after,
            behind,
            most: most as usize + 1,
        };
        let (mut rows, total) = self.gateway.store().tasks(query).await.map_err(trouble)?;
        let has_more = rows.len() > most as usize;
        rows.truncate(most as usize);
        let last = rows.last().filter(|_| has_more);
        let next_page_token = last.map(|row| format!("{}~{}", row.updated, row.id)).unwrap_or_default();
        let mut tasks = Vec::with_capacity(rows.len());
        for row in rows {
            let live = self.gateway.a2a().board.get(self.caller.principal(), &row.id);
            let kept = match live {
                Some(live) => live.kept(),
                None => self.find(Kept::read(row)?).await?.kept,
            };
            let mut task = shortened(kept.task, Some(list.history.unwrap_or(0)));
            if !list.with_artifacts {
                task.artifacts.clear();
            }
            tasks.push(task);
        }
        let total_size = u32::try_from(total).unwrap_or(u32::MAX);
        let page_size = u32::try_from(tasks.len()).unwrap_or(most);
        Ok(TaskPage { tasks, next_page_token, page_size, total_size })
    }

    /// Whether the task is the caller's.
    pub async fn owns(&self, id: &TaskId) -> Result<(), ProtocolError> {
        self.look(id).await.map(drop)
    }
}

/// A place in a list, as `nextPageToken` told it.
fn place_in_list(token: &str) -> Result<(jiff::Timestamp, String), ProtocolError> {
    let read = token.split_once('~').and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    read.ok_or_else(|| {
        ProtocolError::new(ErrorKind::InvalidParams, "this page token is not one that was given here")
            .about("field", "pageToken")
    })
}
