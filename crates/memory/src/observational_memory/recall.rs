//! Recalls memories by kind, topic and words, important and recent ones first.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use lango_domain::LabeledText;
use lango_domain::StoreError;
use lango_domain::event::{Principal, SessionId};
use lango_domain::hooks::{ContextError, ContextRequest, ContextSource};
use lango_domain::memory::{Memory, MemoryId, MemoryOrigin, MemoryPriority, MemoryRevision};
use lango_text::{normalize_words, token_estimate};

use super::recall_query::RecallQuery;
use super::topics::topics;
use super::{ObservationalMemory, digest};
use lango_text::short_text_index::ShortTextIndex;

/// Name of the context source for recalled memories.
pub const SOURCE: &str = "memory";
const RECALL_HEADING: &str = "Remembered from earlier conversations:";

/// Most observations per principal that are indexed, the newest first.
const MAX_INDEXED: u64 = 50_000;
const BATCH_SIZE: usize = 2_000;
/// Most principals whose indexes stay in memory.
const MAX_INDEXES: usize = 64;
/// Most candidates of the text search.
const CANDIDATES: usize = 200;
/// Most memories recalled automatically.
const MAX_AUTOMATIC: usize = 12;
/// Most bytes of a request that are analyzed; the rest of a long request is probably pasted text.
const MAX_QUESTION_LEN: usize = 1_000;

/// Minimum share of a query's words that a memory must contain.
const MIN_COVERAGE: f32 = 0.34;
/// The same for automatic recall.
const MIN_AUTOMATIC_COVERAGE: f32 = 0.6;

/// Selects how strictly memories are matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecallMode {
    /// The user or an agent asked for memories.
    Explicit,
    /// A request without a question about memory: only good matches, and none from its own session.
    Automatic { session: SessionId },
}

#[derive(Clone, Debug)]
pub struct RecalledMemory {
    pub memory: Memory,
    pub score: f32,
}

/// A search index of one principal's observations.
#[derive(Default)]
pub(super) struct RecallIndex {
    revision: MemoryRevision,
    text_index: ShortTextIndex,
    memories: BTreeMap<u64, IndexedMemory>,
}

struct IndexedMemory {
    memory: Memory,
    topics: u16,
}

impl ObservationalMemory {
    /// Returns the memories that match a query, best first.
    pub async fn recall(
        &self,
        principal: &Principal,
        query: &str,
        mode: RecallMode,
        limit: usize,
    ) -> Result<Vec<RecalledMemory>, StoreError> {
        let index = self.index(principal);
        let mut index = index.lock().await;
        self.sync_index(principal, &mut index).await?;
        let query = RecallQuery::parse(&query[..query.floor_char_boundary(MAX_QUESTION_LEN)]);
        let mut found = index.find(&query, &mode, limit);
        found.retain(|recalled| !self.is_secret(&recalled.memory.note.text));
        Ok(found)
    }

    fn index(&self, principal: &Principal) -> Arc<tokio::sync::Mutex<RecallIndex>> {
        let mut indexes = self
            .inner
            .indexes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if indexes.len() >= MAX_INDEXES && !indexes.contains_key(principal) {
            indexes.clear();
        }
        Arc::clone(indexes.entry(principal.clone()).or_default())
    }

    /// Adds new observations to the index. Rebuilds the index if any were removed.
    async fn sync_index(
        &self,
        principal: &Principal,
        index: &mut RecallIndex,
    ) -> Result<(), StoreError> {
        let revision = self.memories().revision(principal).await?;
        if revision == index.revision {
            return Ok(());
        }
        if revision.removed != index.revision.removed {
            *index = RecallIndex::default();
        }
        let mut after = index
            .revision
            .newest
            .max(revision.newest.saturating_sub(MAX_INDEXED));
        loop {
            let batch = self
                .memories()
                .observations_after(principal, after, BATCH_SIZE)
                .await?;
            let is_last = batch.len() < BATCH_SIZE;
            for memory in batch {
                after = after.max(index.add(memory));
            }
            // Record the progress, so that a cancelled sync continues here next time.
            index.revision = MemoryRevision {
                newest: after,
                removed: revision.removed,
            };
            if is_last {
                return Ok(());
            }
        }
    }
}

impl RecallIndex {
    fn add(&mut self, memory: Memory) -> u64 {
        let (MemoryId::Observation(id) | MemoryId::Reflection(id)) = memory.id;
        let text = &memory.note.text;
        self.text_index.add(id, text);
        let topics = topics(&normalize_words(text), text);
        self.memories.insert(id, IndexedMemory { memory, topics });
        id
    }

