//! Everything that was learned for a principal, side by side, and what belongs together in it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use lango_domain::event::{Event, EventBody, Principal, SessionId, TurnId};
use lango_domain::inquiries::{Inquiry, InquiryStore};
use lango_domain::knowledge::{KnowledgeCategory, KnowledgeStore};
use lango_domain::memory::{MemoryId, MemoryKind, MemoryLevel, MemoryQuery, MemoryStore};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, StoreError};

use super::LearnedDataStore;
use super::learned_item::{LearnedItem, LearnedItemId, LearnedItemOrigin};
use super::statement::{MatchLevel, Statement};
use crate::graph::user_batches::{UserFactBatch, load_user_batches};
use crate::memory::normalize_words;

/// More memories than this are not looked through at once.
const MAX_MEMORIES: usize = 200_000;

pub(super) struct ForgetIndex {
    entries: Vec<ForgetIndexEntry>,
    batches: Vec<UserFactBatch>,
}

/// Something that was learned, ready to be compared.
struct ForgetIndexEntry {
    item: LearnedItem,
    /// What it says, in one or several places.
    statements: Vec<Statement>,
    /// Observations that a reflection condenses.
    condenses: Vec<u64>,
    /// The key that an inquiry's answer is kept under.
    key: Option<String>,
}

type TurnSet = HashSet<(SessionId, TurnId)>;
type SessionLogs = HashMap<SessionId, Vec<Arc<Event>>>;

impl ForgetIndexEntry {
    fn new(trace: LearnedItem, statements: Vec<Statement>) -> Self {
        Self {
            item: trace,
            statements,
            condenses: Vec::new(),
            key: None,
        }
    }

    fn match_level(&self, wanted: &Statement) -> MatchLevel {
        self.statements
            .iter()
            .map(|statement| wanted.match_level(statement))
            .max()
            .unwrap_or(MatchLevel::None)
    }

    fn is_reflection(&self) -> bool {
        matches!(self.item.id, LearnedItemId::Memory(MemoryId::Reflection(_)))
    }

    fn is_same_as(&self, other: &Self) -> bool {
        other
            .statements
            .first()
            .is_some_and(|wanted| self.match_level(wanted) == MatchLevel::Same)
    }

    fn shares_term_with(&self, other: &Self) -> bool {
        let Some(wanted) = other.statements.first() else {
            return false;
        };
        self.statements
            .iter()
            .any(|statement| wanted.shares_term_with(statement))
    }
}

impl ForgetIndex {
    pub async fn load(store: &dyn LearnedDataStore, of: &Principal) -> Result<Self, StoreError> {
        let mut lines = Vec::new();
        for what in [MemoryLevel::Observations, MemoryLevel::Reflections] {
            let which = MemoryQuery {
                level: what,
                session: None,
                limit: MAX_MEMORIES,
            };
            for memory in MemoryStore::list(store, of, which).await? {
                let said = Statement::parse(&memory.note.text).with_kind(memory.note.kind);
                let line = ForgetIndexEntry::new(LearnedItem::from_memory(&memory), vec![said]);
                lines.push(ForgetIndexEntry {
                    condenses: memory.condenses,
                    ..line
                });
            }
        }
        for newest in KnowledgeStore::entries(store, of).await? {
            for entry in KnowledgeStore::history(store, of, &newest.key).await? {
                let said = Statement::parse(&entry.content).with_subject(&entry.key);
                let is_preference = entry.category == KnowledgeCategory::Preference;
                let said = if is_preference {
                    said.with_kind(MemoryKind::Preference)
                } else {
                    said
                };
                lines.push(ForgetIndexEntry::new(
                    LearnedItem::from_entry(&entry),
                    vec![said],
                ));
            }
        }
        for learning in KnowledgeStore::learnings(store, of).await? {
            let trace = LearnedItem::from_learning(&learning);
            let said = [
                Statement::parse(&trace.text),
                Statement::parse(&learning.trigger),
                Statement::parse(&learning.fix),
            ];
            lines.push(ForgetIndexEntry::new(trace, said.into()));
        }
        for inquiry in InquiryStore::inquiries(store, of).await? {
            lines.push(inquiry_entry(&inquiry));
        }
        let batches = load_user_batches(store, of).await?;
        for batch in &batches {
            for (at, text) in batch.statements.iter().enumerate() {
                let id = LearnedItemId::Fact {
                    batch: batch.number,
                    at,
                };
                let trace = LearnedItem {
                    id,
                    text: text.clone(),
                    origin: LearnedItemOrigin::from_fact_source(&batch.source),
                };
                lines.push(ForgetIndexEntry::new(trace, vec![Statement::parse(text)]));
            }
        }
        Ok(Self {
            entries: lines,
            batches,
        })
    }

