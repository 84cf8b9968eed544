//! Approval of tool calls: evaluates the policy and asks the approver.

mod outcome;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope};
use lango_domain::event::{ApprovalState, Decider, EventBody, Grant, ToolCode};
use lango_domain::markers::CALL_NOT_RUN;
use lango_domain::model::ToolCall;
use lango_domain::{
    Destination, Intent, Label, OutgoingData, Safety, Tool, ToolContext, ToolError,
};
use lango_text::sanitize::escape_hidden_chars;

use self::outcome::ApprovalOutcome;
use crate::approval_policy::{Verdict, grant_covers};
use crate::driver::{ActiveAgent, Delegation, Driver};
use crate::flow::{self, Concerns, Leak, UserText};
use crate::secrets::{ReferencedSecret, with_secrets};
use crate::tool_execution::{ToolOutcome, failure_origin};
use crate::turn_error::TurnError;

/// A call that is about to run.
#[derive(Clone, Copy)]
pub(crate) struct PendingCall<'a> {
    pub tool: &'a Tool,
    pub call: &'a ToolCall,
    pub context: &'a ToolContext,
    pub user_text: &'a UserText,
    /// The label of everything the agent had read when it made the call.
    pub read_label: &'a Label,
    /// The secrets that the call refers to.
    pub secrets: &'a [ReferencedSecret],
}

impl Driver {
    /// Returns `None` if the call may run, else its outcome.
    pub(crate) async fn check_approval(
        &self,
        active: &ActiveAgent,
        pending: PendingCall<'_>,
    ) -> Result<Option<ToolOutcome>, TurnError> {
        let PendingCall { tool, call, .. } = pending;
        if pending.secrets.is_empty()
            && !tool.has_intent()
            && !tool.has_outgoing()
            && self.approval_policy.allows_without_check(tool.safety)
        {
            return Ok(None);
        }
        let intent = match self.call_intent(pending).await {
            Ok(intent) => intent,
            Err(outcome) => return Ok(Some(outcome)),
        };
        let mut concerns = self.find_concerns(pending, &intent);
        let mut verdict = self.approval_policy.evaluate(&tool.name, &intent);
        // A general permission is not one for a secret (B130).
        if verdict.0 == Verdict::Auto
            && !pending.secrets.is_empty()
            && !self.is_named_by_rule(pending, &intent)
        {
            verdict.0 = Verdict::Ask;
        }
        if verdict.0 == Verdict::Auto && concerns.is_empty() {
            concerns.tainted_by = self.tainting_remote_agents(pending, &intent);
        }
        match verdict {
            // The user allowed such calls for their own requests, not for those of a web page.
            (Verdict::Auto, _) if !concerns.is_empty() => {
                self.ask_approver(active, call, intent, concerns).await
            }
            (Verdict::Auto, Decider::Policy) if intent.level == Safety::Safe => Ok(None),
            (Verdict::Auto, by) => {
                let outcome = ApprovalOutcome::decided(ApprovalState::Approved, by);
                self.record_decision(active, call, &intent, outcome).await
            }
            (Verdict::Deny, by) => {
                let outcome = ApprovalOutcome::decided(ApprovalState::Denied, by);
                self.record_decision(active, call, &intent, outcome).await
            }
            (Verdict::Ask, _) => self.ask_approver(active, call, intent, concerns).await,
        }
    }

    /// Returns the concerns about a call, given what its agent has read. There are none about a call
    /// that the user ordered verbatim or that a rule names exactly (B102).
    fn find_concerns(&self, pending: PendingCall<'_>, intent: &Intent) -> Concerns {
        let PendingCall {
            tool,
            call,
            context,
            user_text,
            read_label,
            ..
        } = pending;
        let is_tainted = read_label.is_untrusted() && self.can_be_tainted(pending, intent);
        let tainted_by = if is_tainted {
            read_label.untrusted_sources().to_vec()
        } else {
            Vec::new()
        };
        let allows = |host: &str| self.approval_policy.allows_host(host);
        let outgoing = tool.outgoing(context, &call.arguments);
        Concerns {
            tainted_by,
            leak: flow::find_leak(outgoing, read_label, user_text, allows),
        }
    }

    /// Returns true if untrusted content may have caused a call: it is dangerous, the user did not order
    /// it, and no rule names it exactly.
    fn can_be_tainted(&self, pending: PendingCall<'_>, intent: &Intent) -> bool {
        let PendingCall {
            tool,
            call,
            user_text,
            ..
        } = pending;
        intent.level == Safety::Dangerous
            && (!tool.is_read_only(&call.arguments) || !pending.secrets.is_empty())
            && !user_text.has_ordered(&call.arguments)
            && !self.is_named_by_rule(pending, intent)
    }

    /// Returns true if a rule without `*` names the whole call. A rule about a command does not cover
    /// other arguments of the call, such as another folder.
    fn is_named_by_rule(&self, pending: PendingCall<'_>, intent: &Intent) -> bool {
        let (tool, subject) = (&pending.tool.name, &intent.subject);
        let mut texts = flow::argument_texts(&pending.call.arguments).into_iter();
        self.approval_policy.has_exact_rule(tool, subject)
            && texts.all(|text| subject.contains(text.as_str()))
    }

