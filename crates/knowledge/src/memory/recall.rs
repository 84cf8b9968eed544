//! Finding what fits: by kind, topic and words, the important and the recent first.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use lango_domain::event::{Principal, SessionId};
use lango_domain::memory::{Memory, MemoryId, MemoryOrigin, Priority, Revision};
use lango_domain::seams::{ContextError, ContextRequest, ContextSource};
use lango_domain::session::StoreError;
use lango_domain::{Labelled, token_estimate};

use super::recall_query::RecallQuery;
use super::rules::plain_words;
use super::topics::topics;
use super::{ObservationalMemory, digest};
use crate::short_text_index::ShortTextIndex;

/// What recalled words are marked with.
pub const SOURCE: &str = "memory";
const HEAD: &str = "Remembered from earlier conversations:";

/// Of more observations only the newest are recalled.
const MOST_INDEXED: u64 = 50_000;
const BATCH: usize = 2_000;
/// Indexes of so many principals are kept at hand.
const MOST_INDEXES: usize = 64;
/// So many texts are compared by their words.
const CANDIDATES: usize = 200;
const MOST_UNASKED: usize = 12;
/// Longer requests are judged by their beginning: what is pasted is no question.
const LONGEST_QUESTION: usize = 1_000;

/// How much of a question's words a memory must cover.
const FITS: f32 = 0.34;
const SURELY_FITS: f32 = 0.6;

/// How sure one has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecallMode {
    /// Somebody asked for it.
    Asked,
    /// For a request that did not ask: what fits well, and is not of the session itself.
    Unasked { session: SessionId },
}

#[derive(Clone, Debug)]
pub struct Recalled {
    pub memory: Memory,
    pub score: f32,
}

/// A principal's observations, ready to be searched.
#[derive(Default)]
pub(super) struct RecallIndex {
    revision: Revision,
    list: ShortTextIndex,
    known: BTreeMap<u64, IndexedMemory>,
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
    ) -> Result<Vec<Recalled>, StoreError> {
        let index = self.index(of);
        let mut index = index.lock().await;
        self.bring_up_to_date(of, &mut index).await?;
        let question = RecallQuery::read(&question[..question.floor_char_boundary(LONGEST_QUESTION)]);
        let mut found = index.find(&question, &care, most);
        found.retain(|recalled| !self.is_secret(&recalled.memory.note.text));
        Ok(found)
    }

    fn index(&self, of: &Principal) -> Arc<tokio::sync::Mutex<RecallIndex>> {
        let mut indexes = self.shared.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if indexes.len() >= MOST_INDEXES && !indexes.contains_key(of) {
            indexes.clear();
        }
        Arc::clone(indexes.entry(of.clone()).or_default())
    }

    /// Reads what is new; everything, where something is gone.
    async fn bring_up_to_date(&self, of: &Principal, index: &mut RecallIndex) -> Result<(), StoreError> {
        let revision = self.memories().revision(of).await?;
        if revision == index.revision {
            return Ok(());
        }
        if revision.gone != index.revision.gone {
            *index = RecallIndex::default();
        }
        let mut behind = index.revision.newest.max(revision.newest.saturating_sub(MOST_INDEXED));
        loop {
            let batch = self.memories().observations_behind(of, behind, BATCH).await?;
            let is_last = batch.len() < BATCH;
            for memory in batch {
                behind = behind.max(index.add(memory));
            }
            // Whoever gives up waiting finds it further along next time.
            index.revision = Revision { newest: behind, gone: revision.gone };
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
        self.list.add(id, text);
        let topics = topics(&plain_words(text), text);
        self.known.insert(id, IndexedMemory { memory, topics });
        id
    }

    fn find(&self, question: &RecallQuery, care: &RecallMode, most: usize) -> Vec<Recalled> {
        let covered: HashMap<u64, f32> = match question.is_general() {
            true => HashMap::new(),
            false => self.list.search(&question.content, CANDIDATES).into_iter().collect(),
        };
        let oldest = self.known.first_key_value().map_or(0, |(id, _)| *id);
        let span = self.known.last_key_value().map_or(1, |(id, _)| id - oldest + 1) as f32;
        let mut found: Vec<(f32, &Memory)> = Vec::new();
        for (id, known) in &self.known {
            let covers = covered.get(id).copied().unwrap_or_default();
            if fits(question, known, covers, care) {
                let age = (id - oldest) as f32 / span;
                found.push((worth(question, known) + covers + 0.05 * age, &known.memory));
            }
        }
        found.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(y.id.cmp(&x.id)));
        let mut told = HashSet::new();
        let mut is_new = |memory: &Memory| told.insert(plain_words(&memory.note.text));
        let best = found.into_iter().filter(|(_, memory)| is_new(memory)).take(most);
        best.map(|(score, memory)| Recalled { memory: memory.clone(), score }).collect()
    }
}

/// What speaks for a memory beside its words.
fn worth(question: &RecallQuery, known: &IndexedMemory) -> f32 {
    let topic = if question.topics & known.topics != 0 { 0.3 } else { 0.0 };
    let kind = if question.kinds.contains(&known.memory.note.kind) { 0.15 } else { 0.0 };
    let priority = match known.memory.note.priority {
        Priority::High => 0.04,
        Priority::Medium => 0.02,
        Priority::Low => 0.0,
    };
    topic + kind + priority
}

fn fits(question: &RecallQuery, known: &IndexedMemory, covers: f32, care: &RecallMode) -> bool {
    let is_of_kind = question.kinds.contains(&known.memory.note.kind);
    let is_on_topic = question.topics & known.topics != 0;
    match care {
        RecallMode::Asked => {
            let asks_for_kind = question.kinds.is_empty() || is_of_kind;
            covers >= FITS || (asks_for_kind && (is_on_topic || question.is_general()))
        }
        RecallMode::Unasked { session } => {
            let is_here = known.memory.session == *session && known.memory.origin != MemoryOrigin::Asked;
            let is_meant = question.is_own && is_of_kind && (is_on_topic || question.is_general());
            !is_here && (covers >= SURELY_FITS || is_meant)
        }
    }
}

impl ContextSource for ObservationalMemory {
    fn name(&self) -> &str {
        SOURCE
    }

    fn cap(&self) -> usize {
        self.settings().recall_tokens
    }

    fn gather(&self, request: ContextRequest) -> BoxFuture<'static, Result<Option<Labelled>, ContextError>> {
        let chronicle = self.clone();
        async move {
            let cap = chronicle.settings().recall_tokens;
            if cap == 0 {
                return Ok(None);
            }
            let care = RecallMode::Unasked { session: request.session };
            let found = chronicle.recall(&request.principal, &request.text, care, MOST_UNASKED).await;
            let found = found.map_err(|error| ContextError(error.to_string()))?;
            Ok(format_recalled(&found, cap))
        }
        .boxed()
    }
}

/// As many whole lines as there is room for.
fn format_recalled(found: &[Recalled], cap: usize) -> Option<Labelled> {
    let mut text = HEAD.to_owned();
    for recalled in found {
        let longer = format!("{text}\n{}", digest::memory_line(&recalled.memory));
        if token_estimate::estimate(&longer) > cap {
            break;
        }
        text = longer;
    }
    let label = digest::label(found.iter().map(|recalled| &recalled.memory));
    (text.len() > HEAD.len()).then_some(Labelled { text, label })
}
