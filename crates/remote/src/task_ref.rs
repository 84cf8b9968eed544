//! Reference to the remote side of a session, stored in the session as a [`RemoteThread`].

use lango_domain::event::RemoteThread;
use serde_json::{Value, json};

use crate::a2a::{ContextId, TaskId, WireFormat};

/// The context of a session at the remote agent, and the task that waits for input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemoteTaskRef {
    pub context: Option<ContextId>,
    /// A task that waits for input of the user.
    pub task: Option<TaskId>,
}

impl RemoteTaskRef {
    pub fn from_thread(thread: &RemoteThread) -> Self {
        let value: Value = serde_json::from_str(thread.as_str()).unwrap_or_default();
        let context = value
            .get("context")
            .and_then(|id| ContextId::from_json(id, WireFormat::V1).ok());
        let task = value
            .get("task")
            .and_then(|id| TaskId::from_json(id, WireFormat::V1).ok());
        Self { context, task }
    }

    pub fn to_thread(&self) -> RemoteThread {
        let context = self.context.as_ref().map(ContextId::as_str);
        let task = self.task.as_ref().map(TaskId::as_str);
        RemoteThread::new(json!({ "context": context, "task": task }).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_refs_survive_a_round_trip() {
        let task_ref = RemoteTaskRef {
            context: Some(ContextId::new("c\"1")),
            task: Some(TaskId::new("t")),
        };
        assert_eq!(RemoteTaskRef::from_thread(&task_ref.to_thread()), task_ref);
        for invalid in [
            "",
            "null",
            "[]",
            "{\"context\":7}",
            "{\"context\":\"a\\u001b\"}",
        ] {
            assert_eq!(
                RemoteTaskRef::from_thread(&RemoteThread::new(invalid)),
                RemoteTaskRef::default(),
                "{invalid}"
            );
        }
    }
}
