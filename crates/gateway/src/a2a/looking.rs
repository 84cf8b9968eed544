//! Finding tasks, and finding out about those that nobody works on.

use std::sync::Arc;

use lango_domain::event::{Principal, SessionId};
use lango_remote::a2a::{
    ErrorKind, ListTasks, Message, MessageId, ProtocolError, Role, Task, TaskId, TaskPage, WireFormat,
};
use lango_store::{TaskQuery, TaskRow};
use tokio_util::sync::CancellationToken;

use super::board::{Live, apply};
use super::desk::{Desk, not_found, shortened};
use super::kept::{Kept, trouble};
use super::worker::{Answer, Assignment, Found};
use crate::gateway::Gateway;

/// So many tasks are on a page unless fewer are asked for.
const PAGE: u32 = 50;
/// And no more than fit into so many bytes, though always one.
const MOST_PAGE_BYTES: usize = 1024 * 1024;

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

/// A task of the principal's. One that nobody works on though it should be is found out about.
async fn look(gateway: &Gateway, principal: &Principal, id: &TaskId) -> Result<Looked, ProtocolError> {
    let live = || gateway.a2a().board.get(principal, id.as_str());
    if let Some(live) = live() {
        return Ok(Looked { kept: live.kept(), standing: Standing::Live(live) });
    }
    let kept = read(gateway, principal, id).await?;
    if kept.is_over() {
        return Ok(Looked { kept, standing: Standing::Over });
    }
    // Found out about once, so that its end is told once.
    let _one = gateway.a2a().settling.lock().await;
    // It may have become live while the store was read, or have been found out about.
    if let Some(live) = live() {
        return Ok(Looked { kept: live.kept(), standing: Standing::Live(live) });
    }
    find(gateway, read(gateway, principal, id).await?).await
}

async fn read(gateway: &Gateway, principal: &Principal, id: &TaskId) -> Result<Kept, ProtocolError> {
    let row = gateway.store().task(principal, id.as_str()).await.map_err(trouble)?;
    Kept::read(row.ok_or_else(|| not_found(id))?)
}

async fn find(gateway: &Gateway, mut kept: Kept) -> Result<Looked, ProtocolError> {
    if kept.is_over() {
        return Ok(Looked { kept, standing: Standing::Over });
    }
    let standing = match gateway.a2a().worker.find(gateway, &left_behind(kept.clone())).await {
        Found::Waits => Standing::Waits,
        Found::Elsewhere => Standing::Elsewhere,
        Found::Ended(steps) => {
            for step in steps {
                apply(&mut kept, step, gateway.now());
            }
            gateway.store().update_task(kept.row()).await.map_err(trouble)?;
            gateway.a2a().courier.tell(gateway, &Arc::default(), kept.task.clone());
            Standing::Over
        }
    };
    Ok(Looked { kept, standing })
}

/// Nobody asks anything of a task that is only looked at.
fn left_behind(kept: Kept) -> Assignment {
    let message = kept.task.history.last().cloned();
    let message = message.unwrap_or_else(|| Message::text(MessageId::new("none"), Role::User, ""));
    let Kept { task, principal, session, turn, asked, .. } = kept;
    let (answer, cancel) = (Answer::MayNot, CancellationToken::new());
    Assignment { principal, session, turn, answer, asked, task, message, cancel }
}

/// Finds out about every task that should be worked on, of one principal or of all: processes that died left some.
pub(crate) async fn settle(gateway: &Gateway, principal: Option<&Principal>) {
    let open = gateway.store().open_tasks(principal).await;
    let open = open.inspect_err(|trouble| tracing::error!(%trouble, "open tasks cannot be looked up"));
    for (principal, id) in open.unwrap_or_default() {
        if gateway.closing().is_cancelled() {
            return;
        }
        // What is wrong with one is told when it is asked for.
        let _ = look(gateway, &principal, &TaskId::new(id)).await;
    }
}

impl Desk {
    pub async fn look(&self, id: &TaskId) -> Result<Looked, ProtocolError> {
        look(&self.gateway, self.caller.principal(), id).await
    }

    pub async fn list(&self, list: ListTasks) -> Result<TaskPage, ProtocolError> {
        let most = list.page_size.unwrap_or(PAGE);
        let behind = list.page_token.as_deref().map(place_in_list).transpose()?;
        let query = TaskQuery {
            principal: self.caller.principal().clone(),
            session: list.context.as_ref().map(|context| SessionId::new(context.as_str())),
            state: list.state.map(|state| state.as_str(WireFormat::V1).to_owned()),
            changed_after: list.changed_after,
            behind,
            most: most as usize + 1,
        };
        // What is asked for by its state has to have the right one.
        settle(&self.gateway, Some(&query.principal)).await;
        let (mut rows, total) = self.gateway.store().tasks(query).await.map_err(trouble)?;
        let mut has_more = rows.len() > most as usize;
        rows.truncate(most as usize);
        let (mut tasks, mut bytes, mut last) = (Vec::new(), 0, None);
        for row in rows {
            let place = format!("{}~{}", row.updated, row.id);
            if let Some(task) = self.listed(row, &list)? {
                bytes += task.write(WireFormat::V1).to_string().len();
                if bytes > MOST_PAGE_BYTES && !tasks.is_empty() {
                    has_more = true;
                    break;
                }
                tasks.push(task);
            }
            last = Some(place);
        }
        let next_page_token = last.filter(|_| has_more).unwrap_or_default();
        let total_size = u32::try_from(total).unwrap_or(u32::MAX);
        let page_size = u32::try_from(tasks.len()).unwrap_or(most);
        Ok(TaskPage { tasks, next_page_token, page_size, total_size })
    }

    /// A task as a list shows it; nothing where it went on since the store was asked, and no longer fits.
    fn listed(&self, row: TaskRow, list: &ListTasks) -> Result<Option<Task>, ProtocolError> {
        let kept = match self.gateway.a2a().board.get(self.caller.principal(), &row.id) {
            Some(live) => live.kept(),
            None => Kept::read(row)?,
        };
        let mut task = shortened(kept.task, Some(list.history.unwrap_or(0)));
        if !list.with_artifacts {
            task.artifacts.clear();
        }
        Ok(list.state.is_none_or(|state| state == task.status.state).then_some(task))
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
