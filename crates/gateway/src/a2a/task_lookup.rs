//! Finding tasks, and finding out about those that nobody works on.

use std::sync::Arc;

use lango_domain::event::{Principal, SessionId};
use lango_remote::a2a::{
    ErrorKind, ListTasks, Message, MessageId, ProtocolError, Role, Task, TaskId, TaskPage,
    WireFormat,
};
use lango_store::{TaskQuery, TaskRow};
use tokio_util::sync::CancellationToken;

use super::live_tasks::{LiveTask, apply};
use super::operations::{TaskOperations, not_found, truncate_history};
use super::stored_task::{StoredTask, store_error};
use super::worker::{AnswerRight, TaskAssignment, TaskRecovery};
use crate::gateway::Gateway;

/// So many tasks are on a page unless fewer are asked for.
const DEFAULT_PAGE_SIZE: u32 = 50;
/// And no more than fit into so many bytes, though always one.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// A task that was looked up.
pub(crate) struct TaskLookup {
    pub stored: StoredTask,
    pub activity: TaskActivity,
}

pub(crate) enum TaskActivity {
    Finished,
    Live(Arc<LiveTask>),
    AwaitingInput,
    OtherProcess,
}

/// A task of the principal's. One that nobody works on though it should be is found out about.
async fn load_task(
    gateway: &Gateway,
    principal: &Principal,
    id: &TaskId,
) -> Result<TaskLookup, ProtocolError> {
    let live = || gateway.a2a().live_tasks.get(principal, id.as_str());
    if let Some(live) = live() {
        return Ok(TaskLookup {
            stored: live.stored(),
            activity: TaskActivity::Live(live),
        });
    }
    let kept = load_stored_task(gateway, principal, id).await?;
    if kept.is_terminal() {
        return Ok(TaskLookup {
            stored: kept,
            activity: TaskActivity::Finished,
        });
    }
    // Found out about once, so that its end is told once.
    let _one = gateway.a2a().recovery_lock.lock().await;
    // It may have become live while the store was read, or have been found out about.
    if let Some(live) = live() {
        return Ok(TaskLookup {
            stored: live.stored(),
            activity: TaskActivity::Live(live),
        });
    }
    recover_task(gateway, load_stored_task(gateway, principal, id).await?).await
}

async fn load_stored_task(
    gateway: &Gateway,
    principal: &Principal,
    id: &TaskId,
) -> Result<StoredTask, ProtocolError> {
    let row = gateway
        .store()
        .task(principal, id.as_str())
        .await
        .map_err(store_error)?;
    StoredTask::from_row(row.ok_or_else(|| not_found(id))?)
}

async fn recover_task(
    gateway: &Gateway,
    mut kept: StoredTask,
) -> Result<TaskLookup, ProtocolError> {
    if kept.is_terminal() {
        return Ok(TaskLookup {
            stored: kept,
            activity: TaskActivity::Finished,
        });
    }
    let standing = match gateway
        .a2a()
        .worker
        .recover(gateway, &orphan_assignment(kept.clone()))
        .await
    {
        TaskRecovery::AwaitingInput => TaskActivity::AwaitingInput,
        TaskRecovery::OtherProcess => TaskActivity::OtherProcess,
        TaskRecovery::Ended(steps) => {
            for step in steps {
                apply(&mut kept, step, gateway.now());
            }
            gateway
                .store()
                .update_task(kept.to_row())
                .await
                .map_err(store_error)?;
            gateway
                .a2a()
                .push_sender
                .notify(gateway, &Arc::default(), kept.task.clone());
            TaskActivity::Finished
        }
    };
    Ok(TaskLookup {
        stored: kept,
        activity: standing,
    })
}

