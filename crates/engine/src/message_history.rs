//! What an agent reads of a session: a pure function from the log to messages.
//!
//! An agent's own words and calls are its own; what others did is quoted (B71). The view only ever grows at its end,
//! so that consecutive requests share their beginning byte for byte (B40), until it is cut by whole groups (B72).

mod cut;
mod own;
mod quote;

use std::collections::HashMap;
use std::sync::Arc;

use lango_domain::event::{Author, Branch, CallId, Event, EventBody, TurnId};
use lango_domain::model::Message;
use lango_domain::{AgentName, Label};

pub(crate) use cut::measure;
use cut::{GroupAge, MessageGroup};
use own::OwnSteps;

/// Who looks, and from where.
#[derive(Clone, Copy)]
pub(crate) struct HistoryReader<'a> {
    pub agent: &'a AgentName,
    pub turn: &'a TurnId,
    pub branch: &'a Branch,
    pub is_root: bool,
}

/// How much a request may hold, in tokens.
#[derive(Clone, Copy)]
pub(crate) struct TokenBudget {
    pub messages: usize,
    /// For the results of one reply; stays the same as long as the team does, whatever is learned about estimates, so
    /// that what was read once is read again the same.
    pub results: usize,
}

/// The messages for the viewer's next request, and the label of all that they come from, also of what is cut (B101).
pub(crate) fn build_messages(
    log: &[Arc<Event>],
    viewer: HistoryReader<'_>,
    room: TokenBudget,
) -> (Vec<Message>, Label) {
    let (digest, log) = split_at_digest(log, viewer);
    let index = LogIndex::from_log(log);
    let mut view = HistoryBuilder {
        reader: viewer,
        index: &index,
        groups: Vec::new(),
        steps: OwnSteps::default(),
        age: GroupAge::Past,
        label: Label::default(),
    };
    if let Some((event, text)) = digest {
        view.label.join(&event.label());
        view.groups.extend(
            (!text.is_empty()).then(|| MessageGroup::user(quote::digest(text), GroupAge::Request)),
        );
    }
    for event in log {
        view.push(event);
    }
    view.close_steps();
    (cut::fit_to_budget(view.groups, room), view.label)
}

/// The newest digest and the whole turns that it does not tell of; never does it stand for the turn at hand.
fn split_at_digest<'a>(
    log: &'a [Arc<Event>],
    viewer: HistoryReader<'_>,
) -> (Option<(&'a Event, &'a str)>, &'a [Arc<Event>]) {
    let newest = log.iter().rev().find_map(|event| match &event.body {
        EventBody::Digest { through, text } => Some((&**event, *through, text.as_str())),
        _ => None,
    });
    let Some((event, through, text)) = newest else {
        return (None, log);
    };
    let mut told = log
        .iter()
        .take_while(|event| event.seq <= through && event.turn != *viewer.turn)
        .count();
    while told > 0 && told < log.len() && log[told - 1].turn == log[told].turn {
        told -= 1;
    }
    (Some((event, text)), &log[told..])
}

/// What is looked up by more than its place in the log. Branches are named anew in every turn.
struct LogIndex<'a> {
    branches: HashMap<(&'a TurnId, &'a Branch), Vec<&'a Event>>,
    /// When a delegation ended.
    ended_at: HashMap<(&'a TurnId, &'a CallId), u64>,
}

impl<'a> LogIndex<'a> {
    fn from_log(log: &'a [Arc<Event>]) -> Self {
        let mut index = Self {
            branches: HashMap::new(),
            ended_at: HashMap::new(),
        };
        for event in log {
            index
                .branches
                .entry((&event.turn, &event.branch))
                .or_default()
                .push(&**event);
            if let EventBody::TransferResult { id, .. } = &event.body {
                index.ended_at.insert((&event.turn, id), event.seq);
            }
        }
        index
    }

