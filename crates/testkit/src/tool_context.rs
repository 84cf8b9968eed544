//! Contexts of tool calls.

use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_domain::{AgentName, ToolContext, ToolOutputSink};

/// Returns the context of a call of the librarian for the local principal.
pub fn tool_context() -> ToolContext {
    tool_context_for("librarian")
}

pub fn tool_context_for(agent: &str) -> ToolContext {
    ToolContext {
        session: SessionId::new("s"),
        principal: Principal::local(),
        turn: TurnId::new("t1"),
        agent: AgentName::new(agent).unwrap_or_else(|_| unreachable!("a well-formed name")),
        call: CallId::new("c1"),
        label: Default::default(),
        typed_addresses: Vec::new(),
        output_sink: ToolOutputSink::disconnected(),
        redactor: Default::default(),
    }
}
