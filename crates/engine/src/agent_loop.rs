//! The agent loop: decides what one agent does next. Does no IO: the driver asks
//! [`AgentLoop::next`] for a step, executes it and reports the result.

use std::collections::BTreeSet;

use lango_domain::failure::{FailureCode, NotDoneReason};
use lango_domain::model::{Thought, ToolCall};
use lango_domain::{AgentName, Content, Label};

use crate::limits::{TurnLimits, TurnSpend};
use crate::plan::{CallAction, CallPlanner};
use crate::prepared_team::PreparedTeam;
use crate::reply::ModelReply;
use crate::turn_error::TurnError;

/// The next step for the driver.
#[derive(Debug, PartialEq)]
pub(crate) enum LoopStep {
    AskModel(AskMode),
    Execute {
        notes: ReplyNotes,
        actions: Vec<CallAction>,
    },
    Finish(AgentOutcome),
    Fail(TurnError),
}

/// The thoughts and text that a reply has in addition to its calls.
#[derive(Debug, PartialEq)]
pub(crate) struct ReplyNotes {
    pub thoughts: Vec<Thought>,
    pub note: String,
    /// The label of the whole reply.
    pub label: Label,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskMode {
    Normal,
    /// The previous reply was empty (B59).
    AfterEmptyReply,
}

/// The result of an agent's work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AgentOutcome {
    Answered {
        author: AgentName,
        content: Content,
        label: Label,
        /// Set if the answer says that the request was not done.
        not_done: Option<NotDoneReason>,
    },
    Rejected {
        reason: String,
        label: Label,
    },
    Failed(TurnError),
}

/// The result of one delegation.
#[derive(Debug)]
pub(crate) struct DelegationResult {
    pub to: AgentName,
    pub report_back: bool,
    pub outcome: AgentOutcome,
}

/// The results of the actions of one reply.
#[derive(Debug, Default)]
pub(crate) struct ActionResults {
    pub delegations: Vec<DelegationResult>,
    pub handed_back: Option<(String, Label)>,
}

/// One agent working on one task.
pub(crate) struct AgentLoop<'a> {
    team: &'a PreparedTeam,
    agent: &'a AgentName,
    state: LoopState,
    rejecters: BTreeSet<AgentName>,
    repeats: RepeatCounter,
}

enum LoopState {
    /// The model has to be called.
    CallModel(AskMode),
    /// The model replied; `last_chance` if the previous reply was empty.
    Replied {
        reply: ModelReply,
        last_chance: bool,
    },
    Finished(AgentOutcome),
}

impl<'a> AgentLoop<'a> {
    pub fn new(team: &'a PreparedTeam, agent: &'a AgentName) -> Self {
        let state = LoopState::CallModel(AskMode::Normal);
        Self {
            team,
            agent,
            state,
            rejecters: BTreeSet::new(),
            repeats: RepeatCounter::default(),
        }
    }

    fn is_root(&self) -> bool {
        self.agent == self.team.root()
    }

    /// Returns the next step, given the usage of the turn so far.
    pub fn next(&mut self, limits: &TurnLimits, spend: &TurnSpend) -> LoopStep {
        match std::mem::replace(&mut self.state, LoopState::CallModel(AskMode::Normal)) {
            LoopState::Finished(outcome) => LoopStep::Finish(outcome),
            LoopState::CallModel(mode) => match limits.check_model_call(spend) {
                Ok(()) => LoopStep::AskModel(mode),
                Err(limit) => LoopStep::Fail(TurnError::limit(limit)),
            },
            LoopState::Replied { reply, last_chance } => {
                self.evaluate_reply(reply, last_chance, limits, spend)
            }
        }
    }

    pub fn on_reply(&mut self, reply: ModelReply, mode: AskMode) {
        self.state = LoopState::Replied {
            reply,
            last_chance: mode == AskMode::AfterEmptyReply,
        };
    }

