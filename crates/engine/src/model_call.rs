//! One model call: the request, the streamed reply, and its usage.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use lango_domain::event::{EventBody, Usage};
use lango_domain::markers::EMPTY_REPLY_REMINDER;
use lango_domain::model::{Fragment, Message, ModelError, ModelRequest};
use lango_domain::{Label, ReadableKinds};

use crate::agent_loop::AskMode;
use crate::driver::{ActiveAgent, Driver};
use crate::message_history::{self, HistoryReader, TokenBudget};
use crate::prepared_team::PreparedAgent;
use crate::reply::{ModelReply, ReplyCollector};
use crate::secrets::ShownText;
use crate::turn_error::TurnError;

type Fragments = BoxStream<'static, Result<Fragment, ModelError>>;

impl Driver {
    /// Calls the model. If the request is too long for it, retries once with half the history.
    pub(crate) async fn call_model(
        &self,
        active: &ActiveAgent,
        mode: AskMode,
    ) -> Result<ModelReply, TurnError> {
        let agent = self
            .team
            .prepared_agent(&active.agent)
            .ok_or_else(|| TurnError::internal("the agent is not in the team"))?;
        let window = self.models.for_agent(&active.agent).window();
        let tokens = agent.budget(window);
        let budget = TokenBudget {
            messages: self.calibration.to_estimated_tokens(&active.agent, tokens),
            results: tokens,
        };
        self.spend().count_model_call();
        let readable = self.models.for_agent(&active.agent).readable_kinds();
        let (request, label) = self.model_request(active, agent, mode, (budget, readable));
        let mut reply = match self.stream(active, request).await? {
            Err(ModelError::TooLong) => {
                let half = TokenBudget {
                    messages: budget.messages / 2,
                    results: budget.results / 2,
                };
                // Files may be what makes it too long, so they are left out too.
                let size = (half, ReadableKinds::NONE);
                let (request, _) = self.model_request(active, agent, mode, size);
                self.stream(active, request).await??
            }
            reply => reply?,
        };
        reply.label = label;
        Ok(reply)
    }

    /// Streams a reply. Its usage is counted, however the reply ends.
    async fn stream(
        &self,
        active: &ActiveAgent,
        request: ModelRequest,
    ) -> Result<Result<ModelReply, ModelError>, TurnError> {
        let (bytes, estimated) = self.team.request_size(&active.agent, &request.messages);
        let request = self.load_attachments(request).await?;
        let fragments = self.models.for_agent(&active.agent).stream(request);
        let mut collector = ReplyCollector::default();
        let read = self.read_fragments(active, fragments, &mut collector).await;
        match collector.usage() {
            Some(usage) => {
                self.spend().count_usage(usage);
                self.calibration
                    .learn(&active.agent, estimated, usage.input);
                self.note(active, EventBody::Usage(usage.clone())).await?;
            }
            None => {
                // Unknown usage is not free: the call is logged, and its size is estimated for the limit.
                self.spend()
                    .count_tokens((bytes + collector.bytes()) as u64 / 4);
                self.note(active, EventBody::Usage(Usage::default()))
                    .await?;
            }
        }
        let reply = read?.and_then(|()| collector.finish(|id| self.log.unique_call_id(id)));
        Ok(reply.map(|mut reply| {
            self.log.secrets.redact(&mut reply);
            reply
        }))
    }

    async fn read_fragments(
        &self,
        active: &ActiveAgent,
        mut fragments: Fragments,
        collector: &mut ReplyCollector,
    ) -> Result<Result<(), ModelError>, TurnError> {
        let mut shown = ShownText::new(&self.log.secrets);
        while let Some(fragment) = self.wait(fragments.next()).await? {
            let is_end = matches!(fragment, Ok(Fragment::Done));
            match fragment.and_then(|fragment| collector.push(fragment)) {
                Ok(text) => self.publish(active, text.and_then(|text| shown.push(text))),
                Err(error) => return Ok(Err(error)),
            }
            if is_end {
                break;
            }
        }
        self.publish(active, shown.finish());
        Ok(Ok(()))
    }

    /// Publishes text of an agent, if it is streamed to the user.
    pub(crate) fn publish(&self, active: &ActiveAgent, text: Option<String>) {
        if let Some(text) = text.filter(|_| active.is_streamed) {
            self.log.publish_delta(&active.agent, text);
        }
    }

    /// Returns the request, a pure function of the log and the team, and the joined label of everything
    /// in it.
    fn model_request(
        &self,
        active: &ActiveAgent,
        agent: &PreparedAgent,
        mode: AskMode,
        (budget, readable): (TokenBudget, ReadableKinds),
    ) -> (ModelRequest, Label) {
        let reader = HistoryReader {
            agent: &active.agent,
            turn: &self.log.turn,
            branch: &active.branch,
            is_root: active.agent == *self.team.root(),
            readable,
        };
        let (mut messages, label) = self
            .log
            .read(|log| message_history::build_messages(log, reader, budget));
        if mode == AskMode::AfterEmptyReply {
            messages.push(Message::User(EMPTY_REPLY_REMINDER.into()));
        }
        let mut request = ModelRequest {
            agent: active.agent.clone(),
            system: Arc::clone(&agent.system),
            tools: Arc::clone(&agent.declarations),
            messages,
        };
        // Events that are older than a secret may contain it, and so may instructions.
        self.log.secrets.redact(&mut request);
        (request, label)
    }
}
