//! One reply from a model: the request, the stream, and what it took.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use lango_domain::Label;
use lango_domain::event::{EventBody, Usage};
use lango_domain::markers::EMPTY_REPLY_REMINDER;
use lango_domain::model::{Fragment, Message, ModelError, ModelRequest};

use crate::agent_loop::AskMode;
use crate::driver::{ActiveAgent, Driver};
use crate::message_history::{self, HistoryReader, TokenBudget};
use crate::prepared_team::PreparedAgent;
use crate::reply::{ModelReply, ReplyCollector};
use crate::turn_error::TurnError;

type Fragments = BoxStream<'static, Result<Fragment, ModelError>>;

impl Driver {
    /// One reply. A request that is too long for the model is made again, once, with half the history.
    pub(crate) async fn call_model(
        &self,
        seat: &ActiveAgent,
        ask: AskMode,
    ) -> Result<ModelReply, TurnError> {
        let member = self
            .team
            .prepared_agent(&seat.agent)
            .ok_or_else(|| TurnError::internal("an agent is missing"))?;
        let room = member.budget(self.models.for_agent(&seat.agent).window());
        let room = TokenBudget {
            messages: self.calibration.to_estimated_tokens(&seat.agent, room),
            results: room,
        };
        self.spend().count_model_call();
        let (request, label) = self.model_request(seat, member, ask, room);
        let mut reply = match self.stream(seat, request).await? {
            Err(ModelError::TooLong) => {
                let half = TokenBudget {
                    messages: room.messages / 2,
                    results: room.results / 2,
                };
                self.stream(seat, self.model_request(seat, member, ask, half).0)
                    .await??
            }
            reply => reply?,
        };
        reply.label = label;
        Ok(reply)
    }

    /// What a reply took is counted however it ended.
    async fn stream(
        &self,
        seat: &ActiveAgent,
        request: ModelRequest,
    ) -> Result<Result<ModelReply, ModelError>, TurnError> {
        let (bytes, estimated) = self.team.request_size(&seat.agent, &request.messages);
        let fragments = self.models.for_agent(&seat.agent).stream(request);
        let mut collector = ReplyCollector::default();
        let read = self.read_fragments(seat, fragments, &mut collector).await;
        match collector.usage() {
            Some(usage) => {
                self.spend().count_usage(usage);
                self.calibration.learn(&seat.agent, estimated, usage.input);
                self.note(seat, EventBody::Usage(usage.clone())).await?;
            }
            None => {
                // What is not known is not free: the call is told, and its size guessed for the limit.
                self.spend()
                    .count_tokens((bytes + collector.bytes()) as u64 / 4);
                self.note(seat, EventBody::Usage(Usage::default())).await?;
            }
        }
        Ok(read?.and_then(|()| collector.finish(|id| self.log.unique_call_id(id))))
    }

    async fn read_fragments(
        &self,
        seat: &ActiveAgent,
        mut fragments: Fragments,
        into: &mut ReplyCollector,
    ) -> Result<Result<(), ModelError>, TurnError> {
        while let Some(fragment) = self.wait(fragments.next()).await? {
            let is_end = matches!(fragment, Ok(Fragment::Done));
            match fragment.and_then(|fragment| into.push(fragment)) {
                Ok(Some(text)) if seat.is_streamed => self.log.publish_delta(&seat.agent, text),
                Ok(_) => {}
                Err(error) => return Ok(Err(error)),
            }
            if is_end {
                break;
            }
        }
        Ok(Ok(()))
    }

    /// A pure function of the log and the team; with the label of all that is read.
    fn model_request(
        &self,
        seat: &ActiveAgent,
        member: &PreparedAgent,
        ask: AskMode,
        room: TokenBudget,
    ) -> (ModelRequest, Label) {
        let is_root = seat.agent == *self.team.root();
        let viewer = HistoryReader {
            agent: &seat.agent,
            turn: &self.log.turn,
            branch: &seat.branch,
            is_root,
        };
        let (mut messages, label) = self
            .log
            .read(|log| message_history::build_messages(log, viewer, room));
        if ask == AskMode::AfterEmptyReply {
            messages.push(Message::User(EMPTY_REPLY_REMINDER.to_owned()));
        }
        let (system, tools) = (Arc::clone(&member.system), Arc::clone(&member.declarations));
        (
            ModelRequest {
                agent: seat.agent.clone(),
                system,
                tools,
                messages,
            },
            label,
        )
    }
}
