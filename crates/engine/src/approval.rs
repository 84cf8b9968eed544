//! Whether a call may run: what it would do, what the settings say about that, and whoever is there to be asked.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope};
use lango_domain::event::{ApprovalState, Decider, EventBody, Grant, ToolCode};
use lango_domain::model::ToolCall;
use lango_domain::text::escape_hidden_chars;
use lango_domain::{
    Destination, Intent, Label, OutgoingData, Safety, Tool, ToolContext, ToolError,
};

use crate::approval_policy::{Verdict, grant_covers};
use crate::driver::{ActiveAgent, Delegation, Driver};
use crate::flow::{self, Concerns, Leak, UserText};
use crate::tool_execution::{ToolOutcome, failure_origin};
use crate::turn_error::TurnError;

/// What was decided about a call, as it is written down.
struct ApprovalOutcome {
    state: ApprovalState,
    by: Option<Decider>,
    grant: Option<Grant>,
}

/// A call that wants to run, and what its agent knows.
#[derive(Clone, Copy)]
pub(crate) struct PendingCall<'a> {
    pub tool: &'a Tool,
    pub call: &'a ToolCall,
    pub context: &'a ToolContext,
    pub user_text: &'a UserText,
    /// The label of everything the agent had read when it made the call.
    pub read_label: &'a Label,
}

impl Driver {
    /// Nothing when the call may run; else what its agent is told.
    pub(crate) async fn check_approval(
        &self,
        seat: &ActiveAgent,
        asked: PendingCall<'_>,
    ) -> Result<Option<ToolOutcome>, TurnError> {
        let PendingCall { tool, call, .. } = asked;
        if !tool.has_intent()
            && !tool.has_outgoing()
            && self.approval_policy.allows_without_check(tool.safety)
        {
            return Ok(None);
        }
        let intent = match self.call_intent(asked).await {
            Ok(intent) => intent,
            Err(answer) => return Ok(Some(answer)),
        };
        let mut concerns = self.find_concerns(asked, &intent);
        let judged = self.approval_policy.evaluate(&tool.name, &intent);
        if judged.0 == Verdict::Auto && concerns.is_empty() {
            concerns.tainted_by = self.tainting_remote_agents(asked, &intent);
        }
        match judged {
            // Whoever let such calls pass meant the user's own wishes, not those of a page.
            (Verdict::Auto, _) if !concerns.is_empty() => {
                self.ask_approver(seat, call, intent, concerns).await
            }
            (Verdict::Auto, Decider::Policy) if intent.level == Safety::Safe => Ok(None),
            (Verdict::Auto, by) => {
                let decided = ApprovalOutcome {
                    state: ApprovalState::Approved,
                    by: Some(by),
                    grant: None,
                };
                self.record_decision(seat, call, &intent, decided).await
            }
            (Verdict::Deny, by) => {
                let decided = ApprovalOutcome {
                    state: ApprovalState::Denied,
                    by: Some(by),
                    grant: None,
                };
                self.record_decision(seat, call, &intent, decided).await
            }
            (Verdict::Ask, _) => self.ask_approver(seat, call, intent, concerns).await,
        }
    }

    /// What is worrying about a call, given what its agent has read; nothing about a call that the user ordered in these
    /// very words, or that a rule names (B102).
    fn find_concerns(&self, asked: PendingCall<'_>, intent: &Intent) -> Concerns {
        let PendingCall {
            tool,
            call,
            user_text: words,
            read_label: read,
            ..
        } = asked;
        let is_tainted = read.is_untrusted() && self.can_be_tainted(asked, intent);
        let tainted_by = if is_tainted {
            read.untrusted_sources().to_vec()
        } else {
            Vec::new()
        };
        let allows = |host: &str| self.approval_policy.allows_host(host);
        Concerns {
            tainted_by,
            leak: flow::find_leak(tool.outgoing(&call.arguments), read, words, allows),
        }
    }

