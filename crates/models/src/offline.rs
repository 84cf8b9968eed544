//! The built-in offline model: no network, no key, no neural network. It routes with weights
//! trained from committed examples and with the team's routing table, and acts through the phrases
//! of the tools.

mod addressee;
mod concepts;
pub mod features;
mod lexer;
mod offline_first;
mod orchestrator;
mod phrase;
mod phrase_plan;
mod reply;
mod router;
mod routing_table;
mod small_talk;
mod specialist;
mod task;
mod token_kinds;
pub mod weights;
mod words;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use lango_domain::AgentName;
use lango_domain::markers::{REJECT_MARKER, TRANSFER_TOOL};
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest};

use reply::OfflineReply;
use task::OfflineTask;

pub use offline_first::OfflineFirst;
pub use router::{OfflineRouter, RankedCandidate, Routing, RoutingDecision};

/// The provider id of the offline model.
pub const PROVIDER: &str = "offline";
/// The model name of the offline model.
pub const MODEL: &str = "phrases";
/// One-line description of the offline model.
pub const OFFLINE_DESCRIPTION: &str =
    "built in, no neural network: routes requests and follows set phrases";

/// Explains how to connect a language model.
pub const CONNECT_HINT: &str = "To connect a language model, set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start \
Ollama on this machine.";

/// A size like that of other models; the offline model reads only the last messages.
pub const WINDOW: usize = 128_000;

pub struct OfflineModel;

impl Model for OfflineModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let fragments = reply(&request).into_fragments(request.messages.len());
        stream::iter(fragments.into_iter().map(Ok)).boxed()
    }

    fn window(&self) -> usize {
        WINDOW
    }
}

/// Appends the offered inquiry to an answer for the user, unless the request was rejected.
fn with_inquiry(
    reply: OfflineReply,
    assignment: &OfflineTask<'_>,
    is_orchestrator: bool,
) -> OfflineReply {
    let answers_user = is_orchestrator || assignment.task.is_none();
    match (reply, assignment.inquiry) {
        (OfflineReply::Text(text), Some(question))
            if answers_user && !text.starts_with(REJECT_MARKER) && !text.contains(question) =>
        {
            OfflineReply::Text(format!("{text}\n\n{question}"))
        }
        (reply, _) => reply,
    }
}

fn reply(request: &ModelRequest) -> OfflineReply {
    let assignment = OfflineTask::from_messages(&request.messages);
    let is_orchestrator = request.tools.iter().any(|tool| tool.name == TRANSFER_TOOL);
    let reply = if is_orchestrator {
        orchestrator::reply(&assignment, &OfflineRouter::from_prompt(&request.system))
    } else {
        specialist::reply(&assignment, request, request.agent == *AgentName::SINGLE)
    };
    with_inquiry(reply, &assignment, is_orchestrator)
}
