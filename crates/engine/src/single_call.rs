//! A turn that consists of one tool call, without a language model: a step of a workflow.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use lango_domain::PlainResultFunction;
use lango_domain::event::{CallId, Usage};
use lango_domain::fence::{OUTPUT, unwrap_fence};
use lango_domain::markers::CALL_NOT_RUN;
use lango_domain::model::{
    Fragment, Message, Model, ModelError, ModelRequest, ToolCall, ToolCallResult,
};
use serde_json::Value;

use crate::agent_models::Models;
use crate::hooks::TurnHooks;
use crate::runner::{Runner, RunnerInner};

impl Runner {
    /// Returns a runner whose turns consist of this call alone, made by the owner of the tool. Returns
    /// `None` if the team has no such tool.
    pub fn single_call(&self, tool: &str, arguments: Value) -> Option<Self> {
        let owner = self.inner.team.owner(tool)?;
        let plain_result = self.inner.team.tool(owner, tool)?.plain_result();
        let team = self.inner.team.single_agent(owner.as_str())?;
        let model = SingleCallModel {
            tool: tool.to_owned(),
            arguments,
            plain_result,
        };
        Some(Self {
            inner: Arc::new(RunnerInner {
                team: Arc::new(team),
                models: Models {
                    default: Arc::new(model),
                    per_agent: BTreeMap::new(),
                },
                hooks: TurnHooks::default(),
                ..RunnerInner::clone(&self.inner)
            }),
        })
    }

    /// Returns true if a call has no effect. False for a tool that the team does not have.
    pub fn is_read_only(&self, tool: &str, arguments: &Value) -> bool {
        let team = &self.inner.team;
        let found = team.owner(tool).and_then(|owner| team.tool(owner, tool));
        found.is_some_and(|tool| tool.is_read_only(arguments))
    }

    /// Returns the names of all agents and of all tools.
    pub fn agents_and_tools(&self) -> (Vec<String>, Vec<String>) {
        self.inner.team.agents_and_tools()
    }
}

/// The answer of a turn of one call whose result is empty. An empty answer would be asked for once more.
pub const NO_OUTPUT: &str = "(no output)";

/// The model in the usage of turns that consist of one call.
pub const SINGLE_CALL_MODEL: &str = "none";

/// Makes one call, then answers with its result. So the call is approved, limited, labelled and logged
/// like any other.
pub(crate) struct SingleCallModel {
    pub tool: String,
    pub arguments: Value,
    /// Returns the result without what the tool adds for language models.
    pub plain_result: PlainResultFunction,
}

impl Model for SingleCallModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let has_not_run =
            |result: &ToolCallResult| !result.ok && result.content.text == CALL_NOT_RUN;
        let reply = match request.messages.last() {
            Some(Message::Results(results)) if !results.iter().any(has_not_run) => {
                // The result is fenced for language models, which read it as data.
                let texts = results.iter().map(|result| {
                    let text = &result.content.text;
                    let text = unwrap_fence(OUTPUT, text).unwrap_or_else(|| text.clone());
                    (self.plain_result)(&text).to_owned()
                });
                let text = texts.collect::<Vec<_>>().join("\n");
                Fragment::Text(match text.trim().is_empty() {
                    true => NO_OUTPUT.to_owned(),
                    false => text,
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