/// Nobody asks anything of a task that is only looked at.
fn orphan_assignment(kept: StoredTask) -> TaskAssignment {
    let message = kept.task.history.last().cloned();
    let message = message.unwrap_or_else(|| Message::text(MessageId::new("none"), Role::User, ""));
    let StoredTask {
        task,
        principal,
        session,
        turn,
        pending_call: asked,
        ..
    } = kept;
    let (answer, cancel) = (AnswerRight::NotAllowed, CancellationToken::new());
    TaskAssignment {
        principal,
        session,
        turn,
        answer_right: answer,
        pending_call: asked,
        task,
        message,
        cancel,
    }
}

/// Finds out about every task that should be worked on, of one principal or of all: processes that died left some.
pub(crate) async fn recover_orphaned_tasks(gateway: &Gateway, principal: Option<&Principal>) {
    let open = gateway.store().open_tasks(principal).await;
    let open =
        open.inspect_err(|trouble| tracing::error!(%trouble, "open tasks cannot be looked up"));
    for (principal, id) in open.unwrap_or_default() {
        if gateway.shutdown_started().is_cancelled() {
            return;
        }
        // What is wrong with one is told when it is asked for.
        let _ = load_task(gateway, &principal, &TaskId::new(id)).await;
    }
}

impl TaskOperations {
    pub async fn lookup(&self, id: &TaskId) -> Result<TaskLookup, ProtocolError> {
        load_task(&self.gateway, self.caller.principal(), id).await
    }

    pub async fn list_tasks(&self, list: ListTasks) -> Result<TaskPage, ProtocolError> {
        let most = list.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
        let behind = list
            .page_token
            .as_deref()
            .map(parse_page_token)
            .transpose()?;
        let query = TaskQuery {
            principal: self.caller.principal().clone(),
            session: list
                .context
                .as_ref()
                .map(|context| SessionId::new(context.as_str())),
            state: list
                .state
                .map(|state| state.as_str(WireFormat::V1).to_owned()),
            changed_after: list.changed_after,
            after: behind,
            limit: most as usize + 1,
        };
        // What is asked for by its state has to have the right one.
        recover_orphaned_tasks(&self.gateway, Some(&query.principal)).await;
        let (mut rows, total) = self
            .gateway
            .store()
            .tasks(query)
            .await
            .map_err(store_error)?;
        let mut has_more = rows.len() > most as usize;
        rows.truncate(most as usize);
        let (mut tasks, mut bytes, mut last) = (Vec::new(), 0, None);
        for row in rows {
            let place = format!("{}~{}", row.updated, row.id);
            if let Some(task) = self.list_item(row, &list)? {
                bytes += task.to_json(WireFormat::V1).to_string().len();
                if bytes > MAX_PAGE_BYTES && !tasks.is_empty() {
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
        Ok(TaskPage {
            tasks,
            next_page_token,
            page_size,
            total_size,
        })
    }

    /// A task as a list shows it; nothing where it went on since the store was asked, and no longer fits.
    fn list_item(&self, row: TaskRow, list: &ListTasks) -> Result<Option<Task>, ProtocolError> {
        let kept = match self
            .gateway
            .a2a()
            .live_tasks
            .get(self.caller.principal(), &row.id)
        {
            Some(live) => live.stored(),
            None => StoredTask::from_row(row)?,
        };
        let mut task = truncate_history(kept.task, Some(list.history.unwrap_or(0)));
        if !list.with_artifacts {
            task.artifacts.clear();
        }
        Ok(list
            .state
            .is_none_or(|state| state == task.status.state)
            .then_some(task))
    }

    /// Whether the task is the caller's.
    pub async fn check_owner(&self, id: &TaskId) -> Result<(), ProtocolError> {
        self.lookup(id).await.map(drop)
    }
}

/// A place in a list, as `nextPageToken` told it.
fn parse_page_token(token: &str) -> Result<(jiff::Timestamp, String), ProtocolError> {
    let read = token
        .split_once('~')
        .and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    read.ok_or_else(|| {
        ProtocolError::new(
            ErrorKind::InvalidParams,
            "this page token is not one that was given here",
        )
        .with_metadata("field", "pageToken")
    })
}