    /// Whether others may have wanted a call: it has an effect, the user did not order it, and no rule names it.
    fn can_be_tainted(&self, asked: PendingCall<'_>, intent: &Intent) -> bool {
        let PendingCall {
            tool,
            call,
            user_text: words,
            ..
        } = asked;
        // A rule about a command says nothing about what else the call gives along, such as another folder.
        let is_all = || {
            flow::argument_texts(&call.arguments)
                .iter()
                .all(|text| intent.subject.contains(text.as_str()))
        };
        let is_named = || {
            self.approval_policy
                .has_exact_rule(&tool.name, &intent.subject)
                && is_all()
        };
        intent.level == Safety::Dangerous
            && !tool.is_read_only(&call.arguments)
            && !words.has_ordered(&call.arguments)
            && !is_named()
    }

    /// Agents in other processes describe themselves to the orchestrator. That is no reason to warn of every call, but none
    /// passes unasked for it (B92).
    fn tainting_remote_agents(&self, asked: PendingCall<'_>, intent: &Intent) -> Vec<String> {
        let remotes = self
            .team
            .specialists()
            .filter(|agent| self.team.is_remote(agent));
        match self.can_be_tainted(asked, intent) {
            true => remotes
                .map(|agent| format!("the card of the remote agent {agent}"))
                .collect(),
            false => Vec::new(),
        }
    }

    /// Whether a task may go to an agent in another process; else why not (B103).
    pub(crate) async fn check_send(
        &self,
        seat: &ActiveAgent,
        delegation: &Delegation,
    ) -> Result<Option<String>, TurnError> {
        let words = self.log.read(UserText::from_log);
        let agent = seat.agent.to_string();
        let to = Destination::Agent(agent.clone());
        let outgoing = OutgoingData {
            to: to.clone(),
            data: delegation.task.clone().unwrap_or_default(),
        };
        let allows = |host: &str| self.approval_policy.allows_host(host);
        let leak = flow::find_leak(Some(outgoing), &delegation.label, &words, allows);
        // The request goes along with the task. What was piped in is not the user's to give away unseen.
        let is_typed = words.is_request(&self.request);
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
        let private = delegation.label.private_sources().to_vec();
        let leak = Some(Leak {
            outgoing: OutgoingData { to, data },
            private,
        });
        let (shows, pattern) = (format!("asks the remote agent {agent}"), None);
        let intent = Intent {
            level: Safety::Moderate,
            shows,
            subject: agent,
            pattern,
        };
        let concerns = Concerns {
            tainted_by: Vec::new(),
            leak,
        };
        let refused = self
            .ask_approver(seat, &delegation.call, intent, concerns)
            .await?;
        Ok(refused.map(|answer| match answer {
            ToolOutcome::Failed { reason: why, .. } => why,
            ToolOutcome::Succeeded { text, .. } => text,
        }))
    }

    /// What the call would do. One that cannot work is not asked about: its agent is told why.
    async fn call_intent(&self, asked: PendingCall<'_>) -> Result<Intent, ToolOutcome> {
        let PendingCall {
            tool,
            call,
            context,
            ..
        } = asked;
        let telling = AssertUnwindSafe(tool.intent(context.clone(), call.arguments.clone()));
        let told = tokio::time::timeout(self.limits.tool_timeout(), telling.catch_unwind());
        match self.wait(told).await {
            Ok(Ok(Ok(Ok(intent)))) => Ok(intent),
            Ok(Ok(Ok(Err(ToolError(why))))) => {
                let words = failure_origin(tool, call);
                Err(ToolOutcome::Failed {
                    code: ToolCode::Failed,
                    reason: why,
                    origin: words,
                    advice: None,
                })
            }
            Ok(Ok(Err(_panic))) => Err(ToolOutcome::failed(
                ToolCode::Panicked,
                format!("{} broke; this is a mistake in the tool", tool.name),
            )),
            Ok(Err(_elapsed)) => Err(ToolOutcome::failed(
                ToolCode::Timeout,
                format!("{} could not say in time what it would do", tool.name),
            )),
            Err(_stopped) => Err(self.interrupted_outcome()),
        }
    }

