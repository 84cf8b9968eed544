//! Forgetting: deletes learned items from every store that has them and marks their source events,
//! so that they are not learned again. The conversation itself stays until its session is deleted.

mod index;
mod learned_item;
mod stated_facts;
mod statement;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lango_domain::StoreError;
use lango_domain::event::Principal;
use lango_domain::forget::{FactBatchChange, LearnedDataStore, Removal};
use lango_domain::graph::FactBatchFormat;
use lango_domain::memory::MemoryId;

use index::ForgetIndex;
use lango_text::normalize_words;
use statement::{MatchLevel, Statement};

pub use learned_item::{LearnedItem, LearnedItemId};

/// Words that request to forget everything that matches.
const EVERYTHING_WORDS: [&str; 6] = ["everything", "all", "alles", "todo", "tout", "tutto"];

/// The items that a request to forget selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForgetSelection {
    NoMatch,
    Matched {
        /// All items to delete.
        to_forget: Vec<LearnedItem>,
        /// Items that also mention it, among other things. They are not deleted.
        related: Vec<LearnedItem>,
    },
    /// Several items mention it, and none states exactly that.
    Ambiguous(Vec<LearnedItem>),
}

/// Finds and deletes learned items. Cheap to clone.
#[derive(Clone)]
pub struct Forgetter {
    store: Arc<dyn LearnedDataStore>,
    fact_format: Arc<dyn FactBatchFormat>,
}

impl Forgetter {
    pub fn new(store: Arc<dyn LearnedDataStore>, fact_format: Arc<dyn FactBatchFormat>) -> Self {
        Self { store, fact_format }
    }

    /// Finds the items to forget, by memory ids or by a text that states them.
    pub async fn find_to_forget(
        &self,
        principal: &Principal,
        query: &str,
    ) -> Result<ForgetSelection, StoreError> {
        let index = self.load_index(principal).await?;
        let parts: Vec<&str> = query
            .split([',', ' '])
            .filter(|part| !part.is_empty())
            .collect();
        let ids: Result<Vec<MemoryId>, _> = parts.iter().map(|part| part.parse()).collect();
        let matches = match ids {
            Ok(ids) => ForgetMatches {
                seeds: index.find_memories(&ids),
                others: Vec::new(),
            },
            Err(_) => find_matches(&index, query),
        };
        self.resolve_selection(principal, &index, matches).await
    }

    /// Finds the items to forget for all versions of these knowledge keys.
    pub async fn find_keys_to_forget(
        &self,
        principal: &Principal,
        keys: &[String],
    ) -> Result<ForgetSelection, StoreError> {
        let index = self.load_index(principal).await?;
        let seeds = index.find_keys(keys);
        self.resolve_selection(
            principal,
            &index,
            ForgetMatches {
                seeds,
                others: Vec::new(),
            },
        )
        .await
    }

    async fn load_index(&self, principal: &Principal) -> Result<ForgetIndex, StoreError> {
        ForgetIndex::load(&*self.store, &*self.fact_format, principal).await
    }

    async fn resolve_selection(
        &self,
        principal: &Principal,
        index: &ForgetIndex,
        ForgetMatches { seeds, others }: ForgetMatches,
    ) -> Result<ForgetSelection, StoreError> {
        if seeds.is_empty() {
            return Ok(if others.is_empty() {
                ForgetSelection::NoMatch
            } else {
                ForgetSelection::Ambiguous(index.items_at(others))
            });
        }
        let to_forget = index.expand_seeds(&*self.store, principal, seeds).await?;
        let related = others.into_iter().filter(|at| !to_forget.contains(at));
        let related = index.items_at(related);
        Ok(ForgetSelection::Matched {
            to_forget: index.items_at(to_forget),
            related,
        })
    }

    /// Deletes those items that still exist and returns them. Deletes all of them or none, and can be
    /// repeated.
    pub async fn forget(
        &self,
        principal: &Principal,
        items: &[LearnedItem],
    ) -> Result<Vec<LearnedItem>, StoreError> {
        let index = self.load_index(principal).await?;
        let positions = index.find_existing(items);
        if positions.is_empty() {
            return Ok(Vec::new());
        }
        let mut removal = Removal {
            events: index
                .source_events(&*self.store, principal, &positions)
                .await?,
            ..Removal::default()
        };
        let mut facts: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        let removed = index.items_at(positions);
        for item in &removed {
            match &item.id {
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
        for (number, statements) in facts {
            let Some(body) = index.batch_body(number) else {
                continue;
            };
            let remaining = self.fact_format.remove_statements(body, &statements)?;
            removal.batches.push(FactBatchChange { number, remaining });
        }
        self.store.remove(principal, removal).await?;
        Ok(removed)
    }
}

/// Matches by their positions in the index.
struct ForgetMatches {
    /// Items to forget for certain.
    seeds: Vec<usize>,
    /// Items that mention it among other things.
    others: Vec<usize>,
}

/// Selects the items that state exactly the query. If there are none, selects the only item that
/// mentions it. With a word such as "everything", selects all that mention it.
fn find_matches(index: &ForgetIndex, query: &str) -> ForgetMatches {
    let wanted = Statement::parse(query);
    let is_everything = normalize_words(query)
        .iter()
        .any(|word| EVERYTHING_WORDS.contains(&word.as_str()));
    if wanted.is_empty() {
        let seeds = if is_everything {
            index.all_positions()
        } else {
            Vec::new()
        };
        return ForgetMatches {
            seeds,
            others: Vec::new(),
        };
    }
    let exact = index.find_matches(&wanted, MatchLevel::Same);
    let containing = index.find_matches(&wanted, MatchLevel::Contains);
    if is_everything {
        let seeds = exact.into_iter().chain(containing).collect();
        return ForgetMatches {
            seeds,
            others: Vec::new(),
        };
    }
    let distinct: BTreeSet<Vec<String>> = containing
        .iter()
        .map(|at| index.normalized_text(*at))
        .collect();
    match (exact.is_empty(), distinct.len()) {
        (true, 1) => ForgetMatches {
            seeds: containing,
            others: Vec::new(),
        },
        _ => ForgetMatches {
            seeds: exact,
            others: containing,
        },
    }
}