    fn find(&self, query: &RecallQuery, mode: &RecallMode, limit: usize) -> Vec<RecalledMemory> {
        let coverage_by_id: HashMap<u64, f32> = match query.is_general() {
            true => HashMap::new(),
            false => self
                .text_index
                .search(&query.content, CANDIDATES)
                .into_iter()
                .collect(),
        };
        let oldest = self.memories.first_key_value().map_or(0, |(id, _)| *id);
        let span = self
            .memories
            .last_key_value()
            .map_or(1, |(id, _)| id - oldest + 1) as f32;
        let mut found: Vec<(f32, &Memory)> = Vec::new();
        for (id, indexed) in &self.memories {
            let coverage = coverage_by_id.get(id).copied().unwrap_or_default();
            if is_match(query, indexed, coverage, mode) {
                let age = (id - oldest) as f32 / span;
                found.push((
                    relevance_bonus(query, indexed) + coverage + 0.05 * age,
                    &indexed.memory,
                ));
            }
        }
        found.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(y.id.cmp(&x.id)));
        let mut seen_texts = HashSet::new();
        let mut is_new = |memory: &Memory| seen_texts.insert(normalize_words(&memory.note.text));
        let best = found
            .into_iter()
            .filter(|(_, memory)| is_new(memory))
            .take(limit);
        best.map(|(score, memory)| RecalledMemory {
            memory: memory.clone(),
            score,
        })
        .collect()
    }
}

/// Returns the score for topic, kind and priority, in addition to the coverage of words.
fn relevance_bonus(query: &RecallQuery, indexed: &IndexedMemory) -> f32 {
    let topic = if query.topics & indexed.topics != 0 {
        0.3
    } else {
        0.0
    };
    let kind = if query.kinds.contains(&indexed.memory.note.kind) {
        0.15
    } else {
        0.0
    };
    let priority = match indexed.memory.note.priority {
        MemoryPriority::High => 0.04,
        MemoryPriority::Medium => 0.02,
        MemoryPriority::Low => 0.0,
    };
    topic + kind + priority
}

fn is_match(
    query: &RecallQuery,
    indexed: &IndexedMemory,
    coverage: f32,
    mode: &RecallMode,
) -> bool {
    let has_kind = query.kinds.contains(&indexed.memory.note.kind);
    let is_on_topic = query.topics & indexed.topics != 0;
    match mode {
        RecallMode::Explicit => {
            let asks_for_kind = query.kinds.is_empty() || has_kind;
            coverage >= MIN_COVERAGE || (asks_for_kind && (is_on_topic || query.is_general()))
        }
        RecallMode::Automatic { session } => {
            let is_same_session =
                indexed.memory.session == *session && indexed.memory.origin != MemoryOrigin::Asked;
            let asks_for_it =
                query.is_about_user && has_kind && (is_on_topic || query.is_general());
            !is_same_session && (coverage >= MIN_AUTOMATIC_COVERAGE || asks_for_it)
        }
    }
}

impl ContextSource for ObservationalMemory {
    fn name(&self) -> &str {
        SOURCE
    }

    fn max_tokens(&self) -> usize {
        self.settings().recall_tokens
    }

    fn gather(
        &self,
        request: ContextRequest,
    ) -> BoxFuture<'static, Result<Option<LabeledText>, ContextError>> {
        let memory = self.clone();
        async move {
            let cap = memory.settings().recall_tokens;
            if cap == 0 {
                return Ok(None);
            }
            let mode = RecallMode::Automatic {
                session: request.session,
            };
            let found = memory
                .recall(&request.principal, &request.text, mode, MAX_AUTOMATIC)
                .await;
            let found = found.map_err(|error| ContextError(error.to_string()))?;
            Ok(format_recalled(&found, cap))
        }
        .boxed()
    }
}

/// Formats as many whole lines as fit into the token cap.
fn format_recalled(found: &[RecalledMemory], cap: usize) -> Option<LabeledText> {
    let mut text = RECALL_HEADING.to_owned();
    for recalled in found {
        let longer = format!("{text}\n{}", digest::memory_line(&recalled.memory));
        if token_estimate::estimate(&longer) > cap {
            break;
        }
        text = longer;
    }
    let label = digest::joined_label(found.iter().map(|recalled| &recalled.memory));
    (text.len() > RECALL_HEADING.len()).then_some(LabeledText { text, label })
}