    fn branch(&self, turn: &'a TurnId, branch: &'a Branch) -> &[&'a Event] {
        self.branches
            .get(&(turn, branch))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The event with which the work in a branch ended, and its words.
    fn conclusion(&self, turn: &'a TurnId, branch: &'a Branch) -> Option<(&'a Event, &'a str)> {
        self.branch(turn, branch)
            .iter()
            .rev()
            .find_map(|event| match &event.body {
                EventBody::Answer { text } | EventBody::Report { text } => {
                    Some((*event, text.as_str()))
                }
                _ => None,
            })
    }
}

struct HistoryBuilder<'a, 'i> {
    reader: HistoryReader<'a>,
    index: &'i LogIndex<'a>,
    groups: Vec<MessageGroup>,
    steps: OwnSteps,
    /// Whether the turn at hand has begun.
    age: GroupAge,
    /// That of everything taken so far.
    label: Label,
}

impl<'a> HistoryBuilder<'a, '_> {
    fn push(&mut self, event: &'a Event) {
        match &event.body {
            EventBody::User { text } => {
                self.close_steps();
                self.label.join(&event.label());
                let is_current = event.turn == *self.reader.turn;
                self.age = if is_current {
                    GroupAge::Current
                } else {
                    GroupAge::Past
                };
                self.groups.push(MessageGroup::user(
                    text.clone(),
                    if is_current {
                        GroupAge::Request
                    } else {
                        GroupAge::Past
                    },
                ));
            }
            EventBody::Context { source, text } => {
                if let Some(group) = self.groups.last_mut() {
                    self.label.join(&event.label());
                    group.extend_user(&quote::context(source, text));
                }
            }
            EventBody::TurnFailed { message, .. } => {
                self.close_steps();
                self.groups
                    .push(MessageGroup::user(quote::failed_turn(message), self.age));
            }
            EventBody::Transfer {
                id, to, task, into, ..
            } if self.is_for_reader(to) && self.can_see(event, id, into) => {
                self.add_own_delegation(event, task.as_deref(), into);
            }
            EventBody::Answer { text } if !self.is_own(event) => {
                self.add_foreign_answer(event, text)
            }
            _ if self.reader.is_root && self.is_own(event) => self.add_own_step(event),
            _ => {}
        }
    }

    fn is_for_reader(&self, to: &AgentName) -> bool {
        !self.reader.is_root && to == self.reader.agent
    }

    fn is_own(&self, event: &Event) -> bool {
        matches!(&event.author, Author::Agent(name) if name == self.reader.agent)
    }

    /// Of this turn, an agent sees its own branch and what it had finished before that began; not what runs beside it.
    fn can_see(&self, transfer: &'a Event, id: &'a CallId, into: &Branch) -> bool {
        if transfer.turn != *self.reader.turn || into == self.reader.branch {
            return true;
        }
        let own = self.index.branch(&transfer.turn, &transfer.branch);
        let began = own
            .iter()
            .find(|event| matches!(&event.body, EventBody::Transfer { into, .. } if into == self.reader.branch));
        let ended = self.index.ended_at.get(&(&transfer.turn, id));
        matches!((began, ended), (Some(began), Some(ended)) if *ended < began.seq)
    }

    /// A delegation to the viewer, told where it began: the task, then everything done in its branch.
    fn add_own_delegation(&mut self, transfer: &'a Event, task: Option<&str>, into: &'a Branch) {
        self.label.join(&transfer.label());
        let is_current = transfer.turn == *self.reader.turn && into == self.reader.branch;
        let age = if is_current {
            GroupAge::Request
        } else {
            self.age
        };
        self.groups
            .push(MessageGroup::user(quote::task(&transfer.author, task), age));
        for event in self.index.branch(&transfer.turn, into) {
            self.add_own_step(event);
        }
        self.close_steps();
    }

    fn add_own_step(&mut self, event: &'a Event) {
        let report = match &event.body {
            EventBody::Transfer { into, .. } => self.index.conclusion(&event.turn, into),
            _ => None,
        };
        self.label.join(&event.label());
        if let Some((event, _)) = report {
            self.label.join(&event.label());
        }
        self.groups.extend(
            self.steps
                .push(&event.body, report.map(|(_, text)| text), self.age),
        );
    }

    /// The answer of somebody else: for whoever delegated, the result of the transfer has it already.
    fn add_foreign_answer(&mut self, event: &'a Event, text: &str) {
        if !(self.reader.is_root && self.steps.has_delegated_into(&event.branch)) {
            self.close_steps();
            self.label.join(&event.label());
            self.groups.push(MessageGroup::user(
                quote::answer(&event.author, text),
                self.age,
            ));
        }
    }

    fn close_steps(&mut self) {
        self.groups.extend(self.steps.close(self.age));
    }
}
