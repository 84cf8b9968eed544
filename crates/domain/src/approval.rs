//! Approval of tool calls by the user.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::AgentName;
use crate::event::{CallId, Decider, Principal, SessionId};
use crate::tool::Intent;

/// Asks the user about a call. Implemented for the terminal, HTTP and A2A; scripted in tests.
pub trait Approver: Send + Sync {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision>;
}

/// A question about a call that is about to run.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalQuestion {
    /// The id of the call; the approval events have the same id.
    pub call: CallId,
    pub session: SessionId,
    pub principal: Principal,
    pub agent: AgentName,
    pub tool: String,
    pub args: Value,
    pub intent: Intent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    Approved { scope: ApprovalScope, by: Decider },
    Denied,
    TimedOut,
    NobodyThere,
}

/// The scope of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    Once,
    /// The very same call, for the rest of the session.
    SameCall,
    /// Calls that match the intent's pattern, for the rest of the session.
    Pattern,
}
