//! A specialist's work for the root: begun by a transfer, ended by exactly one result.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::FutureExt;
use lango_domain::event::{CallId, Event, EventBody, RemoteThread, TransferOutcome, TurnId};
use lango_domain::model::Fragment;
use lango_domain::remote_agent::{RemotePiece, RemoteTask};
use lango_domain::{AgentName, Label};

use crate::agent_loop::{AgentOutcome, DelegationResult};
use crate::driver::{ActiveAgent, Delegation, Driver};
use crate::reply::ReplyCollector;
use crate::turn_error::TurnError;

impl Driver {
    /// The same work, one level down. Whatever happens there, the transfer gets exactly one result, and what ends the
    /// turn ends whatever runs beside it.
    pub(crate) async fn delegate(
        self: &Arc<Self>,
        seat: &ActiveAgent,
        delegation: &Delegation,
    ) -> Result<DelegationResult, TurnError> {
        let child = &delegation.active_agent;
        let work = match self.team.is_remote(&child.agent) {
            true => self.run_remote_agent(delegation).boxed(),
            false => self.run_agent(child),
        };
        let done = AssertUnwindSafe(work).catch_unwind().await;
        let ended = match done.unwrap_or_else(|payload| Err(TurnError::from_panic(&*payload))) {
            Err(failure) if failure.is_fatal() => {
                Err(self.end_delegation(seat, delegation, failure).await)
            }
            Err(failure) => {
                self.conclude(seat, delegation, AgentOutcome::Failed(failure))
                    .await
            }
            Ok(outcome) => self.conclude(seat, delegation, outcome).await,
        };
        ended.inspect_err(|failure| self.stop.stop_with(failure.clone()))
    }

    async fn conclude(
        &self,
        seat: &ActiveAgent,
        delegation: &Delegation,
        outcome: AgentOutcome,
    ) -> Result<DelegationResult, TurnError> {
        let child = &delegation.active_agent;
        let (said, how, detail, label) = match &outcome {
            AgentOutcome::Answered { text, label, .. } => {
                let text = text.clone();
                let said = if delegation.report_back {
                    EventBody::Report { text }
                } else {
                    EventBody::Answer { text }
                };
                (
                    Some(said),
                    TransferOutcome::Answered,
                    String::new(),
                    label.clone(),
                )
            }
            AgentOutcome::Rejected { reason, label } => {
                let said = EventBody::Rejected {
                    reason: reason.clone(),
                };
                (
                    Some(said),
                    TransferOutcome::Rejected,
                    reason.clone(),
                    label.clone(),
                )
            }
            AgentOutcome::Failed(failure) => {
                tracing::warn!(agent = %child.agent, code = %failure.code, detail = failure.detail, "a specialist failed");
                (
                    None,
                    TransferOutcome::Failed,
                    failure.message.clone(),
                    self.delegation_label(delegation),
                )
            }
        };
        let id = delegation.call.id.clone();
        let thread = delegation.thread().take();
        let result = EventBody::TransferResult {
            id,
            outcome: how,
            detail,
            thread,
        };
        // What belongs together, in one append: one flush of the disk instead of several.
        let said = said.map(|said| child.entry(&label, said));
        self.log
            .append(
                said.into_iter()
                    .chain([seat.entry(&label, result)])
                    .collect(),
            )
            .await?;
        Ok(DelegationResult {
            to: child.agent.clone(),
            report_back: delegation.report_back,
            outcome,
        })
    }

    async fn end_delegation(
        &self,
        seat: &ActiveAgent,
        delegation: &Delegation,
        failure: TurnError,
    ) -> TurnError {
        let was_stopped = self.stop.token.is_cancelled();
        let (outcome, failure) = if was_stopped {
            (TransferOutcome::Cancelled, self.stop.cause())
        } else {
            (TransferOutcome::Failed, failure)
        };
        let (id, detail, thread) = (
            delegation.call.id.clone(),
            failure.message.clone(),
            delegation.thread().take(),
        );
        let result = EventBody::TransferResult {
            id,
            outcome,
            detail,
            thread,
        };
        let kept = self
            .append(seat, &self.delegation_label(delegation), vec![result])
            .await;
        kept.err().unwrap_or(failure)
    }

    /// The label of words about a delegation: of its task, and of the remote agent that may have chosen them.
    fn delegation_label(&self, delegation: &Delegation) -> Label {
        let (agent, label) = (&delegation.active_agent.agent, delegation.label.clone());
        match self.team.is_remote(agent) {
            true => label.joined(&Label::untrusted(format!(
                "an answer of the remote agent {agent}"
            ))),
            false => label,
        }
    }

    /// A specialist in another process: what it says is bounded, and a failure there is a result here.
    async fn run_remote_agent(&self, delegation: &Delegation) -> Result<AgentOutcome, TurnError> {
        let seat = &delegation.active_agent;
        let Some(remote) = self.remotes.get(&seat.agent) else {
            return Err(TurnError::remote("it is not connected"));
        };
        if let Some(denied) = self.check_send(seat, delegation).await? {
            return Err(TurnError::remote(&denied));
        }
        let (session, principal) = (self.log.session.clone(), self.log.principal.clone());
        let (request, task) = (self.request.clone(), delegation.task.clone());
        let thread = self.log.read(|log| last_thread(log, &seat.agent));
        let mut pieces = remote.stream(RemoteTask {
            session,
            principal,
            request,
            task,
            thread,
        });
        let mut collector = ReplyCollector::default();
        while let Some(piece) = self.wait(pieces.next()).await? {
            let text = match piece.map_err(|error| TurnError::remote(&error.0))? {
                RemotePiece::Text(text) => text,
                RemotePiece::Thread(thread) => {
                    *delegation.thread() = Some(thread);
                    continue;
                }
            };
            if let Some(text) = collector
                .push(Fragment::Text(text))?
                .filter(|_| seat.is_streamed)
            {
                self.log.publish_delta(&seat.agent, text);
            }
        }
        collector.push(Fragment::Done)?;
        let reply = collector.finish(Clone::clone)?;
        match reply.rejection() {
            Some(reason) => Ok(AgentOutcome::Rejected {
                reason,
                label: self.delegation_label(delegation),
            }),
            None if reply.text.trim().is_empty() => Err(TurnError::remote("it gave no answer")),
            None => {
                let label = self.delegation_label(delegation);
                Ok(AgentOutcome::Answered {
                    author: seat.agent.clone(),
                    text: reply.text,
                    label,
                })
            }
        }
    }
}

/// Where an agent's last transfer in this session left it.
fn last_thread(log: &[Arc<Event>], agent: &AgentName) -> Option<RemoteThread> {
    let to_it = log.iter().filter_map(|event| match &event.body {
        EventBody::Transfer { id, to, .. } if to == agent => Some((&event.turn, id)),
        _ => None,
    });
    let to_it: HashSet<(&TurnId, &CallId)> = to_it.collect();
    log.iter().rev().find_map(|event| match &event.body {
        EventBody::TransferResult {
            id,
            thread: Some(thread),
            ..
        } if to_it.contains(&(&event.turn, id)) => Some(thread.clone()),
        _ => None,
    })
}
