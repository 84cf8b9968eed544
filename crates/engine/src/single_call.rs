//! A turn that consists of one tool call, without a language model: a step of a workflow.

use futures::stream::{self, BoxStream, StreamExt};
use lango_domain::event::{CallId, Usage};
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest, ToolCall};
use serde_json::Value;

/// The model in the usage of turns that consist of one call.
pub const SINGLE_CALL_MODEL: &str = "none";

/// Makes one call, then answers with its result. So the call is approved, limited, labelled and logged
/// like any other.
pub(crate) struct SingleCallModel {
    pub tool: String,
    pub arguments: Value,
}

impl Model for SingleCallModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let reply = match request.messages.last() {
            Some(Message::Results(results)) => {
                let texts = results.iter().map(|result| result.content.text.as_str());
                let text = texts.collect::<Vec<_>>().join("\n");
                // An empty answer would be asked for once more.
                Fragment::Text(if text.trim().is_empty() {
                    "(no output)".to_owned()
                } else {
                    text
                })
            }
            _ => Fragment::Call(ToolCall {
                id: CallId::new("call"),
                name: self.tool.clone(),
                arguments: self.arguments.clone(),
            }),
        };
        let usage = Usage {
            model: SINGLE_CALL_MODEL.to_owned(),
            cost_usd: Some(0.0),
            ..Usage::default()
        };
        stream::iter([Ok(reply), Ok(Fragment::Usage(usage)), Ok(Fragment::Done)]).boxed()
    }

    /// Unlimited, since nothing is read.
    fn window(&self) -> usize {
        usize::MAX / 8
    }
}
