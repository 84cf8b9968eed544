//! Whether a call may run: what it would do, what the settings say about that, and whoever is there to be asked.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use lango_domain::event::{ApprovalState, Author, Body, Decider, Grant, ToolCode};
use lango_domain::model::Call;
use lango_domain::seams::{Decision, Question, Scope};
use lango_domain::{AgentName, Intent, Safety, Tool, ToolFailure};

use crate::dispatch::ToolAnswer;
use crate::driver::{Driver, Seat};
use crate::failure::Failure;
use crate::guard::{Verdict, covers};
use crate::taint;

/// What was decided about a call, as it is written down.
struct Decided {
    state: ApprovalState,
    by: Option<Decider>,
    grant: Option<Grant>,
}

impl Driver {
    /// Nothing when the call may run; else what its agent is told.
    pub(crate) async fn permission(
        &self,
        seat: &Seat,
        tool: &Tool,
        call: &Call,
    ) -> Result<Option<ToolAnswer>, Failure> {
        if !tool.tells_intent() && self.approval.lets_pass(tool.safety) {
            return Ok(None);
        }
        let intent = match self.intent(seat, tool, call).await {
            Ok(intent) => intent,
            Err(answer) => return Ok(Some(answer)),
        };
        let tainted_by = match intent.level {
            Safety::Dangerous => {
                let is_remote = |agent: &AgentName| self.crew.is_remote(agent);
                self.record.read(|log| taint::sources(log, &call.arguments, is_remote))
            }
            Safety::Safe | Safety::Moderate => Vec::new(),
        };
        match self.approval.judge(&tool.name, &intent) {
            // Whoever let such calls pass meant the user's own wishes, not those of a page.
            (Verdict::Auto, _) if !tainted_by.is_empty() => {
                self.ask_about(seat, call, intent, tainted_by).await
            }
            (Verdict::Auto, Decider::Policy) if intent.level == Safety::Safe => Ok(None),
            (Verdict::Auto, by) => {
                let decided = Decided { state: ApprovalState::Approved, by: Some(by), grant: None };
                self.write_decision(seat, call, &intent, decided).await
            }
            (Verdict::Deny, by) => {
                let decided = Decided { state: ApprovalState::Denied, by: Some(by), grant: None };
                self.write_decision(seat, call, &intent, decided).await
            }
            (Verdict::Ask, _) => self.ask_about(seat, call, intent, tainted_by).await,
        }
    }

    /// What the call would do. One that cannot work is not asked about: its agent is told why.
    async fn intent(&self, seat: &Seat, tool: &Tool, call: &Call) -> Result<Intent, ToolAnswer> {
        let telling = AssertUnwindSafe(tool.intent(self.context(seat, call), call.arguments.clone()));
        let told = tokio::time::timeout(self.limits.tool_time(), telling.catch_unwind());
        match self.wait(told).await {
            Ok(Ok(Ok(Ok(intent)))) => Ok(intent),
            Ok(Ok(Ok(Err(ToolFailure(why))))) => {
                Err(ToolAnswer::Failed { code: ToolCode::Failed, why, trust: tool.trust, advice: None })
            }
            Ok(Ok(Err(_panic))) => Err(ToolAnswer::failed(
                ToolCode::Panicked,
                format!("{} broke; this is a mistake in the tool", tool.name),
            )),
            Ok(Err(_elapsed)) => Err(ToolAnswer::failed(
                ToolCode::Timeout,
                format!("{} could not say in time what it would do", tool.name),
            )),
            Err(_stopped) => Err(self.interrupted()),
        }
    }

