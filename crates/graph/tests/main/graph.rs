//! The knowledge graph over a real store file.

mod expansion;
mod import_export;
mod queries;
mod sync;
mod tools;

use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::event::Principal;
use lango_domain::graph::FactSource;
use lango_graph::{AsOf, Graph, GraphSnapshot, Moment, NewFact};
use lango_store::{SqliteStore, StoreLocation};
use tempfile::TempDir;

pub const NOW: &str = "2026-01-01T00:00:00Z";

pub struct GraphHarness {
    pub folder: TempDir,
    pub store: SqliteStore,
    pub graph: Graph,
}

impl GraphHarness {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = open(&folder);
        Self {
            graph: graph(&store),
            folder,
            store,
        }
    }

    /// Adds facts from `S | P | O` lines with the user as their source.
    pub async fn add_facts(&self, lines: &str) {
        self.add_facts_from(FactSource::User, lines).await;
    }

    pub async fn add_facts_from(&self, source: FactSource, lines: &str) {
        self.graph
            .assert(&me(), source, &facts(lines))
            .await
            .unwrap();
    }

    pub async fn snapshot(&self) -> GraphSnapshot {
        self.graph.snapshot(&me()).await.unwrap()
    }
}

pub fn open(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(StoreLocation::File(folder.path().join("store.sqlite"))).unwrap()
}

pub fn graph(store: &SqliteStore) -> Graph {
    let now: Timestamp = NOW.parse().unwrap();
    Graph::new(Arc::new(store.clone()), Arc::new(move || now))
}

pub fn me() -> Principal {
    Principal::local()
}

pub fn now() -> AsOf {
    at(NOW)
}

pub fn at(text: &str) -> AsOf {
    AsOf::At(text.parse::<Moment>().unwrap())
}

pub fn facts(lines: &str) -> Vec<NewFact> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(
            |line| match line.split('|').map(str::trim).collect::<Vec<_>>()[..] {
                [subject, predicate, object] => NewFact::new(subject, predicate, object),
                _ => panic!("{line}"),
            },
        )
        .collect()
}

/// Formats facts as `S P O`.
pub fn fact_lines(snapshot: &GraphSnapshot, facts: &[u32]) -> Vec<String> {
    let item = |fact: &u32| {
        let item = snapshot.fact_item(*fact);
        format!("{} {} {}", item.subject, item.predicate, item.object)
    };
    facts.iter().map(item).collect()
}
