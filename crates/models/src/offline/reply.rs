//! Replies of the offline model: a text or one call.

use lango_domain::event::{CallId, Usage};
use lango_domain::model::{Fragment, Thought, ToolCall};
use serde_json::Value;

use super::{MODEL, PROVIDER};

#[derive(Clone, Debug, PartialEq)]
pub enum OfflineReply {
    Text(String),
    /// The text explains why the request was not done.
    NotDone(String),
    Call {
        name: String,
        arguments: Value,
        /// The reason, recorded in the events.
        reason: Option<String>,
    },
}

impl OfflineReply {
    /// Returns the fragments of the reply; `number` makes the call id unique within a turn.
    pub fn into_fragments(self, number: usize) -> Vec<Fragment> {
        let mut fragments = Vec::new();
        match self {
            Self::Text(text) => fragments.push(Fragment::Text(text)),
            Self::NotDone(text) => fragments.extend([Fragment::Text(text), Fragment::NotDone]),
            Self::Call {
                name,
                arguments,
                reason,
            } => {
                let thought = |text| Thought {
                    provider: PROVIDER.to_owned(),
                    text,
                    seal: None,
                    call: None,
                };
                fragments.extend(reason.map(thought).map(Fragment::Thought));
                let id = CallId::new(format!("offline-{number}"));
                fragments.push(Fragment::Call(ToolCall {
                    id,
                    name,
                    arguments,
                }));
            }
        }
        let model = format!("{PROVIDER}/{MODEL}");
        fragments.push(Fragment::Usage(Usage {
            model,
            cost_usd: Some(0.0),
            ..Usage::default()
        }));
        fragments.push(Fragment::Done);
        fragments
    }
}
