//! Forgetting: what was learned from some words goes from every place that learned it, and is not learned from them again.
//! The conversation itself stays until its session is deleted.

mod index;
mod learned_item;
mod statement;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lango_domain::event::Principal;
use lango_domain::forget::{FactBatchChange, ForgetStore, Removal};
use lango_domain::graph::GraphStore;
use lango_domain::inquiries::InquiryStore;
use lango_domain::knowledge::KnowledgeStore;
use lango_domain::memory::{MemoryId, MemoryStore};
use lango_domain::session::{SessionStore, StoreError};

use crate::graph::user_batches::remove_statements;
use crate::memory::normalize_words;
use index::ForgetIndex;
use statement::{MatchLevel, Statement};

pub use learned_item::{LearnedItem, LearnedItemId};

/// Who wants to forget everything has to say so.
const EVERYTHING_WORDS: [&str; 6] = ["everything", "all", "alles", "todo", "tout", "tutto"];

/// Every place where something is learned, and the conversations that it is learned from.
pub trait LearnedDataStore:
    ForgetStore + MemoryStore + KnowledgeStore + InquiryStore + GraphStore + SessionStore
{
}

impl<T> LearnedDataStore for T where
    T: ForgetStore + MemoryStore + KnowledgeStore + InquiryStore + GraphStore + SessionStore
{
}

/// What somebody means by what they want forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForgetSelection {
    NoMatch,
    Matched {
        /// All that would go.
        to_forget: Vec<LearnedItem>,
        /// What is about the same, and says something else, too.
        related: Vec<LearnedItem>,
    },
    /// Several things are about it, and none says just that.
    Ambiguous(Vec<LearnedItem>),
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Forgetter {
    store: Arc<dyn LearnedDataStore>,
}

impl Forgetter {
    pub fn new(store: Arc<dyn LearnedDataStore>) -> Self {
        Self { store }
    }

    /// What is meant by ids of memories, or by words that say it.
    pub async fn find_to_forget(
        &self,
        of: &Principal,
        what: &str,
    ) -> Result<ForgetSelection, StoreError> {
        let ledger = ForgetIndex::load(&*self.store, of).await?;
        let parts: Vec<&str> = what
            .split([',', ' '])
            .filter(|part| !part.is_empty())
            .collect();
        let ids: Result<Vec<MemoryId>, _> = parts.iter().map(|part| part.parse()).collect();
        let fitting = match ids {
            Ok(ids) => ForgetMatches {
                seeds: ledger.find_memories(&ids),
                others: Vec::new(),
            },
            Err(_) => find_matches(&ledger, what),
        };
        self.resolve_selection(of, &ledger, fitting).await
    }

    /// The same for everything that is known under some keys.
    pub async fn find_keys_to_forget(
        &self,
        of: &Principal,
        keys: &[String],
    ) -> Result<ForgetSelection, StoreError> {
        let ledger = ForgetIndex::load(&*self.store, of).await?;
        let seeds = ledger.find_keys(keys);
        self.resolve_selection(
            of,
            &ledger,
            ForgetMatches {
                seeds,
                others: Vec::new(),
            },
        )
        .await
    }

    async fn resolve_selection(
        &self,
        of: &Principal,
        ledger: &ForgetIndex,
        ForgetMatches { seeds, others }: ForgetMatches,
    ) -> Result<ForgetSelection, StoreError> {
        if seeds.is_empty() {
            let is_nothing = others.is_empty();
            return Ok(if is_nothing {
                ForgetSelection::NoMatch
            } else {
                ForgetSelection::Ambiguous(ledger.items_at(others))
            });
        }
        let gone = ledger.expand_seeds(&*self.store, of, seeds).await?;
        let left = others
            .into_iter()
            .filter(|at| !gone.contains(at))
            .collect::<Vec<_>>();
        Ok(ForgetSelection::Matched {
            to_forget: ledger.items_at(gone),
            related: ledger.items_at(left),
        })
    }

    /// Takes these out, as far as they are still there, and gives what is gone. All or nothing; it can be repeated.
    pub async fn forget(
        &self,
        of: &Principal,
        traces: &[LearnedItem],
    ) -> Result<Vec<LearnedItem>, StoreError> {
        let ledger = ForgetIndex::load(&*self.store, of).await?;
        let gone = ledger.find_existing(traces);
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        let mut removal = Removal {
            events: ledger.source_events(&*self.store, of, &gone).await?,
            ..Removal::default()
        };
        let mut facts: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        let gone = ledger.items_at(gone);
        for trace in &gone {
            match &trace.id {
                LearnedItemId::Memory(id) => removal.memories.push(*id),
                LearnedItemId::Entry { key, version } => {
                    removal.entries.push((key.clone(), *version))
                }
                LearnedItemId::Learning(id) => removal.learnings.push(*id),
                LearnedItemId::Inquiry(id) => removal.inquiries.push(*id),
                LearnedItemId::Fact { batch, at } => {
                    _ = facts.entry(*batch).or_default().insert(*at)
                }
            }
        }
        for (number, gone) in facts {
            let Some(body) = ledger.batch_body(number) else {
                continue;
            };
            let left =
                remove_statements(body, &gone).map_err(|error| StoreError(error.to_string()))?;
            removal.batches.push(FactBatchChange {
                number,
                remaining: left,
            });
        }
        self.store.remove(of, removal).await?;
        Ok(gone)
    }
}

/// What fits, by its place in the ledger.
struct ForgetMatches {
    /// What is surely meant.
    seeds: Vec<usize>,
    /// What is about the same.
    others: Vec<usize>,
}

/// What says just that; without any, the one thing that says it among others. Whoever says "everything" means all of it.
fn find_matches(ledger: &ForgetIndex, what: &str) -> ForgetMatches {
    let wanted = Statement::parse(what);
    let is_everything = normalize_words(what)
        .iter()
        .any(|word| EVERYTHING_WORDS.contains(&word.as_str()));
    if wanted.is_empty() {
        let seeds = if is_everything {
            ledger.all_positions()
        } else {
            Vec::new()
        };
        return ForgetMatches {
            seeds,
            others: Vec::new(),
        };
    }
    let same = ledger.find_matches(&wanted, MatchLevel::Same);
    let within = ledger.find_matches(&wanted, MatchLevel::Contains);
    if is_everything {
        let seeds = same.into_iter().chain(within).collect();
        return ForgetMatches {
            seeds,
            others: Vec::new(),
        };
    }
    let distinct: BTreeSet<Vec<String>> = within
        .iter()
        .map(|at| ledger.normalized_text(*at))
        .collect();
    match (same.is_empty(), distinct.len()) {
        (true, 1) => ForgetMatches {
            seeds: within,
            others: Vec::new(),
        },
        _ => ForgetMatches {
            seeds: same,
            others: within,
        },
    }
}