    pub fn on_actions_done(&mut self, results: ActionResults) {
        if let Some((reason, label)) = results.handed_back {
            self.state = LoopState::Finished(AgentOutcome::Rejected { reason, label });
        }
        for DelegationResult {
            to,
            report_back,
            outcome,
        } in results.delegations
        {
            match outcome {
                AgentOutcome::Rejected { .. } => _ = self.rejecters.insert(to),
                answered @ AgentOutcome::Answered { .. } if !report_back => {
                    self.state = LoopState::Finished(answered)
                }
                failed @ AgentOutcome::Failed(_) if !report_back && !self.team.is_remote(&to) => {
                    self.state = LoopState::Finished(failed);
                }
                AgentOutcome::Answered { .. } | AgentOutcome::Failed(_) => {}
            }
        }
    }

    fn evaluate_reply(
        &mut self,
        reply: ModelReply,
        last_chance: bool,
        limits: &TurnLimits,
        spend: &TurnSpend,
    ) -> LoopStep {
        if let Some(reason) = reply.rejection() {
            return LoopStep::Finish(self.rejection(reason, reply.label));
        }
        if !reply.calls.is_empty() {
            return self.plan_calls(reply, limits, spend);
        }
        if !reply.text.trim().is_empty() {
            let not_done = reply.is_not_done.then_some(NotDoneReason::Unable);
            let ModelReply { text, label, .. } = reply;
            return LoopStep::Finish(AgentOutcome::Answered {
                author: self.agent.clone(),
                content: text.into(),
                label,
                not_done,
            });
        }
        if last_chance {
            return LoopStep::Fail(TurnError::empty(self.agent.as_str()));
        }
        self.state = LoopState::CallModel(AskMode::AfterEmptyReply);
        self.next(limits, spend)
    }

    fn plan_calls(
        &mut self,
        reply: ModelReply,
        limits: &TurnLimits,
        spend: &TurnSpend,
    ) -> LoopStep {
        if self.repeats.count(&reply.calls) >= limits.repeats.get() {
            return LoopStep::Fail(TurnError::limit(FailureCode::LimitRepeats));
        }
        let planner = CallPlanner {
            team: self.team,
            agent: self.agent,
            rejecters: &self.rejecters,
        };
        let mut actions = planner.plan(reply.calls);
        let note = note_text(&mut actions, reply.text);
        let delegates = actions
            .iter()
            .any(|action| matches!(action, CallAction::Delegate { .. }));
        match limits.check_round(spend) {
            Err(limit) if delegates => LoopStep::Fail(TurnError::limit(limit)),
            _ => LoopStep::Execute {
                notes: ReplyNotes {
                    thoughts: reply.thoughts,
                    note,
                    label: reply.label,
                },
                actions,
            },
        }
    }

    /// Returns the outcome of a rejection. The root has no parent to reject to, so its reason, without
    /// the marker, becomes its answer.
    fn rejection(&self, reason: String, label: Label) -> AgentOutcome {
        if !self.is_root() {
            return AgentOutcome::Rejected { reason, label };
        }
        let text = if reason.is_empty() {
            "I cannot do this.".to_owned()
        } else {
            reason
        };
        AgentOutcome::Answered {
            author: self.agent.clone(),
            content: text.into(),
            label,
            not_done: Some(NotDoneReason::Unable),
        }
    }
}

/// Returns the note of a reply with calls. If a call hands the task back, the text becomes the
/// reason of the hand-back instead.
fn note_text(actions: &mut [CallAction], text: String) -> String {
    let Some(CallAction::HandBack { reason, .. }) = actions
        .iter_mut()
        .find(|action| matches!(action, CallAction::HandBack { .. }))
    else {
        return text;
    };
    let default_reason = if text.trim().is_empty() {
        "it handed the task back".to_owned()
    } else {
        text.trim().to_owned()
    };
    reason.get_or_insert(default_reason);
    String::new()
}

/// Counts how often the same call is made in a row.
#[derive(Debug, Default)]
struct RepeatCounter {
    last: Option<ToolCall>,
    times: u32,
}

impl RepeatCounter {
    /// Returns the length of the longest series that one of these calls continues.
    fn count(&mut self, calls: &[ToolCall]) -> u32 {
        let mut longest = 0;
        for call in calls {
            let is_same = self.last.as_ref().is_some_and(|last| last.is_same_as(call));
            self.times = if is_same { self.times + 1 } else { 1 };
            if !is_same {
                self.last = Some(call.clone());
            }
            longest = longest.max(self.times);
        }
        longest
    }
}
