//! Approval of tool calls by the user.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::AgentName;
use crate::event::{CallId, Decider, Principal, SessionId};
use crate::tool::Intent;

/// Asks whoever may decide. Ships for the terminal, HTTP and A2A; tests script it.
pub trait Approver: Send + Sync {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision>;
}

/// What exactly is about to happen.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalQuestion {
    /// The call that it is about; the approval events carry the same id.
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

/// How far a permission reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    Once,
    /// The very same call, for the rest of the session.
    SameCall,
    /// Calls that the intent's pattern fits, for the rest of the session.
    Pattern,
}
