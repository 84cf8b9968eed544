//! The audit log of tool calls and approvals. It is derived from the events, which are its only
//! record.

use std::collections::HashMap;

use jiff::Timestamp;
use lango_domain::Safety;
use lango_domain::event::{
    ApprovalState, Author, CallId, Decider, Event, EventBody, Principal, SessionId, ToolCode,
    TurnId,
};
use rusqlite::params;
use serde_json::Value;

use crate::error::SqliteStoreError;
use crate::event_rows;
use crate::store::SqliteStore;

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

impl SqliteStore {
    /// Returns the newest tool calls in one session of the principal, or in all, newest first.
    pub async fn audit(
        &self,
        principal: &Principal,
        session: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, SqliteStoreError> {
        let (principal, session) = (principal.to_string(), session.map(ToString::to_string));
        self.read(move |connection| {
            let sql = "SELECT seq, turn, author, branch, at, body, name FROM events
                JOIN sessions ON id = session
                WHERE principal = ?1 AND (?2 IS NULL OR name = ?2)
                AND kind IN ('call', 'approval', 'result')
                ORDER BY session, seq";
            let mut query = connection.prepare(sql)?;
            let mut rows = query.query(params![principal, session])?;
            let mut builder = AuditBuilder::default();
            while let Some(row) = rows.next()? {
                let event = event_rows::event(row, &SessionId::new(row.get::<_, String>(6)?));
                if let Some(event) =
                    connection.check_row(row, event_rows::joined_event_name, event)?
                {
                    builder.add(&event);
                }
            }
            Ok(builder.into_newest(limit))
        })
        .await
    }
}

/// Collects audit entries from events in order.
#[derive(Default)]
struct AuditBuilder {
    entries: Vec<AuditEntry>,
    /// Indexes into `entries` of calls without a result.
    open: HashMap<(SessionId, TurnId, CallId), usize>,
}

impl AuditBuilder {
    fn add(&mut self, event: &Event) {
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

    fn into_newest(mut self, limit: usize) -> Vec<AuditEntry> {
        self.entries
            .sort_by_key(|entry| std::cmp::Reverse(entry.at));
        self.entries.truncate(limit);
        self.entries
    }
}