    pub fn items_at(&self, places: impl IntoIterator<Item = usize>) -> Vec<LearnedItem> {
        places
            .into_iter()
            .map(|at| self.entries[at].item.clone())
            .collect()
    }

    pub fn batch_body(&self, batch: u64) -> Option<&[u8]> {
        self.batches
            .iter()
            .find(|own| own.number == batch)
            .map(|own| own.body.as_slice())
    }

    pub fn normalized_text(&self, at: usize) -> Vec<String> {
        normalize_words(&self.entries[at].item.text)
    }

    pub fn all_positions(&self) -> Vec<usize> {
        (0..self.entries.len()).collect()
    }

    /// What fits just so. A reflection that says it among other things goes only with what it was made of.
    pub fn find_matches(&self, wanted: &Statement, fit: MatchLevel) -> Vec<usize> {
        let is_meant = |line: &ForgetIndexEntry| {
            line.match_level(wanted) == fit && (fit == MatchLevel::Same || !line.is_reflection())
        };
        self.positions_where(is_meant)
    }

    /// Memories of these ids; a reflection stands for what it condenses.
    pub fn find_memories(&self, ids: &[MemoryId]) -> Vec<usize> {
        let mut meant: HashSet<MemoryId> = ids.iter().copied().collect();
        for line in self.entries.iter().filter(|line| line.is_reflection()) {
            if matches!(line.item.id, LearnedItemId::Memory(id) if ids.contains(&id)) {
                meant.extend(line.condenses.iter().map(|id| MemoryId::Observation(*id)));
            }
        }
        self.positions_where(
            |line| matches!(&line.item.id, LearnedItemId::Memory(id) if meant.contains(id)),
        )
    }

    pub fn find_keys(&self, keys: &[String]) -> Vec<usize> {
        self.positions_where(
            |line| matches!(&line.item.id, LearnedItemId::Entry { key, .. } if keys.contains(key)),
        )
    }

    pub fn find_existing(&self, traces: &[LearnedItem]) -> Vec<usize> {
        self.positions_where(|line| traces.contains(&line.item))
    }

    fn positions_where(&self, is_meant: impl Fn(&ForgetIndexEntry) -> bool) -> Vec<usize> {
        (0..self.entries.len())
            .filter(|at| is_meant(&self.entries[*at]))
            .collect()
    }

    /// The seeds, what says the same, what was learned from the same words in the same turn, and what was made of any of
    /// it.
    pub async fn expand_seeds(
        &self,
        store: &dyn LearnedDataStore,
        of: &Principal,
        seeds: Vec<usize>,
    ) -> Result<BTreeSet<usize>, StoreError> {
        let logs = self.load_logs(store, of, &seeds).await?;
        let mut gone: BTreeSet<usize> = seeds.iter().copied().collect();
        for seed in seeds.iter().map(|at| &self.entries[*at]) {
            let turns = origin_turns(&seed.item.origin, &logs);
            for (at, line) in self.entries.iter().enumerate() {
                // Of one message several things are observed: they are told apart by what they say.
                let is_of_another_kind =
                    line.item.id.kind() != seed.item.id.kind() && !line.is_reflection();
                let is_of_same_words = || {
                    is_of_another_kind
                        && line.shares_term_with(seed)
                        && !turns.is_disjoint(&origin_turns(&line.item.origin, &logs))
                };
                if !gone.contains(&at) && (line.is_same_as(seed) || is_of_same_words()) {
                    gone.insert(at);
                }
            }
        }
        self.add_dependents(&mut gone);
        Ok(gone)
    }

    /// A key whose newest version goes has none left; an answer goes with what it is kept as; a reflection with what it
    /// condenses.
    fn add_dependents(&self, gone: &mut BTreeSet<usize>) {
        loop {
            let (mut keys, mut observations) = (HashSet::new(), HashSet::new());
            for line in gone.iter().map(|at| &self.entries[*at]) {
                match &line.item.id {
                    LearnedItemId::Entry { key, version }
                        if self.newest_version(key) == Some(*version) =>
                    {
                        keys.insert(key.as_str());
                    }
                    LearnedItemId::Memory(MemoryId::Observation(id)) => {
                        _ = observations.insert(*id)
                    }
                    _ => {}
                }
                keys.extend(line.key.as_deref());
            }
            let hangs = |line: &ForgetIndexEntry| {
                let is_key = matches!(&line.item.id, LearnedItemId::Entry { key, .. } if keys.contains(key.as_str()));
                let is_answer = line.key.as_deref().is_some_and(|key| keys.contains(key));
                is_key || is_answer || line.condenses.iter().any(|id| observations.contains(id))
            };
            let before = gone.len();
            gone.extend(self.positions_where(hangs));
            if gone.len() == before {
                return;
            }
        }
    }

