//! Message history: a pure function from the log of a session to the messages that an agent reads.
//!
//! An agent reads its own replies and calls as its own; those of others are quoted (B71). The history
//! only grows at its end, so that consecutive requests share a prefix byte for byte (B40), until it
//! is truncated by whole groups (B72).

mod own_steps;
mod quote;
mod truncate;

use std::collections::HashMap;
use std::sync::Arc;

use lango_domain::event::{Author, Branch, CallId, Event, EventBody, TurnId};
use lango_domain::model::Message;
use lango_domain::{AgentName, Content, Label, ReadableKinds};

use crate::attachments;
use own_steps::OwnSteps;
pub(crate) use truncate::measure;
use truncate::{GroupAge, MessageGroup};

/// The agent that reads the history, and its position in the log.
#[derive(Clone, Copy)]
pub(crate) struct HistoryReader<'a> {
    pub agent: &'a AgentName,
    pub turn: &'a TurnId,
    pub branch: &'a Branch,
    pub is_root: bool,
    /// The attachments that the reader's model reads.
    pub readable: ReadableKinds,
}

/// The size of a request, in tokens.
#[derive(Clone, Copy)]
pub(crate) struct TokenBudget {
    pub messages: usize,
    /// For the results of one reply. Does not depend on the calibration of estimates, so that results
    /// are truncated the same way in every request.
    pub results: usize,
}

/// Returns the messages for the reader's next request, and the joined label of everything they come
/// from, including what is truncated (B101).
pub(crate) fn build_messages(
    log: &[Arc<Event>],
    reader: HistoryReader<'_>,
    budget: TokenBudget,
) -> (Vec<Message>, Label) {
    let (digest, log) = split_at_digest(log, reader);
    let index = LogIndex::from_log(log);
    let mut builder = HistoryBuilder {
        reader,
        index: &index,
        groups: Vec::new(),
        steps: OwnSteps::new(reader.readable),
        age: GroupAge::Past,
        label: Label::default(),
    };
    if let Some((event, text)) = digest {
        builder.label.join(&event.label());
        builder.groups.extend(
            (!text.is_empty()).then(|| MessageGroup::user(quote::digest(text), GroupAge::Request)),
        );
    }
    for event in log {
        builder.push(event);
    }
    builder.close_steps();
    (
        truncate::fit_to_budget(builder.groups, budget),
        builder.label,
    )
}

/// Returns the newest digest and the events after the whole turns that it covers. A digest never
/// replaces the current turn.
fn split_at_digest<'a>(
    log: &'a [Arc<Event>],
    reader: HistoryReader<'_>,
) -> (Option<(&'a Event, &'a str)>, &'a [Arc<Event>]) {
    let newest = log.iter().rev().find_map(|event| match &event.body {
        EventBody::Digest { through, text } => Some((&**event, *through, text.as_str())),
        _ => None,
    });
    let Some((event, through, text)) = newest else {
        return (None, log);
    };
    let mut covered = log
        .iter()
        .take_while(|event| event.seq <= through && event.turn != *reader.turn)
        .count();
    while covered > 0 && covered < log.len() && log[covered - 1].turn == log[covered].turn {
        covered -= 1;
    }
    (Some((event, text)), &log[covered..])
}

/// An index of the log by branch and call id. Branch names are only unique within a turn.
struct LogIndex<'a> {
    branches: HashMap<(&'a TurnId, &'a Branch), Vec<&'a Event>>,
    /// The number of the event that ended a delegation.
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

    /// Returns the event that concluded the work in a branch, and its content.
    fn conclusion(&self, turn: &'a TurnId, branch: &'a Branch) -> Option<(&'a Event, &'a Content)> {
        self.branch(turn, branch)
            .iter()
            .rev()
            .find_map(|event| match &event.body {
                EventBody::Answer(content) | EventBody::Report(content) => Some((*event, content)),
                _ => None,
            })
    }
}

struct HistoryBuilder<'a, 'i> {
    reader: HistoryReader<'a>,
    index: &'i LogIndex<'a>,
    groups: Vec<MessageGroup>,
    steps: OwnSteps,
    /// The age of the groups to come.
    age: GroupAge,
    /// The joined label of all events so far.
    label: Label,
}

impl<'a> HistoryBuilder<'a, '_> {
    fn push(&mut self, event: &'a Event) {
        match &event.body {
            EventBody::User(content) => {
                self.close_steps();
                self.label.join(&event.label());
                let is_current = event.turn == *self.reader.turn;
                self.age = if is_current {
                    GroupAge::Current
                } else {
                    GroupAge::Past
                };
                self.groups.push(MessageGroup::user(
                    self.readable(content),
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
            EventBody::Answer(content) if !self.is_own(event) => {
                self.add_foreign_answer(event, content)
            }
            _ if self.reader.is_root && self.is_own(event) => self.add_own_step(event),
            _ => {}
        }
    }

    /// Returns content with a short text in place of what the reader's model cannot read.
    fn readable(&self, content: &Content) -> Content {
        attachments::replace_unreadable(content, self.reader.readable)
    }

    fn is_for_reader(&self, to: &AgentName) -> bool {
        !self.reader.is_root && to == self.reader.agent
    }

    fn is_own(&self, event: &Event) -> bool {
        matches!(&event.author, Author::Agent(name) if name == self.reader.agent)
    }

    /// Returns true if the reader can see a delegation to itself. Of the current turn, that is its own
    /// branch and delegations that ended before its branch began, but not parallel ones.
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

    /// Adds a delegation to the reader: the task, then every event of its branch.
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
        self.groups.extend(self.steps.push(
            &event.body,
            report.map(|(_, content)| content),
            self.age,
        ));
    }

    /// Adds the answer of another agent, unless the reader delegated to it: then the result of the
    /// transfer contains the answer.
    fn add_foreign_answer(&mut self, event: &'a Event, content: &Content) {
        if !(self.reader.is_root && self.steps.has_delegated_into(&event.branch)) {
            self.close_steps();
            self.label.join(&event.label());
            let quoted = quote::answer(&event.author, &content.to_plain_text());
            self.groups.push(MessageGroup::user(quoted, self.age));
        }
    }

    fn close_steps(&mut self) {
        self.groups.extend(self.steps.close(self.age));
    }
}
