//! Delegations: each starts with a transfer and ends with exactly one result.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::FutureExt;
use lango_domain::content::MAX_ATTACHMENTS;
use lango_domain::event::{CallId, Event, EventBody, RemoteThread, TransferOutcome, TurnId};
use lango_domain::markers::CALL_NOT_RUN;
use lango_domain::model::Fragment;
use lango_domain::remote_agent::{RemotePiece, RemoteTask};
use lango_domain::{AgentName, Content, Label};

use crate::agent_loop::{AgentOutcome, DelegationResult};
use crate::driver::{ActiveAgent, Delegation, Driver};
use crate::recovery::has_run_nothing;
use crate::reply::ReplyCollector;
use crate::secrets::ShownText;
use crate::turn_error::TurnError;

impl Driver {
    /// Runs a delegation. Whatever happens in it, the transfer gets exactly one result. A fatal error
    /// also stops the delegations that run in parallel.
    pub(crate) async fn delegate(
        self: &Arc<Self>,
        active: &ActiveAgent,
        delegation: &Delegation,
    ) -> Result<DelegationResult, TurnError> {
        let child = &delegation.active_agent;
        let work = match self.team.is_remote(&child.agent) {
            true => self.run_remote_agent(delegation).boxed(),
            false => self.run_agent(child),
        };
        let outcome = AssertUnwindSafe(work).catch_unwind().await;
        let result = match outcome.unwrap_or_else(|payload| Err(TurnError::from_panic(&*payload))) {
            Err(failure) if failure.is_fatal() => {
                Err(self.end_delegation(active, delegation, failure).await)
            }
            Err(failure) => {
                self.conclude(active, delegation, AgentOutcome::Failed(failure))
                    .await
            }
            Ok(outcome) => self.conclude(active, delegation, outcome).await,
        };
        result.inspect_err(|failure| self.stop.stop_with(failure.clone()))
    }

    /// Appends the conclusion of a delegation and its result in one write.
    async fn conclude(
        &self,
        active: &ActiveAgent,
        delegation: &Delegation,
        outcome: AgentOutcome,
    ) -> Result<DelegationResult, TurnError> {
        let child = &delegation.active_agent;
        let result = EventBody::TransferResult {
            id: delegation.call.id.clone(),
            outcome: transfer_outcome(&outcome),
            detail: transfer_detail(&outcome),
            thread: delegation.thread().take(),
        };
        let (conclusion, label) = match &outcome {
            AgentOutcome::Answered { content, label, .. } if delegation.report_back => {
                (Some(EventBody::Report(content.clone())), label.clone())
            }
            AgentOutcome::Answered { content, label, .. } => {
                (Some(EventBody::Answer(content.clone())), label.clone())
            }
            AgentOutcome::Rejected { reason, label } => {
                let reason = reason.clone();
                (Some(EventBody::Rejected { reason }), label.clone())
            }
            AgentOutcome::Failed(failure) => {
                tracing::warn!(agent = %child.agent, code = %failure.code, detail = failure.detail, "a specialist failed");
                (None, self.delegation_label(delegation))
            }
        };
        let conclusion = conclusion.map(|body| child.entry(&label, body));
        let entries = conclusion.into_iter().chain([active.entry(&label, result)]);
        self.log.append(entries.collect()).await?;
        Ok(DelegationResult {
            to: child.agent.clone(),
            report_back: delegation.report_back,
            outcome,
        })
    }

    /// Appends the result of a delegation that ends the turn. Returns the error to end it with.
    async fn end_delegation(
        &self,
        active: &ActiveAgent,
        delegation: &Delegation,
        failure: TurnError,
    ) -> TurnError {
        let was_stopped = self.stop.token.is_cancelled();
        let (outcome, failure) = if was_stopped {
            (TransferOutcome::Cancelled, self.stop.cause())
        } else {
            (TransferOutcome::Failed, failure)
        };
        let can_start_again = self.suspend.is_cancelled() && self.has_run_nothing(delegation);
        let detail = match can_start_again {
            true => CALL_NOT_RUN.to_owned(),
            false => failure.message.clone(),
        };
        let (id, thread) = (delegation.call.id.clone(), delegation.thread().take());
        let result = EventBody::TransferResult {
            id,
            outcome,
            detail,
            thread,
        };
        let appended = self
            .append(active, &self.delegation_label(delegation), vec![result])
            .await;
        appended.err().unwrap_or(failure)
    }