    fn newest_version(&self, wanted: &str) -> Option<u32> {
        let versions = self.entries.iter().filter_map(|line| match &line.item.id {
            LearnedItemId::Entry { key, version } if key == wanted => Some(*version),
            _ => None,
        });
        versions.max()
    }

    /// The events that these come from, and those that say the same and that nobody has observed yet.
    pub async fn source_events(
        &self,
        store: &dyn LearnedDataStore,
        of: &Principal,
        gone: &[usize],
    ) -> Result<Vec<(SessionId, u64)>, StoreError> {
        let logs = self.load_logs(store, of, gone).await?;
        let mut events: BTreeSet<(String, u64)> = BTreeSet::new();
        for line in gone.iter().map(|at| &self.entries[*at]) {
            let Some(wanted) = line.statements.first() else {
                continue;
            };
            if let LearnedItemOrigin::Events { session, seqs } = &line.item.origin {
                events.extend(seqs.iter().map(|seq| (session.to_string(), *seq)));
            }
            for (session, turn) in origin_turns(&line.item.origin, &logs) {
                let log = logs
                    .get(&session)
                    .into_iter()
                    .flatten()
                    .filter(|event| event.turn == turn);
                let says = log.filter(|event| {
                    wanted.match_level(&Statement::parse(&event_text(event))) != MatchLevel::None
                });
                events.extend(says.map(|event| (session.to_string(), event.seq)));
            }
        }
        for event in store.unobserved_events(of).await? {
            let said = Statement::parse(&event_text(&event));
            let is_said = |at: &usize| {
                self.entries[*at]
                    .statements
                    .first()
                    .is_some_and(|wanted| wanted.match_level(&said) == MatchLevel::Same)
            };
            if gone.iter().any(is_said) {
                events.insert((event.session.to_string(), event.seq));
            }
        }
        Ok(events
            .into_iter()
            .map(|(session, seq)| (SessionId::new(session), seq))
            .collect())
    }

    /// The sessions that these come from.
    async fn load_logs(
        &self,
        store: &dyn LearnedDataStore,
        of: &Principal,
        places: &[usize],
    ) -> Result<SessionLogs, StoreError> {
        let mut logs = SessionLogs::new();
        for session in places
            .iter()
            .filter_map(|at| self.entries[*at].item.origin.session())
        {
            if !logs.contains_key(session) {
                let key = SessionKeyRef {
                    session,
                    principal: of,
                };
                logs.insert(
                    session.clone(),
                    SessionStore::load(store, key, HistoryWindow::Everything).await?,
                );
            }
        }
        Ok(logs)
    }
}

/// The question with its answer, and what made it worth asking: both repeat what was said.
fn inquiry_entry(inquiry: &Inquiry) -> ForgetIndexEntry {
    let trace = LearnedItem::from_inquiry(inquiry);
    let answer = inquiry.answer.as_deref().unwrap_or_default();
    let statements = vec![
        Statement::parse(&trace.text).with_subject(&inquiry.topic),
        Statement::parse(answer).with_subject(&format!("{} {}", inquiry.topic, inquiry.question)),
        Statement::parse(&inquiry.why),
    ];
    ForgetIndexEntry {
        key: inquiry.knowledge_key.clone(),
        ..ForgetIndexEntry::new(trace, statements)
    }
}

fn origin_turns(origin: &LearnedItemOrigin, logs: &SessionLogs) -> TurnSet {
    let Some((session, log)) = origin
        .session()
        .and_then(|session| logs.get_key_value(session))
    else {
        return TurnSet::new();
    };
    let is_of_it = |event: &&Arc<Event>| match origin {
        LearnedItemOrigin::Events { seqs, .. } => seqs.contains(&event.seq),
        LearnedItemOrigin::Turn { turn, .. } => event.turn == *turn,
        LearnedItemOrigin::Call { call, .. } => {
            let is_call =
                matches!(&event.body, EventBody::ToolCall { id, .. } if id.to_string() == *call);
            is_call || event.seq.to_string() == *call
        }
        LearnedItemOrigin::NoSession => false,
    };
    log.iter()
        .filter(is_of_it)
        .map(|event| (session.clone(), event.turn.clone()))
        .collect()
}

fn event_text(event: &Event) -> String {
    match &event.body {
        EventBody::User { text }
        | EventBody::Answer { text }
        | EventBody::Report { text }
        | EventBody::Note { text } => text.clone(),
        EventBody::ToolCall { args, .. } => args.to_string(),
        EventBody::ToolResult { content, error, .. } => {
            format!("{content} {}", error.as_deref().unwrap_or_default())
        }
        _ => String::new(),
    }
}
