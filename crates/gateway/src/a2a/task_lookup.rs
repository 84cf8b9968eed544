//! Loads and lists tasks, and recovers orphaned ones: tasks that are not finished and not running.

use std::sync::Arc;

use lango_domain::event::{Principal, SessionId};
use lango_domain::tasks::{TaskQuery, TaskRow};
use lango_remote::a2a::{
    ErrorKind, ListTasks, Message, MessageId, ProtocolError, Role, Task, TaskId, TaskPage,
    WireFormat,
};
use tokio_util::sync::CancellationToken;

use super::live_tasks::{LiveTask, apply};
use super::operations::{TaskOperations, not_found, truncate_history};
use super::stored_task::{StoredTask, store_error};
use super::worker::{AnswerRight, TaskAssignment, TaskRecovery};
use crate::gateway::Gateway;

/// Default number of tasks on a page.
const DEFAULT_PAGE_SIZE: u32 = 50;
/// Maximum size of a page. A page has at least one task.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// A loaded task and its activity.
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

/// Loads a task of the principal. Recovers it if it is orphaned.
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
    let stored = load_stored_task(gateway, principal, id).await?;
    if stored.is_terminal() {
        return Ok(TaskLookup {
            stored,
            activity: TaskActivity::Finished,
        });
    }
    // Recover each task once, so that its end is published once.
    let _guard = gateway.a2a().recovery_lock.lock().await;
    // It may have become live or have been recovered while the store was read.
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
        .stores()
        .tasks
        .task(principal, id.as_str())
        .await
        .map_err(store_error)?;
    StoredTask::from_row(row.ok_or_else(|| not_found(id))?)
}

async fn recover_task(
    gateway: &Gateway,
    mut stored: StoredTask,
) -> Result<TaskLookup, ProtocolError> {
    if stored.is_terminal() {
        return Ok(TaskLookup {
            stored,
            activity: TaskActivity::Finished,
        });
    }
    let activity = match gateway
        .a2a()
        .worker
        .recover(gateway, &orphan_assignment(stored.clone()))
        .await
    {
        TaskRecovery::AwaitingInput => TaskActivity::AwaitingInput,
        TaskRecovery::OtherProcess => TaskActivity::OtherProcess,
        TaskRecovery::Ended(steps) => {
            for step in steps {
                apply(&mut stored, step, gateway.now());
            }
            gateway
                .stores()
                .tasks
                .update_task(stored.to_row())
                .await
                .map_err(store_error)?;
            gateway
                .a2a()
                .push_sender
                .notify(gateway, &Arc::default(), stored.task.clone());
            TaskActivity::Finished
        }
    };
    Ok(TaskLookup { stored, activity })
}

/// Returns the assignment for recovering a task. It has no new message and no right to answer.
fn orphan_assignment(stored: StoredTask) -> TaskAssignment {
    let message = stored.task.history.last().cloned();
    let message = message.unwrap_or_else(|| Message::text(MessageId::new("none"), Role::User, ""));
    stored.into_assignment(message, AnswerRight::NotAllowed, CancellationToken::new())
}

/// Recovers all orphaned tasks of one principal or of all. Processes that crashed leave such tasks.
pub(crate) async fn recover_orphaned_tasks(gateway: &Gateway, principal: Option<&Principal>) {
    let open = gateway.stores().tasks.open_tasks(principal).await;
    let open = open.inspect_err(|error| tracing::error!(%error, "cannot load open tasks"));
    for (principal, id) in open.unwrap_or_default() {
        if gateway.shutdown_started().is_cancelled() {
            return;
        }
        // Errors are reported when the task is requested.
        let _ = load_task(gateway, &principal, &TaskId::new(id)).await;
    }
}

impl TaskOperations {
    pub async fn lookup(&self, id: &TaskId) -> Result<TaskLookup, ProtocolError> {
        load_task(&self.gateway, self.caller.principal(), id).await
    }

    pub async fn list_tasks(&self, list: ListTasks) -> Result<TaskPage, ProtocolError> {
        let page_size = list.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
        let after = list
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
            after,
            limit: page_size as usize + 1,
        };
        // Orphaned tasks have an outdated state, which the query may filter by.
        recover_orphaned_tasks(&self.gateway, Some(&query.principal)).await;
        let (mut rows, total) = self
            .gateway
            .stores()
            .tasks
            .tasks(query)
            .await
            .map_err(store_error)?;
        let mut has_more = rows.len() > page_size as usize;
        rows.truncate(page_size as usize);
        let (mut tasks, mut bytes, mut last) = (Vec::new(), 0, None);
        for row in rows {
            let page_token = format!("{}~{}", row.updated, row.id);
            if let Some(task) = self.list_item(row, &list)? {
                bytes += task.to_json(WireFormat::V1).to_string().len();
                if bytes > MAX_PAGE_BYTES && !tasks.is_empty() {
                    has_more = true;
                    break;
                }
                tasks.push(task);
            }
            last = Some(page_token);
        }
        let next_page_token = last.filter(|_| has_more).unwrap_or_default();
        let total_size = u32::try_from(total).unwrap_or(u32::MAX);
        let page_size = u32::try_from(tasks.len()).unwrap_or(page_size);
        Ok(TaskPage {
            tasks,
            next_page_token,
            page_size,
            total_size,
        })
    }

    /// Returns a task as a list item, or `None` if its state has changed since the query and no longer
    /// matches.
    fn list_item(&self, row: TaskRow, list: &ListTasks) -> Result<Option<Task>, ProtocolError> {
        let stored = match self
            .gateway
            .a2a()
            .live_tasks
            .get(self.caller.principal(), &row.id)
        {
            Some(live) => live.stored(),
            None => StoredTask::from_row(row)?,
        };
        let mut task = truncate_history(stored.task, Some(list.history.unwrap_or(0)));
        if !list.with_artifacts {
            task.artifacts.clear();
        }
        Ok(list
            .state
            .is_none_or(|state| state == task.status.state)
            .then_some(task))
    }

    /// Returns an error unless the task belongs to the caller.
    pub async fn check_owner(&self, id: &TaskId) -> Result<(), ProtocolError> {
        self.lookup(id).await.map(drop)
    }
}

/// Parses a `nextPageToken` to a position in the list.
fn parse_page_token(token: &str) -> Result<(jiff::Timestamp, String), ProtocolError> {
    let position = token
        .split_once('~')
        .and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    position.ok_or_else(|| {
        ProtocolError::new(ErrorKind::InvalidParams, "invalid page token")
            .with_metadata("field", "pageToken")
    })
}
