//! Everything that was learned for a principal, side by side, and what belongs together in it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use lango_domain::event::{EventBody, Event, Principal, SessionId, TurnId};
use lango_domain::inquiries::{Inquiry, InquiryStore};
use lango_domain::knowledge::{Category, KnowledgeStore};
use lango_domain::memory::{Kind, MemoryLevel, MemoryQuery, MemoryStore, MemoryId};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, StoreError};

use super::Learned;
use super::statement::{Fit, Statement};
use super::trace::{Origin, Trace, TraceId};
use crate::graph::owned::{OwnBatch, own_batches};
use crate::memory::plain_words;

/// More memories than this are not looked through at once.
const MOST_MEMORIES: usize = 200_000;

pub(super) struct Ledger {
    lines: Vec<Line>,
    batches: Vec<OwnBatch>,
}

/// Something that was learned, ready to be compared.
struct Line {
    trace: Trace,
    /// What it says, in one or several places.
    statements: Vec<Statement>,
    /// Observations that a reflection condenses.
    condenses: Vec<u64>,
    /// The key that an inquiry's answer is kept under.
    key: Option<String>,
}

type Turns = HashSet<(SessionId, TurnId)>;
type Logs = HashMap<SessionId, Vec<Arc<Event>>>;

impl Line {
    fn new(trace: Trace, statements: Vec<Statement>) -> Self {
        Self { trace, statements, condenses: Vec::new(), key: None }
    }

    fn fit(&self, wanted: &Statement) -> Fit {
        self.statements.iter().map(|statement| wanted.fit(statement)).max().unwrap_or(Fit::None)
    }

    fn is_reflection(&self) -> bool {
        matches!(self.trace.id, TraceId::Memory(MemoryId::Reflection(_)))
    }

    fn says_the_same_as(&self, other: &Self) -> bool {
        other.statements.first().is_some_and(|wanted| self.fit(wanted) == Fit::Same)
    }

    fn shares_a_word_with(&self, other: &Self) -> bool {
        let Some(wanted) = other.statements.first() else { return false };
        self.statements.iter().any(|statement| wanted.shares_a_word_with(statement))
    }
}

impl Ledger {
    pub async fn read(store: &dyn Learned, of: &Principal) -> Result<Self, StoreError> {
        let mut lines = Vec::new();
        for what in [MemoryLevel::Observations, MemoryLevel::Reflections] {
            let which = MemoryQuery { what, session: None, most: MOST_MEMORIES };
            for memory in MemoryStore::list(store, of, which).await? {
                let said = Statement::of(&memory.note.text).with_kind(memory.note.kind);
                let line = Line::new(Trace::of_memory(&memory), vec![said]);
                lines.push(Line { condenses: memory.condenses, ..line });
            }
        }
        for newest in KnowledgeStore::entries(store, of).await? {
            for entry in KnowledgeStore::history(store, of, &newest.key).await? {
                let said = Statement::of(&entry.content).about(&entry.key);
                let is_preference = entry.category == Category::Preference;
                let said = if is_preference { said.with_kind(Kind::Preference) } else { said };
                lines.push(Line::new(Trace::of_entry(&entry), vec![said]));
            }
        }
        for learning in KnowledgeStore::learnings(store, of).await? {
            let trace = Trace::of_learning(&learning);
            let said =
                [Statement::of(&trace.text), Statement::of(&learning.trigger), Statement::of(&learning.fix)];
            lines.push(Line::new(trace, said.into()));
        }
        for inquiry in InquiryStore::inquiries(store, of).await? {
            lines.push(inquiry_line(&inquiry));
        }
        let batches = own_batches(store, of).await?;
        for batch in &batches {
            for (at, text) in batch.statements.iter().enumerate() {
                let id = TraceId::Fact { batch: batch.number, at };
                let trace = Trace { id, text: text.clone(), origin: Origin::of_fact(&batch.source) };
                lines.push(Line::new(trace, vec![Statement::of(text)]));
            }
        }
        Ok(Self { lines, batches })
    }

    pub fn traces(&self, places: impl IntoIterator<Item = usize>) -> Vec<Trace> {
        places.into_iter().map(|at| self.lines[at].trace.clone()).collect()
    }

