//! Contexts of tool calls.

use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_domain::{AgentName, ToolContext, ToolOutputSink};

/// Returns the context of a call of the librarian for the local principal.
pub fn context() -> ToolContext {
    context_for("librarian")
}

pub fn context_for(agent: &str) -> ToolContext {
    ToolContext {
        session: SessionId::new("s"),
        principal: Principal::local(),
        turn: TurnId::new("t1"),
        agent: AgentName::new(agent).unwrap(),
        call: CallId::new("c1"),
        label: Default::default(),
        output_sink: ToolOutputSink::disconnected(),
    }
}
