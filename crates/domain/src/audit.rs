//! The audit log of tool calls and approvals: a fold over events, which are its only record.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::Safety;
use crate::event::{
    ApprovalState, Author, CallId, Decider, Event, EventBody, SessionId, ToolCode, TurnId,
};

/// A tool call with its approval and outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub session: SessionId,
    pub agent: Author,
    pub tool: String,
    pub args: Value,
    pub level: Safety,
    /// The last approval state. `None` if the call needed no approval.
    pub decision: Option<(ApprovalState, Option<Decider>)>,
    /// `None` if the call has no result yet.
    pub outcome: Option<Result<(), Option<ToolCode>>>,
}

impl AuditEntry {
    /// Returns the decision and the decider, each as a word.
    pub fn decision(&self) -> (&'static str, Option<&'static str>) {
        let Some((state, by)) = self.decision else {
            return ("auto", Some("policy"));
        };
        let word = match (state, by) {
            (ApprovalState::Approved, Some(Decider::Policy)) => "auto",
            (ApprovalState::Approved, _) => "approved",
            (ApprovalState::Denied, _) => "denied",
            (ApprovalState::TimedOut, _) => "timed_out",
            (ApprovalState::NobodyThere, _) => "nobody_there",
            (ApprovalState::Interrupted, _) => "interrupted",
            (ApprovalState::Asked, _) => "asked",
        };
        let by = by.map(|by| match by {
            Decider::User => "user",
            Decider::Yes => "--yes",
            Decider::Rule => "rule",
            Decider::Policy => "policy",
            Decider::Grant => "session",
        });
        (word, by)
    }

    /// Returns the outcome as a word: `open`, `ok`, or the error code.
    pub fn outcome_code(&self) -> String {
        match &self.outcome {
            None => "open".to_owned(),
            Some(Ok(())) => "ok".to_owned(),
            Some(Err(code)) => {
                let code = code.and_then(|code| serde_json::to_value(code).ok());
                code.as_ref()
                    .and_then(Value::as_str)
                    .unwrap_or("failed")
                    .to_owned()
            }
        }
    }
}

/// Collects audit entries from events in order.
#[derive(Default)]
pub struct AuditBuilder {
    entries: Vec<AuditEntry>,
    /// Indexes into `entries` of calls without a result.
    open: HashMap<(SessionId, TurnId, CallId), usize>,
}

impl AuditBuilder {
    pub fn add(&mut self, event: &Event) {
        let key = |id: &CallId| (event.session.clone(), event.turn.clone(), id.clone());
        match &event.body {
            EventBody::ToolCall { id, tool, args } => {
                self.open.insert(key(id), self.entries.len());
                self.entries.push(AuditEntry {
                    at: event.at,
                    session: event.session.clone(),
                    agent: event.author.clone(),
                    tool: tool.clone(),
                    args: args.clone(),
                    level: Safety::Safe,
                    decision: None,
                    outcome: None,
                });
            }
            EventBody::Approval {
                id,
                level,
                state,
                by,
                ..
            } => {
                if let Some(entry) = self
                    .open
                    .get(&key(id))
                    .and_then(|at| self.entries.get_mut(*at))
                {
                    entry.level = *level;
                    entry.decision = Some((*state, *by));
                }
            }
            EventBody::ToolResult { id, ok, code, .. } => {
                if let Some(entry) = self
                    .open
                    .remove(&key(id))
                    .and_then(|at| self.entries.get_mut(at))
                {
                    entry.outcome = Some(if *ok { Ok(()) } else { Err(*code) });
                }
            }
            _ => {}
        }
    }

    /// Returns the newest entries, newest first.
    pub fn into_newest(mut self, limit: usize) -> Vec<AuditEntry> {
        self.entries
            .sort_by_key(|entry| std::cmp::Reverse(entry.at));
        self.entries.truncate(limit);
        self.entries
    }
}
