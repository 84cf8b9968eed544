//! Whoever calls a tool in these tests.

use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_domain::{AgentName, ToolContext, ToolOutputSink};

/// A call of the librarian's for whoever sits at this machine.
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