    fn has_run_nothing(&self, delegation: &Delegation) -> bool {
        // What a remote agent did is not in the log.
        if self.team.is_remote(&delegation.active_agent.agent) {
            return false;
        }
        self.log.read(|log| {
            let of_turn = log.iter().filter(|event| event.turn == self.log.turn);
            let events: Vec<&Event> = of_turn.map(|event| &**event).collect();
            has_run_nothing(&events, &delegation.active_agent.branch)
        })
    }

    /// Returns the label of text about a delegation: that of its task, and of a remote agent that may
    /// have written the text.
    fn delegation_label(&self, delegation: &Delegation) -> Label {
        let (agent, label) = (&delegation.active_agent.agent, delegation.label.clone());
        match self.team.is_remote(agent) {
            true => label.joined(&Label::untrusted(format!(
                "an answer of the remote agent {agent}"
            ))),
            false => label,
        }
    }

    /// Runs a delegation to a remote agent. Its text is limited, and its errors become results.
    async fn run_remote_agent(&self, delegation: &Delegation) -> Result<AgentOutcome, TurnError> {
        let active = &delegation.active_agent;
        let Some(remote) = self.remotes.get(&active.agent) else {
            return Err(TurnError::remote("it is not connected"));
        };
        if let Some(denied) = self.check_send(active, delegation).await? {
            return Err(TurnError::remote(&denied));
        }
        let (session, principal) = (self.log.session.clone(), self.log.principal.clone());
        let (request, task) = (self.request.clone(), delegation.task.clone());
        let thread = self.log.read(|log| last_thread(log, &active.agent));
        let mut pieces = remote.stream(RemoteTask {
            session,
            principal,
            request,
            task,
            thread,
        });
        let (mut collector, mut attachments) = (ReplyCollector::default(), Vec::new());
        let mut shown = ShownText::new(&self.log.secrets);
        while let Some(piece) = self.wait(pieces.next()).await? {
            let text = match piece.map_err(|error| TurnError::remote(&error.0))? {
                RemotePiece::Text(text) => text,
                RemotePiece::Attachment(attachment) => {
                    if attachments.len() < MAX_ATTACHMENTS {
                        attachments.push(attachment);
                    }
                    continue;
                }
                RemotePiece::Thread(thread) => {
                    *delegation.thread() = Some(thread);
                    continue;
                }
            };
            let text = collector.push(Fragment::Text(text))?;
            self.publish(active, text.and_then(|text| shown.push(text)));
        }
        self.publish(active, shown.finish());
        collector.push(Fragment::Done)?;
        let mut reply = collector.finish(Clone::clone)?;
        self.log.secrets.redact(&mut reply);
        let (author, label) = (active.agent.clone(), self.delegation_label(delegation));
        if let Some(reason) = reply.rejection() {
            return Ok(AgentOutcome::Rejected { reason, label });
        }
        let text = reply.text;
        if text.trim().is_empty() && attachments.is_empty() {
            return Err(TurnError::remote("it gave no answer"));
        }
        let content = Content { text, attachments };
        Ok(AgentOutcome::Answered {
            author,
            content,
            label,
            not_done: None,
        })
    }
}

/// Returns the thread of the agent's last transfer in this session.
fn last_thread(log: &[Arc<Event>], agent: &AgentName) -> Option<RemoteThread> {
    let transfers = log.iter().filter_map(|event| match &event.body {
        EventBody::Transfer { id, to, .. } if to == agent => Some((&event.turn, id)),
        _ => None,
    });
    let transfers: HashSet<(&TurnId, &CallId)> = transfers.collect();
    log.iter().rev().find_map(|event| match &event.body {
        EventBody::TransferResult {
            id,
            thread: Some(thread),
            ..
        } if transfers.contains(&(&event.turn, id)) => Some(thread.clone()),
        _ => None,
    })
}

fn transfer_outcome(outcome: &AgentOutcome) -> TransferOutcome {
    match outcome {
        AgentOutcome::Answered { .. } => TransferOutcome::Answered,
        AgentOutcome::Rejected { .. } => TransferOutcome::Rejected,
        AgentOutcome::Failed(_) => TransferOutcome::Failed,
    }
}

fn transfer_detail(outcome: &AgentOutcome) -> String {
    match outcome {
        AgentOutcome::Answered { .. } => String::new(),
        AgentOutcome::Rejected { reason, .. } => reason.clone(),
        AgentOutcome::Failed(failure) => failure.message.clone(),
    }
}