    /// Returns the remote agents whose cards may have caused a call. The orchestrator reads the cards of
    /// all remote agents. That does not justify a warning on every call, but a call that would otherwise
    /// run without approval is asked about (B92).
    fn tainting_remote_agents(&self, pending: PendingCall<'_>, intent: &Intent) -> Vec<String> {
        let remotes = self
            .team
            .specialists()
            .filter(|agent| self.team.is_remote(agent));
        match self.can_be_tainted(pending, intent) {
            true => remotes
                .map(|agent| format!("the card of the remote agent {agent}"))
                .collect(),
            false => Vec::new(),
        }
    }

    /// Checks whether a task may be sent to a remote agent. Returns the reason if not (B103).
    pub(crate) async fn check_send(
        &self,
        active: &ActiveAgent,
        delegation: &Delegation,
    ) -> Result<Option<String>, TurnError> {
        let user_text = self.log.read(UserText::from_log);
        let agent = active.agent.to_string();
        let to = Destination::Agent(agent.clone());
        let outgoing = OutgoingData {
            to: to.clone(),
            data: delegation.task.clone().unwrap_or_default(),
        };
        let allows = |host: &str| self.approval_policy.allows_host(host);
        let leak = flow::find_leak(Some(outgoing), &delegation.label, &user_text, allows);
        // The request is sent along with the task. Piped input is not sent without approval.
        let is_typed = user_text.is_request(&self.request);
        if leak.is_none() && (is_typed || self.approval_policy.allows_host(&agent)) {
            return Ok(None);
        }
        let task = delegation
            .task
            .iter()
            .filter(|task| !task.contains(&self.request));
        let data = task
            .chain([&self.request])
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n");
        let leak = Some(Leak {
            outgoing: OutgoingData { to, data },
            private: delegation.label.private_sources().to_vec(),
        });
        let intent = Intent {
            level: Safety::Moderate,
            shows: format!("asks the remote agent {agent}"),
            subject: agent,
            pattern: None,
        };
        let concerns = Concerns {
            tainted_by: Vec::new(),
            leak,
        };
        let denied = self
            .ask_approver(active, &delegation.call, intent, concerns)
            .await?;
        Ok(denied.map(|outcome| match outcome {
            ToolOutcome::Failed { reason, .. } => reason,
            ToolOutcome::Succeeded { content, .. } => content.text,
        }))
    }

    /// Returns the intent of a call. A call that cannot work fails here, without an approval question.
    async fn call_intent(&self, pending: PendingCall<'_>) -> Result<Intent, ToolOutcome> {
        let PendingCall {
            tool,
            call,
            context,
            ..
        } = pending;
        let intent = AssertUnwindSafe(tool.intent(context.clone(), call.arguments.clone()));
        let intent = tokio::time::timeout(self.limits.tool_timeout(), intent.catch_unwind());
        match self.wait(intent).await {
            Ok(Ok(Ok(Ok(mut intent)))) => {
                self.log.secrets.redact(&mut intent.shows);
                Ok(with_secrets(intent, pending.secrets))
            }
            Ok(Ok(Ok(Err(ToolError(reason))))) => Err(ToolOutcome::Failed {
                code: ToolCode::Failed,
                reason,
                origin: failure_origin(tool, call),
                advice: None,
            }),
            Ok(Ok(Err(_panic))) => Err(ToolOutcome::failed(
                ToolCode::Panicked,
                format!("{} panicked; this is a bug in the tool", tool.name),
            )),
            Ok(Err(_elapsed)) => Err(ToolOutcome::failed(
                ToolCode::Timeout,
                format!("{} did not describe the call in time", tool.name),
            )),
            Err(_stopped) => Err(self.interrupted_outcome()),
        }
    }

    /// Asks the approver about a call. Questions are serialized, so that a second call of the same kind
    /// is covered by the answer to the first.
    async fn ask_approver(
        &self,
        active: &ActiveAgent,
        call: &ToolCall,
        mut intent: Intent,
        concerns: Concerns,
    ) -> Result<Option<ToolOutcome>, TurnError> {
        let _guard = self.approval_lock.lock().await;
        if self.was_denied(call) {
            let reason = "denied before; it stays denied in this turn";
            return Ok(Some(ToolOutcome::failed(ToolCode::Denied, reason)));
        }
        let is_single = self.needs_single_approval(active, call);
        let grants = match is_single {
            true => Vec::new(),
            false => self.log.grants(&call.name).await?,
        };
        let has_concerns = !concerns.is_empty();
        // With concerns, only a grant for this very call applies: a pattern was granted for calls
        // without concerns.
        let applies = |grant: &Grant| !has_concerns || matches!(grant, Grant::SameCall(_));
        if grants
            .iter()
            .any(|grant| applies(grant) && grant_covers(grant, &call.arguments, &intent))
        {
            let outcome = ApprovalOutcome::decided(ApprovalState::Approved, Decider::Grant);
            return self.record_decision(active, call, &intent, outcome).await;
        }
        intent.shows.insert_str(0, &concerns.warning());
        if has_concerns || is_single {
            intent.pattern = None;
        }
        intent.shows = escape_hidden_chars(&intent.shows);
        let asked = EventBody::Approval {
            id: call.id.clone(),
            tool: call.name.clone(),
            level: intent.level,
            state: ApprovalState::Asked,
            shows: intent.shows.clone(),
            tainted_by: concerns.tainted_by,
            by: None,
            grant: None,
        };
        self.note(active, asked).await?;
        let outcome = self.request_decision(active, call, &intent).await;
        self.record_decision(active, call, &intent, outcome).await
    }

