//! What was done and who allowed it: a view of the events, which are the only place where it is written.

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

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub session: SessionId,
    pub agent: Author,
    pub tool: String,
    pub args: Value,
    pub level: Safety,
    /// The last that was said about permission; nothing for a call that needed none.
    pub decision: Option<(ApprovalState, Option<Decider>)>,
    /// Nothing for a call that has no result yet.
    pub outcome: Option<Result<(), Option<ToolCode>>>,
}

impl AuditEntry {
    /// What was decided, in one word, and whose decision it was.
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

    /// What came of it, in one word.
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
    /// The newest calls of the principal's sessions, or of one of them; newest first.
    pub async fn audit(
        &self,
        principal: &Principal,
        session: Option<&SessionId>,
        most: usize,
    ) -> Result<Vec<AuditEntry>, SqliteStoreError> {
        let (principal, session) = (principal.to_string(), session.map(ToString::to_string));
        self.read(move |connection| {
            let sql =
                "SELECT seq, turn, author, branch, at, body, name FROM events JOIN sessions ON id = session
                WHERE principal = ?1 AND (?2 IS NULL OR name = ?2) AND kind IN ('call', 'approval', 'result')
                ORDER BY session, seq";
            let mut query = connection.prepare(sql)?;
            let mut found = query.query(params![principal, session])?;
            let mut ledger = AuditBuilder::default();
            while let Some(row) = found.next()? {
                let event = event_rows::event(row, &SessionId::new(row.get::<_, String>(6)?));
                if let Some(event) = connection.check_row(row, event_rows::joined_event_name, event)? {
                    ledger.add(&event);
                }
            }
            Ok(ledger.into_newest(most))
        })
        .await
    }
}

/// Calls, and where each stands until its result is there.
#[derive(Default)]
struct AuditBuilder {
    entries: Vec<AuditEntry>,
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

    fn into_newest(mut self, most: usize) -> Vec<AuditEntry> {
        self.entries
            .sort_by_key(|entry| std::cmp::Reverse(entry.at));
        self.entries.truncate(most);
        self.entries
    }
}
