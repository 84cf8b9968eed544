//! What the offline model says: words, or one call.

use lango_domain::event::{CallId, Usage};
use lango_domain::model::{Fragment, Thought, ToolCall};
use serde_json::Value;

use super::{MODEL, PROVIDER};

#[derive(Clone, Debug, PartialEq)]
pub enum OfflineReply {
    Text(String),
    Call {
        name: String,
        arguments: Value,
        /// Why, for whoever reads the events.
        reason: Option<String>,
    },
}

impl OfflineReply {
    /// The reply as a model streams it; `number` tells calls of one turn apart.
    pub fn into_fragments(self, number: usize) -> Vec<Fragment> {
        let mut fragments = Vec::new();
        match self {
            Self::Text(text) => fragments.push(Fragment::Text(text)),
            Self::Call {
                name,
                arguments,
                reason: because,
            } => {
                let thought = |text| Thought {
                    provider: PROVIDER.to_owned(),
                    text,
                    seal: None,
                    call: None,
                };
                fragments.extend(because.map(thought).map(Fragment::Thought));
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
