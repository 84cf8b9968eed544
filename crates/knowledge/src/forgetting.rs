//! Forgetting: what was learned from some words goes from every place that learned it, and is not learned from them again.
//! The conversation itself stays until its session is deleted.

mod ledger;
mod statement;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lango_domain::event::Principal;
use lango_domain::forgetting::{BatchChange, ForgettingStore, Removal};
use lango_domain::graph::GraphStore;
use lango_domain::inquiries::InquiryStore;
use lango_domain::knowledge::KnowledgeStore;
use lango_domain::memory::{MemoryStore, MemoryId};
use lango_domain::session::{SessionStore, StoreError};

use crate::graph::owned::without;
use crate::memory::plain_words;
use ledger::Ledger;
use statement::{Fit, Statement};

pub use trace::{Trace, TraceId};

/// Who wants to forget everything has to say so.
const EVERYTHING: [&str; 6] = ["everything", "all", "alles", "todo", "tout", "tutto"];

/// Every place where something is learned, and the conversations that it is learned from.
pub trait Learned:
    ForgettingStore + MemoryStore + KnowledgeStore + InquiryStore + GraphStore + SessionStore
{
}

impl<T> Learned for T where
    T: ForgettingStore + MemoryStore + KnowledgeStore + InquiryStore + GraphStore + SessionStore
{
}

/// What somebody means by what they want forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    Nothing,
    These {
        /// All that would go.
        gone: Vec<Trace>,
        /// What is about the same, and says something else, too.
        left: Vec<Trace>,
    },
    /// Several things are about it, and none says just that.
    Several(Vec<Trace>),
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Forgetting {
    store: Arc<dyn Learned>,
}

impl Forgetting {
    pub fn new(store: Arc<dyn Learned>) -> Self {
        Self { store }
    }

    /// What is meant by ids of memories, or by words that say it.
    pub async fn meant(&self, of: &Principal, what: &str) -> Result<Meant, StoreError> {
        let ledger = Ledger::read(&*self.store, of).await?;
        let parts: Vec<&str> = what.split([',', ' ']).filter(|part| !part.is_empty()).collect();
        let ids: Result<Vec<MemoryId>, _> = parts.iter().map(|part| part.parse()).collect();
        let fitting = match ids {
            Ok(ids) => Fitting { seeds: ledger.memories(&ids), others: Vec::new() },
            Err(_) => fitting(&ledger, what),
        };
        self.all_of(of, &ledger, fitting).await
    }

    /// The same for everything that is known under some keys.
    pub async fn meant_by_keys(&self, of: &Principal, keys: &[String]) -> Result<Meant, StoreError> {
        let ledger = Ledger::read(&*self.store, of).await?;
        let seeds = ledger.entries(keys);
        self.all_of(of, &ledger, Fitting { seeds, others: Vec::new() }).await
    }

    async fn all_of(
        &self,
        of: &Principal,
        ledger: &Ledger,
        Fitting { seeds, others }: Fitting,
    ) -> Result<Meant, StoreError> {
        if seeds.is_empty() {
            let is_nothing = others.is_empty();
            return Ok(if is_nothing { Meant::Nothing } else { Meant::Several(ledger.traces(others)) });
        }
        let gone = ledger.grown(&*self.store, of, seeds).await?;
        let left = others.into_iter().filter(|at| !gone.contains(at)).collect::<Vec<_>>();
        Ok(Meant::These { gone: ledger.traces(gone), left: ledger.traces(left) })
    }

    /// Takes these out, as far as they are still there, and gives what is gone. All or nothing; it can be repeated.
    pub async fn forget(&self, of: &Principal, traces: &[Trace]) -> Result<Vec<Trace>, StoreError> {
        let ledger = Ledger::read(&*self.store, of).await?;
        let gone = ledger.still_there(traces);
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        let mut removal =
            Removal { events: ledger.events_of(&*self.store, of, &gone).await?, ..Removal::default() };
        let mut facts: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
        let gone = ledger.traces(gone);
        for trace in &gone {
            match &trace.id {
                TraceId::Memory(id) => removal.memories.push(*id),
                TraceId::Entry { key, version } => removal.entries.push((key.clone(), *version)),
                TraceId::Learning(id) => removal.learnings.push(*id),
                TraceId::Inquiry(id) => removal.inquiries.push(*id),
                TraceId::Fact { batch, at } => _ = facts.entry(*batch).or_default().insert(*at),
            }
        }
        for (number, gone) in facts {
            let Some(body) = ledger.body(number) else { continue };
            let left = without(body, &gone).map_err(|error| StoreError(error.to_string()))?;
            removal.batches.push(BatchChange { number, left });
        }
        self.store.remove(of, removal).await?;
        Ok(gone)
    }
}

/// What fits, by its place in the ledger.
struct Fitting {
    /// What is surely meant.
    seeds: Vec<usize>,
    /// What is about the same.
    others: Vec<usize>,
}

/// What says just that; without any, the one thing that says it among others. Whoever says "everything" means all of it.
fn fitting(ledger: &Ledger, what: &str) -> Fitting {
    let wanted = Statement::of(what);
    let is_everything = plain_words(what).iter().any(|word| EVERYTHING.contains(&word.as_str()));
    if wanted.is_empty() {
        let seeds = if is_everything { ledger.everything() } else { Vec::new() };
        return Fitting { seeds, others: Vec::new() };
    }
    let same = ledger.fitting(&wanted, Fit::Same);
    let within = ledger.fitting(&wanted, Fit::Within);
    if is_everything {
        let seeds = same.into_iter().chain(within).collect();
        return Fitting { seeds, others: Vec::new() };
    }
    let distinct: BTreeSet<Vec<String>> = within.iter().map(|at| ledger.plain_words(*at)).collect();
    match (same.is_empty(), distinct.len()) {
        (true, 1) => Fitting { seeds: within, others: Vec::new() },
        _ => Fitting { seeds: same, others: within },
    }
}
