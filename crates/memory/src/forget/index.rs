//! Everything that was learned for a principal, and the relations between the items.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use lango_domain::event::{Event, EventBody, Principal, SessionId, TurnId};
use lango_domain::forget::LearnedDataStore;
use lango_domain::graph::FactBatchFormat;
use lango_domain::inquiries::{Inquiry, InquiryStore};
use lango_domain::knowledge::{KnowledgeCategory, KnowledgeEntry, KnowledgeStore};
use lango_domain::memory::{MemoryId, MemoryKind, MemoryLevel, MemoryQuery, MemoryStore};
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_domain::{Content, StoreError};

use super::learned_item::{LearnedItem, LearnedItemId, LearnedItemOrigin};
use super::stated_facts::{UserFactBatch, load_user_batches};
use super::statement::{MatchLevel, Statement};
use lango_text::normalize_words;

/// Most memories that are loaded.
const MAX_MEMORIES: usize = 200_000;

pub(super) struct ForgetIndex {
    entries: Vec<ForgetIndexEntry>,
    batches: Vec<UserFactBatch>,
}

/// A learned item, prepared for comparison.
struct ForgetIndexEntry {
    item: LearnedItem,
    /// The statements that the item makes; the first is the main one.
    statements: Vec<Statement>,
    /// The observations that a reflection condenses.
    condenses: Vec<u64>,
    /// The knowledge key under which an inquiry's answer is stored.
    key: Option<String>,
}

type TurnSet = HashSet<(SessionId, TurnId)>;
type SessionLogs = HashMap<SessionId, Vec<Arc<Event>>>;

