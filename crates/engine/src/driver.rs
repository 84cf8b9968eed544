//! The dull part: asks the model, carries calls out, writes down what happened. Every decision is the machine's.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, join_all};
use futures::stream::{BoxStream, FuturesOrdered};
use lango_domain::AgentName;
use lango_domain::event::{Author, Body, Branch, ToolCode, TransferOutcome};
use lango_domain::model::{Call, Fragment, Message, ModelError, ModelRequest};
use lango_domain::seams::{Approver, RemoteAgent, RemoteTask};
use tokio_util::sync::CancellationToken;

use crate::calibration::Calibration;
use crate::crew::{Crew, Member};
use crate::dispatch::ToolAnswer;
use crate::failure::{Failure, panic_words};
use crate::limits::{Limits, Spent};
use crate::plan::Action;
use crate::record::Record;
use crate::reply::{Collector, Reply};
use crate::runner::Models;
use crate::view::{self, Viewer};
use crate::work::{Ask, CarriedOut, Delegated, Outcome, Said, Step, Work};

/// Said to a model whose reply was empty; no part of the log.
pub const ASK_AGAIN: &str = "Your last reply was empty. Answer in words now.";

/// Everything that one turn runs with.
pub(crate) struct Driver {
    pub crew: Arc<Crew>,
    pub models: Models,
    pub remotes: BTreeMap<AgentName, Arc<dyn RemoteAgent>>,
    pub approver: Option<Arc<dyn Approver>>,
    pub limits: Limits,
    pub calibration: Arc<Calibration>,
    pub record: Record,
    pub stop: Stop,
    pub request: String,
    pub spent: Mutex<Spent>,
    pub delegations: AtomicUsize,
    /// Calls that were refused in this turn.
    pub denied: Mutex<Vec<Call>>,
    /// Questions to the user come one after the other.
    pub approvals: tokio::sync::Mutex<()>,
}

/// Where an agent works: its branch of the log, and whether its words reach the user as they come.
pub(crate) struct Seat {
    pub agent: AgentName,
    pub branch: Branch,
    pub is_shown: bool,
}

/// A transfer that was accepted and written down.
struct Delegation {
    call: Call,
    task: Option<String>,
    report_back: bool,
    seat: Seat,
}

impl Driver {
    /// One agent's work, from the first question to its model to the outcome.
    pub fn work<'a>(&'a self, seat: &'a Seat) -> BoxFuture<'a, Result<Outcome, Failure>> {
        async move {
            let mut work = Work::new(&self.crew, &seat.agent);
            loop {
                self.stop.check()?;
                let step = work.next(&self.limits, &self.spent());
                match step {
                    Step::AskModel(ask) => work.replied(self.ask(seat, ask).await?, ask),
                    Step::CarryOut { said, actions } => {
                        work.carried_out(self.carry_out(seat, said, actions).await?)
                    }
                    Step::Finish(outcome) => return Ok(outcome),
                    Step::GiveUp(failure) => return Err(failure),
                }
            }
        }
        .boxed()
    }