    pub fn body(&self, batch: u64) -> Option<&[u8]> {
        self.batches.iter().find(|own| own.number == batch).map(|own| own.body.as_slice())
    }

    pub fn plain_words(&self, at: usize) -> Vec<String> {
        plain_words(&self.lines[at].trace.text)
    }

    pub fn everything(&self) -> Vec<usize> {
        (0..self.lines.len()).collect()
    }

    /// What fits just so. A reflection that says it among other things goes only with what it was made of.
    pub fn fitting(&self, wanted: &Statement, fit: Fit) -> Vec<usize> {
        let is_meant = |line: &Line| line.fit(wanted) == fit && (fit == Fit::Same || !line.is_reflection());
        self.places(is_meant)
    }

    /// Memories of these ids; a reflection stands for what it condenses.
    pub fn memories(&self, ids: &[MemoryId]) -> Vec<usize> {
        let mut meant: HashSet<MemoryId> = ids.iter().copied().collect();
        for line in self.lines.iter().filter(|line| line.is_reflection()) {
            if matches!(line.trace.id, TraceId::Memory(id) if ids.contains(&id)) {
                meant.extend(line.condenses.iter().map(|id| MemoryId::Observation(*id)));
            }
        }
        self.places(|line| matches!(&line.trace.id, TraceId::Memory(id) if meant.contains(id)))
    }

    pub fn entries(&self, keys: &[String]) -> Vec<usize> {
        self.places(|line| matches!(&line.trace.id, TraceId::Entry { key, .. } if keys.contains(key)))
    }

    pub fn still_there(&self, traces: &[Trace]) -> Vec<usize> {
        self.places(|line| traces.contains(&line.trace))
    }

    fn places(&self, is_meant: impl Fn(&Line) -> bool) -> Vec<usize> {
        (0..self.lines.len()).filter(|at| is_meant(&self.lines[*at])).collect()
    }

    /// The seeds, what says the same, what was learned from the same words in the same turn, and what was made of any of
    /// it.
    pub async fn grown(
        &self,
        store: &dyn Learned,
        of: &Principal,
        seeds: Vec<usize>,
    ) -> Result<BTreeSet<usize>, StoreError> {
        let logs = self.logs(store, of, &seeds).await?;
        let mut gone: BTreeSet<usize> = seeds.iter().copied().collect();
        for seed in seeds.iter().map(|at| &self.lines[*at]) {
            let turns = turns_of(&seed.trace.origin, &logs);
            for (at, line) in self.lines.iter().enumerate() {
                // Of one message several things are observed: they are told apart by what they say.
                let is_of_another_kind =
                    line.trace.id.kind() != seed.trace.id.kind() && !line.is_reflection();
                let is_of_same_words = || {
                    is_of_another_kind
                        && line.shares_a_word_with(seed)
                        && !turns.is_disjoint(&turns_of(&line.trace.origin, &logs))
                };
                if !gone.contains(&at) && (line.says_the_same_as(seed) || is_of_same_words()) {
                    gone.insert(at);
                }
            }
        }
        self.add_what_hangs_together(&mut gone);
        Ok(gone)
    }

    /// A key whose newest version goes has none left; an answer goes with what it is kept as; a reflection with what it
    /// condenses.
    fn add_what_hangs_together(&self, gone: &mut BTreeSet<usize>) {
        loop {
            let (mut keys, mut observations) = (HashSet::new(), HashSet::new());
            for line in gone.iter().map(|at| &self.lines[*at]) {
                match &line.trace.id {
                    TraceId::Entry { key, version } if self.newest(key) == Some(*version) => {
                        keys.insert(key.as_str());
                    }
                    TraceId::Memory(MemoryId::Observation(id)) => _ = observations.insert(*id),
                    _ => {}
                }
                keys.extend(line.key.as_deref());
            }
            let hangs = |line: &Line| {
                let is_key =
                    matches!(&line.trace.id, TraceId::Entry { key, .. } if keys.contains(key.as_str()));
                let is_answer = line.key.as_deref().is_some_and(|key| keys.contains(key));
                is_key || is_answer || line.condenses.iter().any(|id| observations.contains(id))
            };
            let before = gone.len();
            gone.extend(self.places(hangs));
            if gone.len() == before {
                return;
            }
        }
    }