    /// One question at a time, so that a second call of the same kind knows the first answer.
    async fn ask_approver(
        &self,
        seat: &ActiveAgent,
        call: &ToolCall,
        mut intent: Intent,
        concerns: Concerns,
    ) -> Result<Option<ToolOutcome>, TurnError> {
        let _turn = self.approval_lock.lock().await;
        if self.was_denied(call) {
            let why = "denied before; it stays denied in this turn";
            return Ok(Some(ToolOutcome::failed(ToolCode::Denied, why)));
        }
        let grants = self.log.grants(&call.name).await?;
        let is_worrying = !concerns.is_empty();
        // What was shown to the user stays allowed as it was shown; a pattern was given for other calls than these.
        let holds = |grant: &Grant| !is_worrying || matches!(grant, Grant::SameCall(_));
        if grants
            .iter()
            .any(|grant| holds(grant) && grant_covers(grant, &call.arguments, &intent))
        {
            let decided = ApprovalOutcome {
                state: ApprovalState::Approved,
                by: Some(Decider::Grant),
                grant: None,
            };
            return self.record_decision(seat, call, &intent, decided).await;
        }
        intent.shows.insert_str(0, &concerns.warning());
        if is_worrying {
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
        self.note(seat, asked).await?;
        let decided = self.request_decision(seat, call, &intent).await;
        self.record_decision(seat, call, &intent, decided).await
    }

    /// A turn that ends while its question is open leaves it unanswered.
    async fn request_decision(
        &self,
        seat: &ActiveAgent,
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
            agent: seat.agent.clone(),
            tool: call.name.clone(),
            args: call.arguments.clone(),
            intent: intent.clone(),
        };
        let _pause = self.clock.pause();
        let answer = tokio::time::timeout(
            self.approval_policy.approval_timeout(),
            approver.ask(question),
        );
        let decision = match self.wait(answer).await {
            Ok(answered) => answered.unwrap_or(ApprovalDecision::TimedOut),
            Err(_stopped) => return ApprovalOutcome::from_state(ApprovalState::Interrupted),
        };
        match decision {
            ApprovalDecision::Approved { scope, by } => {
                let grant = match scope {
                    ApprovalScope::Once => None,
                    ApprovalScope::SameCall => Some(Grant::SameCall(call.arguments.clone())),
                    ApprovalScope::Pattern => intent.pattern.clone().map(Grant::Pattern),
                };
                ApprovalOutcome {
                    state: ApprovalState::Approved,
                    by: Some(by),
                    grant,
                }
            }
            ApprovalDecision::Denied => ApprovalOutcome {
                state: ApprovalState::Denied,
                by: Some(Decider::User),
                grant: None,
            },
            ApprovalDecision::TimedOut => ApprovalOutcome::from_state(ApprovalState::TimedOut),
            ApprovalDecision::NobodyThere => {
                ApprovalOutcome::from_state(ApprovalState::NobodyThere)
            }
        }
    }

    /// Kept before the call has an effect; what was refused is remembered for the rest of the turn.
    async fn record_decision(
        &self,
        seat: &ActiveAgent,
        call: &ToolCall,
        intent: &Intent,
        decided: ApprovalOutcome,
    ) -> Result<Option<ToolOutcome>, TurnError> {
        let ApprovalOutcome { state, by, grant } = decided;
        let (id, tool, level, shows) = (
            call.id.clone(),
            call.name.clone(),
            intent.level,
            String::new(),
        );
        let body = EventBody::Approval {
            id,
            tool,
            level,
            state,
            shows,
            tainted_by: Vec::new(),
            by,
            grant,
        };
        self.note(seat, body).await?;
        let why = match (state, by) {
            (ApprovalState::Approved, _) => return Ok(None),
            (ApprovalState::Asked | ApprovalState::Interrupted, _) => {
                return Ok(Some(self.interrupted_outcome()));
            }
            (ApprovalState::Denied, Some(Decider::Rule | Decider::Policy)) => {
                "the user's settings do not allow this call"
            }
            (ApprovalState::Denied, _) => "the user denied this call",
            (ApprovalState::TimedOut, _) => "the question about this call was not answered in time",
            (ApprovalState::NobodyThere, _) => "nobody is there who could allow this call",
        };
        self.record_denial(call);
        Ok(Some(ToolOutcome::failed(ToolCode::Denied, why)))
    }
}

impl ApprovalOutcome {
    fn from_state(state: ApprovalState) -> Self {
        Self {
            state,
            by: None,
            grant: None,
        }
    }
}