    /// Waits for something, unless the turn is stopped first.
    pub async fn wait<T>(&self, something: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.stop.token.cancelled() => Err(self.stop.cause()),
            done = something => Ok(done),
        }
    }

    /// One reply. A request that is too long for the model is made again, once, with half the history.
    async fn ask(&self, seat: &Seat, ask: Ask) -> Result<Reply, Failure> {
        let member = self.crew.member(&seat.agent).ok_or_else(|| Failure::internal("an agent is missing"))?;
        let budget = member.budget(self.models.of(&seat.agent).window());
        let budget = self.calibration.estimated(&seat.agent, budget);
        self.spent().count_model_call();
        match self.stream(seat, self.model_request(seat, member, ask, budget)).await? {
            Err(ModelError::TooLong) => {
                Ok(self.stream(seat, self.model_request(seat, member, ask, budget / 2)).await??)
            }
            reply => Ok(reply?),
        }
    }

    /// What a reply took is counted however it ended.
    async fn stream(&self, seat: &Seat, request: ModelRequest) -> Result<Result<Reply, ModelError>, Failure> {
        let estimated = self.crew.estimate(&seat.agent, &request.messages);
        let fragments = self.models.of(&seat.agent).stream(request);
        let mut collector = Collector::default();
        let read = self.read(seat, fragments, &mut collector).await;
        match collector.usage() {
            Some(usage) => {
                self.spent().count_usage(usage);
                self.calibration.learn(&seat.agent, estimated, usage.input);
                self.keep(seat, vec![Body::Usage(usage.clone())]).await?;
            }
            None => self.spent().count_tokens(collector.bytes() as u64 / 4),
        }
        Ok(read?.and_then(|()| collector.finish(|id| self.record.fresh_id(id))))
    }

    async fn read(
        &self,
        seat: &Seat,
        mut fragments: Fragments,
        into: &mut Collector,
    ) -> Result<Result<(), ModelError>, Failure> {
        while let Some(fragment) = self.wait(fragments.next()).await? {
            let is_end = matches!(fragment, Ok(Fragment::Done));
            match fragment.and_then(|fragment| into.take(fragment)) {
                Ok(Some(text)) if seat.is_shown => self.record.show(&seat.agent, text),
                Ok(_) => {}
                Err(error) => return Ok(Err(error)),
            }
            if is_end {
                break;
            }
        }
        Ok(Ok(()))
    }

    /// A pure function of the log and the team.
    fn model_request(&self, seat: &Seat, member: &Member, ask: Ask, budget: usize) -> ModelRequest {
        let is_root = seat.agent == *self.crew.root();
        let viewer = Viewer { agent: &seat.agent, turn: &self.record.turn, branch: &seat.branch, is_root };
        let mut messages = self.record.read(|log| view::messages(log, viewer, budget));
        if ask == Ask::Again {
            messages.push(Message::User(ASK_AGAIN.to_owned()));
        }
        let (system, tools) = (Arc::clone(&member.system), Arc::clone(&member.declarations));
        ModelRequest { agent: seat.agent.clone(), system, tools, messages }
    }

    /// Calls first, side by side; then transfers (B54).
    async fn carry_out(&self, seat: &Seat, said: Said, actions: Vec<Action>) -> Result<CarriedOut, Failure> {
        let delegations = self.write_down(seat, said, &actions).await?;
        self.answer_calls(seat, &actions).await?;
        let handed_back = actions.iter().find_map(|action| match action {
            Action::HandBack { reason, .. } => reason.clone(),
            _ => None,
        });
        let finished = join_all(delegations.iter().map(|delegation| self.delegate(seat, delegation))).await;
        Ok(CarriedOut { delegated: finished.into_iter().collect::<Result<_, _>>()?, handed_back })
    }

    /// A call is in the log before it has an effect.
    async fn write_down(
        &self,
        seat: &Seat,
        said: Said,
        actions: &[Action],
    ) -> Result<Vec<Delegation>, Failure> {
        let mut bodies: Vec<Body> = said.thoughts.into_iter().map(Body::Thought).collect();
        let mut delegations = Vec::new();
        if !said.note.trim().is_empty() {
            bodies.push(Body::Note { text: said.note });
        }
        for action in actions {
            match action {
                Action::Run(call) | Action::Refuse { call, .. } | Action::HandBack { call, .. } => {
                    let (id, tool, args) = (call.id.clone(), call.name.clone(), call.arguments.clone());
                    bodies.push(Body::ToolCall { id, tool, args });
                }
                Action::Delegate { call, to, task, report_back } => {
                    let number = self.delegations.fetch_add(1, Ordering::Relaxed) + 1;
                    let into = seat.branch.delegation(to, number);
                    let (id, to, task, report_back) =
                        (call.id.clone(), to.clone(), task.clone(), *report_back);
                    let child = Seat {
                        agent: to.clone(),
                        branch: into.clone(),
                        is_shown: seat.is_shown && !report_back,
                    };
                    delegations.push(Delegation {
                        call: call.clone(),
                        task: task.clone(),
                        report_back,
                        seat: child,
                    });
                    bodies.push(Body::Transfer { id, to, task, report_back, into });
                }
            }
        }
        if !delegations.is_empty() {
            self.spent().count_round();
        }
        self.keep(seat, bodies).await?;
        Ok(delegations)
    }

    /// Side by side; written down in the order of the calls.
    async fn answer_calls(&self, seat: &Seat, actions: &[Action]) -> Result<(), Failure> {
        let mut running: FuturesOrdered<_> =
            actions.iter().filter_map(|action| self.answer(seat, action)).collect();
        while let Some(body) = running.next().await {
            self.keep(seat, vec![body?]).await?;
        }
        Ok(())
    }

    fn answer<'a>(
        &'a self,
        seat: &'a Seat,
        action: &'a Action,
    ) -> Option<BoxFuture<'a, Result<Body, Failure>>> {
        let at_once =
            |call: &Call, answer: ToolAnswer| futures::future::ready(Ok(answer.into_body(call))).boxed();
        match action {
            Action::Delegate { .. } => None,
            Action::Refuse { call, code, why } => {
                Some(at_once(call, self.cap(ToolAnswer::failed(*code, why))))
            }
            Action::HandBack { call, .. } => {
                Some(at_once(call, ToolAnswer::Worked("handed back".to_owned())))
            }
            Action::Run(call) => Some(self.run_soundly(seat, call).boxed()),
        }
    }

    /// Whatever breaks around a tool, its call gets a result.
    async fn run_soundly(&self, seat: &Seat, call: &Call) -> Result<Body, Failure> {
        let answer = match AssertUnwindSafe(self.run_tool(seat, call)).catch_unwind().await {
            Ok(answer) => answer?,
            Err(payload) => {
                tracing::error!(detail = panic_words(&*payload), "something broke around a tool");
                ToolAnswer::failed(ToolCode::Panicked, "something broke around this call")
            }
        };
        Ok(self.cap(answer).into_body(call))
    }

    /// The same work, one level down. Whatever happens there, the transfer gets exactly one result, and what ends the
    /// turn ends whatever runs beside it.
    async fn delegate(&self, seat: &Seat, delegation: &Delegation) -> Result<Delegated, Failure> {
        let child = &delegation.seat;
        let work = match self.crew.is_remote(&child.agent) {
            true => self.work_remotely(child, delegation.task.clone()).boxed(),
            false => self.work(child),
        };
        let done = AssertUnwindSafe(work).catch_unwind().await;
        let ended = match done.unwrap_or_else(|payload| Err(Failure::panicked(&*payload))) {
            Err(failure) if failure.ends_the_turn() => {
                Err(self.end_delegation(seat, delegation, failure).await)
            }
            Err(failure) => self.conclude(seat, delegation, Outcome::Failed(failure)).await,
            Ok(outcome) => self.conclude(seat, delegation, outcome).await,
        };
        ended.inspect_err(|failure| self.stop.because(failure.clone()))
    }

    async fn conclude(
        &self,
        seat: &Seat,
        delegation: &Delegation,
        outcome: Outcome,
    ) -> Result<Delegated, Failure> {
        let child = &delegation.seat;
        let (how, detail) = match &outcome {
            Outcome::Answered { text, .. } => {
                let text = text.clone();
                let said = if delegation.report_back { Body::Report { text } } else { Body::Answer { text } };
                self.keep(child, vec![said]).await?;
                (TransferOutcome::Answered, String::new())
            }
            Outcome::Rejected { reason } => {
                self.keep(child, vec![Body::Rejected { reason: reason.clone() }]).await?;
                (TransferOutcome::Rejected, reason.clone())
            }
            Outcome::Failed(failure) => {
                tracing::warn!(agent = %child.agent, code = %failure.code, detail = failure.detail, "a specialist failed");
                (TransferOutcome::Failed, failure.message.clone())
            }
        };
        let id = delegation.call.id.clone();
        self.keep(seat, vec![Body::TransferResult { id, outcome: how, detail }]).await?;
        Ok(Delegated { to: child.agent.clone(), report_back: delegation.report_back, outcome })
    }

    async fn end_delegation(&self, seat: &Seat, delegation: &Delegation, failure: Failure) -> Failure {
        let was_stopped = self.stop.token.is_cancelled();
        let (outcome, failure) = if was_stopped {
            (TransferOutcome::Cancelled, self.stop.cause())
        } else {
            (TransferOutcome::Failed, failure)
        };
        let (id, detail) = (delegation.call.id.clone(), failure.message.clone());
        let kept = self.keep(seat, vec![Body::TransferResult { id, outcome, detail }]).await;
        kept.err().unwrap_or(failure)
    }

    /// A specialist in another process: what it says is bounded, and a failure there is a result here.
    async fn work_remotely(&self, seat: &Seat, task: Option<String>) -> Result<Outcome, Failure> {
        let Some(remote) = self.remotes.get(&seat.agent) else {
            return Err(Failure::remote("it is not connected"));
        };
        let (session, principal) = (self.record.session.clone(), self.record.principal.clone());
        let request = self.request.clone();
        let mut pieces = remote.stream(RemoteTask { session, principal, request, task });
        let mut collector = Collector::default();
        while let Some(piece) = self.wait(pieces.next()).await? {
            let text = piece.map_err(|error| Failure::remote(&error.0))?;
            if let Some(text) = collector.take(Fragment::Text(text))?.filter(|_| seat.is_shown) {
                self.record.show(&seat.agent, text);
            }
        }
        collector.take(Fragment::Done)?;
        let reply = collector.finish(Clone::clone)?;
        match reply.rejection() {
            Some(reason) => Ok(Outcome::Rejected { reason }),
            None if reply.text.trim().is_empty() => Err(Failure::remote("it gave no answer")),
            None => Ok(Outcome::Answered { author: seat.agent.clone(), text: reply.text }),
        }
    }

    pub async fn keep(&self, seat: &Seat, bodies: Vec<Body>) -> Result<(), Failure> {
        self.record.keep(&Author::Agent(seat.agent.clone()), &seat.branch, bodies).await
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn was_denied(&self, call: &Call) -> bool {
        let denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        denied.iter().any(|before| before.is_same_as(call))
    }

    pub fn remember_denied(&self, call: &Call) {
        self.denied.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
    }
}

type Fragments = BoxStream<'static, Result<Fragment, ModelError>>;

/// Ends a turn from outside its work: the user, the clock, or a failure in another branch.
pub(crate) struct Stop {
    pub token: CancellationToken,
    cause: OnceLock<Failure>,
}

impl Stop {
    pub fn new(token: CancellationToken) -> Self {
        Self { token, cause: OnceLock::new() }
    }

    /// The first cause stands, the user's wish among them.
    pub fn because(&self, failure: Failure) {
        if !self.token.is_cancelled() {
            let _ = self.cause.set(failure);
        }
        self.token.cancel();
    }

    pub fn check(&self) -> Result<(), Failure> {
        if self.token.is_cancelled() { Err(self.cause()) } else { Ok(()) }
    }

    /// Why the turn was stopped; without a cause the user did it.
    pub fn cause(&self) -> Failure {
        self.cause.get().cloned().unwrap_or_else(Failure::cancelled)
    }
}