    fn newest(&self, wanted: &str) -> Option<u32> {
        let versions = self.lines.iter().filter_map(|line| match &line.trace.id {
            TraceId::Entry { key, version } if key == wanted => Some(*version),
            _ => None,
        });
        versions.max()
    }

    /// The events that these come from, and those that say the same and that nobody has observed yet.
    pub async fn events_of(
        &self,
        store: &dyn Learned,
        of: &Principal,
        gone: &[usize],
    ) -> Result<Vec<(SessionId, u64)>, StoreError> {
        let logs = self.logs(store, of, gone).await?;
        let mut events: BTreeSet<(String, u64)> = BTreeSet::new();
        for line in gone.iter().map(|at| &self.lines[*at]) {
            let Some(wanted) = line.statements.first() else { continue };
            if let Origin::Events { session, seqs } = &line.trace.origin {
                events.extend(seqs.iter().map(|seq| (session.to_string(), *seq)));
            }
            for (session, turn) in turns_of(&line.trace.origin, &logs) {
                let log = logs.get(&session).into_iter().flatten().filter(|event| event.turn == turn);
                let says = log.filter(|event| wanted.fit(&Statement::of(&words_of(event))) != Fit::None);
                events.extend(says.map(|event| (session.to_string(), event.seq)));
            }
        }
        for event in store.unobserved(of).await? {
            let said = Statement::of(&words_of(&event));
            let is_said = |at: &usize| {
                self.lines[*at].statements.first().is_some_and(|wanted| wanted.fit(&said) == Fit::Same)
            };
            if gone.iter().any(is_said) {
                events.insert((event.session.to_string(), event.seq));
            }
        }
        Ok(events.into_iter().map(|(session, seq)| (SessionId::new(session), seq)).collect())
    }

    /// The sessions that these come from.
    async fn logs(&self, store: &dyn Learned, of: &Principal, places: &[usize]) -> Result<Logs, StoreError> {
        let mut logs = Logs::new();
        for session in places.iter().filter_map(|at| self.lines[*at].trace.origin.session()) {
            if !logs.contains_key(session) {
                let key = SessionKeyRef { session, principal: of };
                logs.insert(session.clone(), SessionStore::load(store, key, HistoryWindow::Everything).await?);
            }
        }
        Ok(logs)
    }
}

/// The question with its answer, and what made it worth asking: both repeat what was said.
fn inquiry_line(inquiry: &Inquiry) -> Line {
    let trace = Trace::of_inquiry(inquiry);
    let answer = inquiry.answer.as_deref().unwrap_or_default();
    let statements = vec![
        Statement::of(&trace.text).about(&inquiry.topic),
        Statement::of(answer).about(&format!("{} {}", inquiry.topic, inquiry.question)),
        Statement::of(&inquiry.why),
    ];
    Line { key: inquiry.knowledge_key.clone(), ..Line::new(trace, statements) }
}

fn turns_of(origin: &Origin, logs: &Logs) -> Turns {
    let Some((session, log)) = origin.session().and_then(|session| logs.get_key_value(session)) else {
        return Turns::new();
    };
    let is_of_it = |event: &&Arc<Event>| match origin {
        Origin::Events { seqs, .. } => seqs.contains(&event.seq),
        Origin::Turn { turn, .. } => event.turn == *turn,
        Origin::Call { call, .. } => {
            let is_call = matches!(&event.body, EventBody::ToolCall { id, .. } if id.to_string() == *call);
            is_call || event.seq.to_string() == *call
        }
        Origin::Elsewhere => false,
    };
    log.iter().filter(is_of_it).map(|event| (session.clone(), event.turn.clone())).collect()
}

fn words_of(event: &Event) -> String {
    match &event.body {
        EventBody::User { text } | EventBody::Answer { text } | EventBody::Report { text } | EventBody::Note { text } => {
            text.clone()
        }
        EventBody::ToolCall { args, .. } => args.to_string(),
        EventBody::ToolResult { content, error, .. } => {
            format!("{content} {}", error.as_deref().unwrap_or_default())
        }
        _ => String::new(),
    }
}
