//! The machine that decides a turn, one agent's work at a time. No IO: the driver asks [`Work::next`] what to do, does
//! it, and says what came of it.

use std::collections::BTreeSet;

use lango_domain::failure::FailureCode;
use lango_domain::model::{ToolCall, Thought};
use lango_domain::{AgentName, Label};

use crate::crew::Crew;
use crate::failure::Failure;
use crate::limits::{Limits, Spent};
use crate::plan::{Action, Caller};
use crate::reply::Reply;

/// What the driver is to do now.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    AskModel(Ask),
    CarryOut { said: Said, actions: Vec<Action> },
    Finish(Outcome),
    GiveUp(Failure),
}

/// What a reply holds beside its calls.
#[derive(Debug, PartialEq)]
pub(crate) struct Said {
    pub thoughts: Vec<Thought>,
    pub note: String,
    /// That of the whole reply.
    pub label: Label,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Plainly,
    /// The reply before was empty (B59).
    Again,
}

/// How an agent's work ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Answered { author: AgentName, text: String, label: Label },
    Rejected { reason: String, label: Label },
    Failed(Failure),
}

/// What came of one delegation.
#[derive(Debug)]
pub(crate) struct Delegated {
    pub to: AgentName,
    pub report_back: bool,
    pub outcome: Outcome,
}

/// What came of the actions of one reply.
#[derive(Debug, Default)]
pub(crate) struct CarriedOut {
    pub delegated: Vec<Delegated>,
    pub handed_back: Option<(String, Label)>,
}

/// One agent at work on one task.
pub(crate) struct Work<'a> {
    crew: &'a Crew,
    agent: &'a AgentName,
    state: State,
    rejecters: BTreeSet<AgentName>,
    repeats: Repeats,
}

enum State {
    /// The model is to be asked.
    Asking(Ask),
    /// It replied; `last_chance` when the reply before was empty.
    Replied {
        reply: Reply,
        last_chance: bool,
    },
    Settled(Outcome),
}

impl<'a> Work<'a> {
    pub fn new(crew: &'a Crew, agent: &'a AgentName) -> Self {
        let state = State::Asking(Ask::Plainly);
        Self { crew, agent, state, rejecters: BTreeSet::new(), repeats: Repeats::default() }
    }

    fn is_root(&self) -> bool {
        self.agent == self.crew.root()
    }

    /// What is to be done, given what the turn has taken so far.
    pub fn next(&mut self, limits: &Limits, spent: &Spent) -> Step {
        match std::mem::replace(&mut self.state, State::Asking(Ask::Plainly)) {
            State::Settled(outcome) => Step::Finish(outcome),
            State::Asking(ask) => match limits.check_model_call(spent) {
                Ok(()) => Step::AskModel(ask),
                Err(limit) => Step::GiveUp(Failure::limit(limit)),
            },
            State::Replied { reply, last_chance } => self.judge(reply, last_chance, limits, spent),
        }
    }

    pub fn replied(&mut self, reply: Reply, ask: Ask) {
        self.state = State::Replied { reply, last_chance: ask == Ask::Again };
    }

    pub fn carried_out(&mut self, done: CarriedOut) {
        if let Some((reason, label)) = done.handed_back {
            self.state = State::Settled(Outcome::Rejected { reason, label });
        }
        for Delegated { to, report_back, outcome } in done.delegated {
            match outcome {
                Outcome::Rejected { .. } => _ = self.rejecters.insert(to),
                answered @ Outcome::Answered { .. } if !report_back => self.state = State::Settled(answered),
                failed @ Outcome::Failed(_) if !report_back && !self.crew.is_remote(&to) => {
                    self.state = State::Settled(failed);
                }
                Outcome::Answered { .. } | Outcome::Failed(_) => {}
            }
        }
    }

    fn judge(&mut self, reply: Reply, last_chance: bool, limits: &Limits, spent: &Spent) -> Step {
        if let Some(reason) = reply.rejection() {
            return Step::Finish(self.rejection(reason, reply.label));
        }
        if !reply.calls.is_empty() {
            return self.carry_out(reply, limits, spent);
        }
        if !reply.text.trim().is_empty() {
            let Reply { text, label, .. } = reply;
            return Step::Finish(Outcome::Answered { author: self.agent.clone(), text, label });
        }
        if last_chance {
            return Step::GiveUp(Failure::empty(self.agent.as_str()));
        }
        self.state = State::Asking(Ask::Again);
        self.next(limits, spent)
    }

    fn carry_out(&mut self, reply: Reply, limits: &Limits, spent: &Spent) -> Step {
        if self.repeats.count(&reply.calls) >= limits.repeats.get() {
            return Step::GiveUp(Failure::limit(FailureCode::LimitRepeats));
        }
        let caller = Caller { crew: self.crew, agent: self.agent, rejecters: &self.rejecters };
        let mut actions = caller.plan(reply.calls);
        let note = words_beside(&mut actions, reply.text);
        let delegates = actions.iter().any(|action| matches!(action, Action::Delegate { .. }));
        match limits.check_round(spent) {
            Err(limit) if delegates => Step::GiveUp(Failure::limit(limit)),
            _ => {
                Step::CarryOut { said: Said { thoughts: reply.thoughts, note, label: reply.label }, actions }
            }
        }
    }

    /// Nobody stands behind the root to take a task back: its reason is its answer, without the marker.
    fn rejection(&self, reason: String, label: Label) -> Outcome {
        if !self.is_root() {
            return Outcome::Rejected { reason, label };
        }
        let text = if reason.is_empty() { "I cannot do this.".to_owned() } else { reason };
        Outcome::Answered { author: self.agent.clone(), text, label }
    }
}

/// What is said beside calls; beside a hand-back it is the reason, and no note.
fn words_beside(actions: &mut [Action], text: String) -> String {
    let Some(Action::HandBack { reason, .. }) =
        actions.iter_mut().find(|action| matches!(action, Action::HandBack { .. }))
    else {
        return text;
    };
    let said =
        if text.trim().is_empty() { "it handed the task back".to_owned() } else { text.trim().to_owned() };
    reason.get_or_insert(said);
    String::new()
}

/// How often the same call was made in a row.
#[derive(Debug, Default)]
struct Repeats {
    last: Option<ToolCall>,
    times: u32,
}

impl Repeats {
    /// The longest row that these calls are part of.
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