    /// One question at a time, so that a second call of the same kind knows the first answer.
    async fn ask_about(
        &self,
        seat: &Seat,
        call: &Call,
        mut intent: Intent,
        tainted_by: Vec<String>,
    ) -> Result<Option<ToolAnswer>, Failure> {
        let _turn = self.approvals.lock().await;
        if self.was_denied(call) {
            let why = "denied before; it stays denied in this turn";
            return Ok(Some(ToolAnswer::failed(ToolCode::Denied, why)));
        }
        let grants = self.record.grants(&call.name).await?;
        if tainted_by.is_empty() && grants.iter().any(|grant| covers(grant, &call.arguments, &intent)) {
            let decided = Decided { state: ApprovalState::Approved, by: Some(Decider::Grant), grant: None };
            return self.write_decision(seat, call, &intent, decided).await;
        }
        if !tainted_by.is_empty() {
            intent.shows =
                format!("CAREFUL: words of this call come from {}\n{}", tainted_by.join(", "), intent.shows);
        }
        let asked = Body::Approval {
            id: call.id.clone(),
            tool: call.name.clone(),
            level: intent.level,
            state: ApprovalState::Asked,
            shows: intent.shows.clone(),
            tainted_by,
            by: None,
            grant: None,
        };
        self.keep(seat, vec![asked]).await?;
        let decided = self.decision(seat, call, &intent).await;
        self.write_decision(seat, call, &intent, decided).await
    }

    /// A turn that ends while its question is open leaves it unanswered.
    async fn decision(&self, seat: &Seat, call: &Call, intent: &Intent) -> Decided {
        let Some(approver) = &self.approver else { return Decided::state(ApprovalState::NobodyThere) };
        let question = Question {
            call: call.id.clone(),
            principal: self.record.principal.clone(),
            session: self.record.session.clone(),
            agent: seat.agent.clone(),
            tool: call.name.clone(),
            args: call.arguments.clone(),
            intent: intent.clone(),
        };
        let _pause = self.pause.begin();
        let answer = tokio::time::timeout(self.approval.wait(), approver.ask(question));
        let decision = match self.wait(answer).await {
            Ok(answered) => answered.unwrap_or(Decision::TimedOut),
            Err(_stopped) => return Decided::state(ApprovalState::Interrupted),
        };
        match decision {
            Decision::Approved { scope, by } => {
                let grant = match scope {
                    Scope::Once => None,
                    Scope::SameCall => Some(Grant::SameCall(call.arguments.clone())),
                    Scope::Pattern => intent.pattern.clone().map(Grant::Pattern),
                };
                Decided { state: ApprovalState::Approved, by: Some(by), grant }
            }
            Decision::Denied => {
                Decided { state: ApprovalState::Denied, by: Some(Decider::User), grant: None }
            }
            Decision::TimedOut => Decided::state(ApprovalState::TimedOut),
            Decision::NobodyThere => Decided::state(ApprovalState::NobodyThere),
        }
    }

    /// Kept before the call has an effect; what was refused is remembered for the rest of the turn.
    async fn write_decision(
        &self,
        seat: &Seat,
        call: &Call,
        intent: &Intent,
        decided: Decided,
    ) -> Result<Option<ToolAnswer>, Failure> {
        let Decided { state, by, grant } = decided;
        let (id, tool, level, shows) = (call.id.clone(), call.name.clone(), intent.level, String::new());
        let body = Body::Approval { id, tool, level, state, shows, tainted_by: Vec::new(), by, grant };
        self.record.keep(&Author::Agent(seat.agent.clone()), &seat.branch, vec![body]).await?;
        let why = match (state, by) {
            (ApprovalState::Approved, _) => return Ok(None),
            (ApprovalState::Asked | ApprovalState::Interrupted, _) => return Ok(Some(self.interrupted())),
            (ApprovalState::Denied, Some(Decider::Rule | Decider::Policy)) => {
                "the user's settings do not allow this call"
            }
            (ApprovalState::Denied, _) => "the user denied this call",
            (ApprovalState::TimedOut, _) => "the question about this call was not answered in time",
            (ApprovalState::NobodyThere, _) => "nobody is there who could allow this call",
        };
        self.remember_denied(call);
        Ok(Some(ToolAnswer::failed(ToolCode::Denied, why)))
    }
}

impl Decided {
    fn state(state: ApprovalState) -> Self {
        Self { state, by: None, grant: None }
    }
}
