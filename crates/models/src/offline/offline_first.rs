//! `agent.router = "offline-first"`: the offline router replaces the orchestrator's model call for
//! transfers that it is confident about.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use lango_domain::ReadableKinds;
use lango_domain::model::{Fragment, Model, ModelError, ModelRequest};

use super::orchestrator::{self, reasons_text, transfer};
use super::reply::OfflineReply;
use super::router::{OfflineRouter, RoutingDecision};
use super::task::OfflineTask;

/// The orchestrator's model, with the offline router in front of it.
pub struct OfflineFirst {
    pub model: Arc<dyn Model>,
    /// Minimum confidence of the router, from 0 to 1.
    pub confidence: f32,
}

impl Model for OfflineFirst {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        match self.shortcut(&request) {
            Some(reply) => stream::iter(
                reply
                    .into_fragments(request.messages.len())
                    .into_iter()
                    .map(Ok),
            )
            .boxed(),
            None => self.model.stream(request),
        }
    }

    fn window(&self) -> usize {
        self.model.window()
    }

    fn readable_kinds(&self) -> ReadableKinds {
        self.model.readable_kinds()
    }
}

impl OfflineFirst {
    /// Returns a transfer without a model call. Only for the first request of a session: later ones
    /// may refer to earlier messages, which only the model understands.
    fn shortcut(&self, request: &ModelRequest) -> Option<OfflineReply> {
        let assignment = OfflineTask::from_messages(&request.messages);
        if !assignment.completed_calls.is_empty() || !assignment.is_first {
            return None;
        }
        let router = OfflineRouter::from_prompt(&request.system);
        if !orchestrator::split_request(assignment.request, &router).is_empty() {
            return None;
        }
        let routing = router.route(assignment.request);
        match &routing.decision {
            RoutingDecision::Agent(agent) if routing.confidence >= self.confidence => {
                Some(transfer(
                    agent,
                    routing.task.as_deref(),
                    &format!("the model was not asked: {}", reasons_text(&routing)),
                ))
            }
            _ => None,
        }
    }
}
