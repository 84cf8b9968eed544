//! Finding what fits: by kind, topic and words, the important and the recent first.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use lango_domain::event::{Principal, SessionId};
use lango_domain::hooks::{ContextError, ContextRequest, ContextSource};
use lango_domain::memory::{Memory, MemoryId, MemoryOrigin, MemoryPriority, MemoryRevision};
use lango_domain::session::StoreError;
use lango_domain::{LabeledText, token_estimate};

use super::recall_query::RecallQuery;
use super::rules::normalize_words;
use super::topics::topics;
use super::{ObservationalMemory, digest};
use crate::short_text_index::ShortTextIndex;

/// What recalled words are marked with.
pub const SOURCE: &str = "memory";
const RECALL_HEADING: &str = "Remembered from earlier conversations:";

/// Of more observations only the newest are recalled.
const MAX_INDEXED: u64 = 50_000;
const BATCH_SIZE: usize = 2_000;
/// Indexes of so many principals are kept at hand.
const MAX_INDEXES: usize = 64;
/// So many texts are compared by their words.
const CANDIDATES: usize = 200;
const MAX_UNASKED: usize = 12;
/// Longer requests are judged by their beginning: what is pasted is no question.
const MAX_QUESTION_LEN: usize = 1_000;

/// How much of a question's words a memory must cover.
const MIN_COVERAGE: f32 = 0.34;
const MIN_AUTOMATIC_COVERAGE: f32 = 0.6;

/// How sure one has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecallMode {
    /// Somebody asked for it.
    Explicit,
    /// For a request that did not ask: what fits well, and is not of the session itself.
    Automatic { session: SessionId },
}

#[derive(Clone, Debug)]
pub struct RecalledMemory {
    pub memory: Memory,
    pub score: f32,
}

/// A principal's observations, ready to be searched.
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
    /// What is remembered that fits, best first.
    pub async fn recall(
        &self,
        of: &Principal,
        question: &str,
        care: RecallMode,
        most: usize,
    ) -> Result<Vec<RecalledMemory>, StoreError> {
        let index = self.index(of);
        let mut index = index.lock().await;
        self.sync_index(of, &mut index).await?;
        let question =
            RecallQuery::parse(&question[..question.floor_char_boundary(MAX_QUESTION_LEN)]);
        let mut found = index.find(&question, &care, most);
        found.retain(|recalled| !self.is_secret(&recalled.memory.note.text));
        Ok(found)
    }

    fn index(&self, of: &Principal) -> Arc<tokio::sync::Mutex<RecallIndex>> {
        let mut indexes = self
            .inner
            .indexes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if indexes.len() >= MAX_INDEXES && !indexes.contains_key(of) {
            indexes.clear();
        }
        Arc::clone(indexes.entry(of.clone()).or_default())
    }

    /// Reads what is new; everything, where something is gone.
    async fn sync_index(&self, of: &Principal, index: &mut RecallIndex) -> Result<(), StoreError> {
        let revision = self.memories().revision(of).await?;
        if revision == index.revision {
            return Ok(());
        }
        if revision.removed != index.revision.removed {
            *index = RecallIndex::default();
        }
        let mut behind = index
            .revision
            .newest
            .max(revision.newest.saturating_sub(MAX_INDEXED));
        loop {
            let batch = self
                .memories()
                .observations_after(of, behind, BATCH_SIZE)
                .await?;
            let is_last = batch.len() < BATCH_SIZE;
            for memory in batch {
                behind = behind.max(index.add(memory));
            }
            // Whoever gives up waiting finds it further along next time.
            index.revision = MemoryRevision {
                newest: behind,
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

    fn find(&self, question: &RecallQuery, care: &RecallMode, most: usize) -> Vec<RecalledMemory> {
        let covered: HashMap<u64, f32> = match question.is_general() {
            true => HashMap::new(),
            false => self
                .text_index
                .search(&question.content, CANDIDATES)
                .into_iter()
                .collect(),
        };
        let oldest = self.memories.first_key_value().map_or(0, |(id, _)| *id);
        let span = self
            .memories
            .last_key_value()
            .map_or(1, |(id, _)| id - oldest + 1) as f32;
        let mut found: Vec<(f32, &Memory)> = Vec::new();
        for (id, known) in &self.memories {
            let covers = covered.get(id).copied().unwrap_or_default();
            if is_match(question, known, covers, care) {
                let age = (id - oldest) as f32 / span;
                found.push((
                    relevance_bonus(question, known) + covers + 0.05 * age,
                    &known.memory,
                ));
            }
        }
        found.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(y.id.cmp(&x.id)));
        let mut told = HashSet::new();
        let mut is_new = |memory: &Memory| told.insert(normalize_words(&memory.note.text));
        let best = found
            .into_iter()
            .filter(|(_, memory)| is_new(memory))
            .take(most);
        best.map(|(score, memory)| RecalledMemory {
            memory: memory.clone(),
            score,
        })
        .collect()
    }
}

/// What speaks for a memory beside its words.
fn relevance_bonus(question: &RecallQuery, known: &IndexedMemory) -> f32 {
    let topic = if question.topics & known.topics != 0 {
        0.3
    } else {
        0.0
    };
    let kind = if question.kinds.contains(&known.memory.note.kind) {
        0.15
    } else {
        0.0
    };
    let priority = match known.memory.note.priority {
        MemoryPriority::High => 0.04,
        MemoryPriority::Medium => 0.02,
        MemoryPriority::Low => 0.0,
    };
    topic + kind + priority
}

fn is_match(question: &RecallQuery, known: &IndexedMemory, covers: f32, care: &RecallMode) -> bool {
    let is_of_kind = question.kinds.contains(&known.memory.note.kind);
    let is_on_topic = question.topics & known.topics != 0;
    match care {
        RecallMode::Explicit => {
            let asks_for_kind = question.kinds.is_empty() || is_of_kind;
            covers >= MIN_COVERAGE || (asks_for_kind && (is_on_topic || question.is_general()))
        }
        RecallMode::Automatic { session } => {
            let is_here =
                known.memory.session == *session && known.memory.origin != MemoryOrigin::Asked;
            let is_meant =
                question.is_about_user && is_of_kind && (is_on_topic || question.is_general());
            !is_here && (covers >= MIN_AUTOMATIC_COVERAGE || is_meant)
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
        let chronicle = self.clone();
        async move {
            let cap = chronicle.settings().recall_tokens;
            if cap == 0 {
                return Ok(None);
            }
            let care = RecallMode::Automatic {
                session: request.session,
            };
            let found = chronicle
                .recall(&request.principal, &request.text, care, MAX_UNASKED)
                .await;
            let found = found.map_err(|error| ContextError(error.to_string()))?;
            Ok(format_recalled(&found, cap))
        }
        .boxed()
    }
}

/// As many whole lines as there is room for.
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