    /// Returns true if an approval of this call covers no other call.
    fn needs_single_approval(&self, active: &ActiveAgent, call: &ToolCall) -> bool {
        let tool = self.team.tool(&active.agent, &call.name);
        tool.is_some_and(|tool| tool.needs_single_approval)
    }

    /// Waits for the approver's decision. If the turn ends first, the question is interrupted.
    async fn request_decision(
        &self,
        active: &ActiveAgent,
        call: &ToolCall,
        intent: &Intent,
    ) -> ApprovalOutcome {
        let Some(approver) = &self.approver else {
            return ApprovalOutcome::from_state(ApprovalState::NobodyThere);
        };
        let question = ApprovalQuestion {
            call: call.id.clone(),
            principal: self.log.principal.clone(),
            session: self.log.session.clone(),
            agent: active.agent.clone(),
            tool: call.name.clone(),
            args: self.shown_arguments(&active.agent, call),
            intent: intent.clone(),
        };
        let _pause = self.clock.pause();
        let answer = tokio::time::timeout(
            self.approval_policy.approval_timeout(),
            approver.ask(question),
        );
        let decision = match self.wait(answer).await {
            Ok(decision) => decision.unwrap_or(ApprovalDecision::TimedOut),
            Err(_stopped) => return ApprovalOutcome::from_state(ApprovalState::Interrupted),
        };
        match decision {
            ApprovalDecision::Approved { scope, by } => {
                let is_single = self.needs_single_approval(active, call);
                let grant = match scope {
                    _ if is_single => None,
                    ApprovalScope::Once => None,
                    // A call with a secret argument cannot be recognized later without storing it.
                    ApprovalScope::SameCall => {
                        let arguments = self.shown_arguments(&active.agent, call);
                        (arguments == call.arguments).then_some(Grant::SameCall(arguments))
                    }
                    ApprovalScope::Pattern => intent.pattern.clone().map(Grant::Pattern),
                };
                ApprovalOutcome {
                    grant,
                    ..ApprovalOutcome::decided(ApprovalState::Approved, by)
                }
            }
            ApprovalDecision::Denied => {
                ApprovalOutcome::decided(ApprovalState::Denied, Decider::User)
            }
            ApprovalDecision::TimedOut => ApprovalOutcome::from_state(ApprovalState::TimedOut),
            ApprovalDecision::NobodyThere => {
                ApprovalOutcome::from_state(ApprovalState::NobodyThere)
            }
        }
    }

    /// Appends a decision before the call has an effect. A denial holds for the rest of the turn.
    async fn record_decision(
        &self,
        active: &ActiveAgent,
        call: &ToolCall,
        intent: &Intent,
        outcome: ApprovalOutcome,
    ) -> Result<Option<ToolOutcome>, TurnError> {
        let ApprovalOutcome { state, by, grant } = outcome;
        let body = EventBody::Approval {
            id: call.id.clone(),
            tool: call.name.clone(),
            level: intent.level,
            state,
            shows: String::new(),
            tainted_by: Vec::new(),
            by,
            grant,
        };
        self.note(active, body).await?;
        let reason = match (state, by) {
            (ApprovalState::Approved, _) => return Ok(None),
            // The next process asks again.
            (ApprovalState::Asked | ApprovalState::Interrupted, _)
                if self.suspend.is_cancelled() =>
            {
                let outcome = ToolOutcome::failed(ToolCode::Interrupted, CALL_NOT_RUN);
                return Ok(Some(outcome));
            }
            (ApprovalState::Asked | ApprovalState::Interrupted, _) => {
                return Ok(Some(self.interrupted_outcome()));
            }
            (ApprovalState::Denied, Some(Decider::Rule | Decider::Policy)) => {
                "the user's settings do not allow this call"
            }
            (ApprovalState::Denied, _) => "the user denied this call",
            (ApprovalState::TimedOut, _) => "the question about this call was not answered in time",
            (ApprovalState::NobodyThere, _) => "there is no one to approve this call",
        };
        self.record_denial(call);
        Ok(Some(ToolOutcome::failed(ToolCode::Denied, reason)))
    }
}