impl ForgetIndexEntry {
    fn new(item: LearnedItem, statements: Vec<Statement>) -> Self {
        Self {
            item,
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
    pub async fn load(
        store: &dyn LearnedDataStore,
        fact_format: &dyn FactBatchFormat,
        principal: &Principal,
    ) -> Result<Self, StoreError> {
        let mut entries = Vec::new();
        for level in [MemoryLevel::Observations, MemoryLevel::Reflections] {
            let query = MemoryQuery {
                level,
                session: None,
                limit: MAX_MEMORIES,
            };
            for memory in MemoryStore::list(store, principal, query).await? {
                let statement = Statement::parse(&memory.note.text).with_kind(memory.note.kind);
                let item = LearnedItem::from_memory(&memory);
                entries.push(ForgetIndexEntry {
                    condenses: memory.condenses,
                    ..ForgetIndexEntry::new(item, vec![statement])
                });
            }
        }
        for newest in KnowledgeStore::entries(store, principal).await? {
            let versions = KnowledgeStore::history(store, principal, &newest.key).await?;
            entries.extend(versions.iter().map(knowledge_entry));
        }
        for learning in KnowledgeStore::learnings(store, principal).await? {
            let item = LearnedItem::from_learning(&learning);
            let statements =
                [&item.text, &learning.trigger, &learning.fix].map(|text| Statement::parse(text));
            entries.push(ForgetIndexEntry::new(item, statements.into()));
        }
        let inquiries = InquiryStore::inquiries(store, principal).await?;
        entries.extend(inquiries.iter().map(inquiry_entry));
        let batches = load_user_batches(store, fact_format, principal).await?;
        for batch in &batches {
            for (at, text) in batch.statements.iter().enumerate() {
                let id = LearnedItemId::Fact {
                    batch: batch.number,
                    at,
                };
                let item = LearnedItem {
                    id,
                    text: text.clone(),
                    origin: LearnedItemOrigin::from_fact_source(&batch.source),
                };
                entries.push(ForgetIndexEntry::new(item, vec![Statement::parse(text)]));
            }
        }
        Ok(Self { entries, batches })
    }

    pub fn items_at(&self, positions: impl IntoIterator<Item = usize>) -> Vec<LearnedItem> {
        positions
            .into_iter()
            .map(|at| self.entries[at].item.clone())
            .collect()
    }

    pub fn batch_body(&self, batch: u64) -> Option<&[u8]> {
        let mut batches = self.batches.iter();
        let found = batches.find(|user_batch| user_batch.number == batch);
        found.map(|user_batch| user_batch.body.as_slice())
    }

    pub fn normalized_text(&self, at: usize) -> Vec<String> {
        normalize_words(&self.entries[at].item.text)
    }

    pub fn all_positions(&self) -> Vec<usize> {
        (0..self.entries.len()).collect()
    }

    /// Returns the items with this match level. A reflection that only contains the statement is
    /// excluded; it is forgotten together with the observations that it condenses.
    pub fn find_matches(&self, wanted: &Statement, level: MatchLevel) -> Vec<usize> {
        let matches = |entry: &ForgetIndexEntry| {
            entry.match_level(wanted) == level
                && (level == MatchLevel::Same || !entry.is_reflection())
        };
        self.positions_where(matches)
    }

    /// Returns the memories with these ids, including the observations that a reflection condenses.
    pub fn find_memories(&self, ids: &[MemoryId]) -> Vec<usize> {
        let mut wanted_ids: HashSet<MemoryId> = ids.iter().copied().collect();
        for entry in self.entries.iter().filter(|entry| entry.is_reflection()) {
            if matches!(entry.item.id, LearnedItemId::Memory(id) if ids.contains(&id)) {
                wanted_ids.extend(entry.condenses.iter().map(|id| MemoryId::Observation(*id)));
            }
        }
        self.positions_where(
            |entry| matches!(&entry.item.id, LearnedItemId::Memory(id) if wanted_ids.contains(id)),
        )
    }

    pub fn find_keys(&self, keys: &[String]) -> Vec<usize> {
        self.positions_where(
            |entry| matches!(&entry.item.id, LearnedItemId::Entry { key, .. } if keys.contains(key)),
        )
    }

    pub fn find_existing(&self, items: &[LearnedItem]) -> Vec<usize> {
        self.positions_where(|entry| items.contains(&entry.item))
    }

    fn positions_where(&self, predicate: impl Fn(&ForgetIndexEntry) -> bool) -> Vec<usize> {
        (0..self.entries.len())
            .filter(|at| predicate(&self.entries[*at]))
            .collect()
    }

    /// Returns the seeds, the items that state the same, the items learned from the same turn about
    /// the same subject, and everything that depends on them.
    pub async fn expand_seeds(
        &self,
        store: &dyn LearnedDataStore,
        principal: &Principal,
        seeds: Vec<usize>,
    ) -> Result<BTreeSet<usize>, StoreError> {
        let logs = self.load_logs(store, principal, &seeds).await?;
        let mut removed: BTreeSet<usize> = seeds.iter().copied().collect();
        for seed in seeds.iter().map(|at| &self.entries[*at]) {
            let turns = origin_turns(&seed.item.origin, &logs);
            for (at, entry) in self.entries.iter().enumerate() {
                // Several observations may come from one message; they differ in what they state.
                let has_other_kind =
                    entry.item.id.kind() != seed.item.id.kind() && !entry.is_reflection();
                let has_same_source = || {
                    has_other_kind
                        && entry.shares_term_with(seed)
                        && !turns.is_disjoint(&origin_turns(&entry.item.origin, &logs))
                };
                if !removed.contains(&at) && (entry.is_same_as(seed) || has_same_source()) {
                    removed.insert(at);
                }
            }
        }
        self.add_dependents(&mut removed);
        Ok(removed)
    }

    /// Adds dependent items: all versions of a key whose newest version is removed, an inquiry and the
    /// entry with its answer, and the reflections that condense a removed observation.
    fn add_dependents(&self, removed: &mut BTreeSet<usize>) {
        loop {
            let (mut keys, mut observations) = (HashSet::new(), HashSet::new());
            for entry in removed.iter().map(|at| &self.entries[*at]) {
                match &entry.item.id {
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
                keys.extend(entry.key.as_deref());
            }
            let is_dependent = |entry: &ForgetIndexEntry| {
                let entry_key = match &entry.item.id {
                    LearnedItemId::Entry { key, .. } => Some(key),
                    _ => entry.key.as_ref(),
                };
                entry_key.is_some_and(|key| keys.contains(key.as_str()))
                    || entry.condenses.iter().any(|id| observations.contains(id))
            };
            let before = removed.len();
            removed.extend(self.positions_where(is_dependent));
            if removed.len() == before {
                return;
            }
        }
    }

    fn newest_version(&self, wanted: &str) -> Option<u32> {
        let versions = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.item.id {
                LearnedItemId::Entry { key, version } if key == wanted => Some(*version),
                _ => None,
            });
        versions.max()
    }

    /// Returns the events that the removed items come from, and the unobserved events that state the
    /// same.
    pub async fn source_events(
        &self,
        store: &dyn LearnedDataStore,
        principal: &Principal,
        removed: &[usize],
    ) -> Result<Vec<(SessionId, u64)>, StoreError> {
        let logs = self.load_logs(store, principal, removed).await?;
        let mut events: BTreeSet<(String, u64)> = BTreeSet::new();
        for entry in removed.iter().map(|at| &self.entries[*at]) {
            let Some(wanted) = entry.statements.first() else {
                continue;
            };
            if let LearnedItemOrigin::Events { session, seqs } = &entry.item.origin {
                events.extend(seqs.iter().map(|seq| (session.to_string(), *seq)));
            }
            for (session, turn) in origin_turns(&entry.item.origin, &logs) {
                let log = logs
                    .get(&session)
                    .into_iter()
                    .flatten()
                    .filter(|event| event.turn == turn);
                let matching = log.filter(|event| {
                    wanted.match_level(&Statement::parse(&event_text(event))) != MatchLevel::None
                });
                events.extend(matching.map(|event| (session.to_string(), event.seq)));
            }
        }
        for event in store.unobserved_events(principal).await? {
            let statement = Statement::parse(&event_text(&event));
            let is_stated = |at: &usize| {
                self.entries[*at]
                    .statements
                    .first()
                    .is_some_and(|wanted| wanted.match_level(&statement) == MatchLevel::Same)
            };
            if removed.iter().any(is_stated) {
                events.insert((event.session.to_string(), event.seq));
            }
        }
        Ok(events
            .into_iter()
            .map(|(session, seq)| (SessionId::new(session), seq))
            .collect())
    }

    /// Loads the sessions that these items come from.
    async fn load_logs(
        &self,
        store: &dyn LearnedDataStore,
        principal: &Principal,
        positions: &[usize],
    ) -> Result<SessionLogs, StoreError> {
        let mut logs = SessionLogs::new();
        for session in positions
            .iter()
            .filter_map(|at| self.entries[*at].item.origin.session())
        {
            if !logs.contains_key(session) {
                let key = SessionKeyRef { session, principal };
                logs.insert(
                    session.clone(),
                    SessionStore::load(store, key, HistoryWindow::Everything).await?,
                );
            }
        }
        Ok(logs)
    }
}

fn knowledge_entry(entry: &KnowledgeEntry) -> ForgetIndexEntry {
    let statement = Statement::parse(&entry.content).with_subject(&entry.key);
    let statement = if entry.category == KnowledgeCategory::Preference {
        statement.with_kind(MemoryKind::Preference)
    } else {
        statement
    };
    ForgetIndexEntry::new(LearnedItem::from_entry(entry), vec![statement])
}

/// Includes the question with its answer and the reason for asking; both may repeat the user's words.
fn inquiry_entry(inquiry: &Inquiry) -> ForgetIndexEntry {
    let item = LearnedItem::from_inquiry(inquiry);
    let answer = inquiry.answer.as_deref().unwrap_or_default();
    let statements = vec![
        Statement::parse(&item.text).with_subject(&inquiry.topic),
        Statement::parse(answer).with_subject(&format!("{} {}", inquiry.topic, inquiry.question)),
        Statement::parse(&inquiry.why),
    ];
    ForgetIndexEntry {
        key: inquiry.knowledge_key.clone(),
        ..ForgetIndexEntry::new(item, statements)
    }
}

fn origin_turns(origin: &LearnedItemOrigin, logs: &SessionLogs) -> TurnSet {
    let Some((session, log)) = origin
        .session()
        .and_then(|session| logs.get_key_value(session))
    else {
        return TurnSet::new();
    };
    let is_origin = |event: &&Arc<Event>| match origin {
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
        .filter(is_origin)
        .map(|event| (session.clone(), event.turn.clone()))
        .collect()
}

fn event_text(event: &Event) -> String {
    match &event.body {
        EventBody::User(Content { text, .. })
        | EventBody::Answer(Content { text, .. })
        | EventBody::Report(Content { text, .. })
        | EventBody::Note { text } => text.clone(),
        EventBody::ToolCall { args, .. } => args.to_string(),
        EventBody::ToolResult { content, error, .. } => {
            format!("{content} {}", error.as_deref().unwrap_or_default())
        }
        _ => String::new(),
    }
}
