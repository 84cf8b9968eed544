//! Storage of A2A tasks.

use jiff::Timestamp;

use crate::event::{Principal, SessionId, TurnId};
use crate::session::StoreFuture;

/// Stores A2A tasks: owner, state and times in fields, the rest as an opaque text of the gateway.
/// Deleting a session deletes its tasks.
pub trait TaskStore: Send + Sync {
    /// Stores a new task, unless its message is repeated.
    fn create_task(&self, new: NewTask) -> StoreFuture<'_, TaskCreation>;

    /// Updates a task. Does nothing if the task was deleted.
    fn update_task(&self, row: TaskRow) -> StoreFuture<'_, ()>;

    /// Deletes a task that never started.
    fn delete_task<'a>(&'a self, principal: &'a Principal, id: &'a str) -> StoreFuture<'a, ()>;

    /// Returns a task of the principal.
    fn task<'a>(
        &'a self,
        principal: &'a Principal,
        id: &'a str,
    ) -> StoreFuture<'a, Option<TaskRow>>;

    /// Returns the matching tasks, most recently changed first, and their number without the cursor
    /// and the limit.
    fn tasks(&self, query: TaskQuery) -> StoreFuture<'_, (Vec<TaskRow>, usize)>;

    /// Returns owner and id of the unfinished tasks of one principal, or of all.
    fn open_tasks<'a>(
        &'a self,
        principal: Option<&'a Principal>,
    ) -> StoreFuture<'a, Vec<(Principal, String)>>;

    /// Adds or replaces a push config of a task. Returns false if the task already has `limit`
    /// others.
    fn upsert_push_config<'a>(
        &'a self,
        task: &'a str,
        config: PushConfigRow,
        limit: usize,
    ) -> StoreFuture<'a, bool>;

    fn push_configs<'a>(&'a self, task: &'a str) -> StoreFuture<'a, Vec<PushConfigRow>>;

    fn delete_push_config<'a>(&'a self, task: &'a str, id: &'a str) -> StoreFuture<'a, ()>;
}

/// A stored task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    pub id: String,
    pub principal: Principal,
    pub session: SessionId,
    /// The turn that works on the task, once it has started.
    pub turn: Option<TurnId>,
    pub state: String,
    /// True if the task has reached a final state.
    pub is_terminal: bool,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// The whole task, serialized by the caller.
    pub body: String,
}

/// A task to create.
#[derive(Clone, Debug)]
pub struct NewTask {
    pub row: TaskRow,
    /// The id of the message that creates the task.
    pub message: String,
    /// A message with the same id counts as repeated if it was received at or after this time.
    pub repeated_since: Timestamp,
    /// Maximum number of stored tasks per principal. The oldest finished ones are deleted for new
    /// ones.
    pub max_tasks: usize,
}

/// The result of creating a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskCreation {
    New,
    /// The message was received before and created this task.
    Repeated(Box<TaskRow>),
    /// The principal has too many unfinished tasks.
    TooMany,
}

/// A filter for a principal's tasks.
#[derive(Clone, Debug)]
pub struct TaskQuery {
    pub principal: Principal,
    pub session: Option<SessionId>,
    pub state: Option<String>,
    pub changed_after: Option<Timestamp>,
    /// Pagination cursor: only tasks after the one with this time and id.
    pub after: Option<(Timestamp, String)>,
    pub limit: usize,
}

/// A stored push notification config of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushConfigRow {
    pub id: String,
    pub body: String,
}
