//! Graph expansion of search results: finds names of the graph in passages, the facts about those
//! names, and passages about the other ends of the facts.

use lango_domain::event::Principal;

use super::{AsOf, Graph, GraphError, GraphSnapshot};
use crate::document_index::{DocumentIndex, DocumentIndexError, Passage, SearchScope};

/// Most names to expand; names in the question come first.
const MAX_NAMES: usize = 6;
/// Most facts per name.
const FACTS_PER_NAME: usize = 6;
const MAX_FACTS: usize = 12;
/// Most additional passages.
const MAX_PASSAGES: usize = 3;
/// Number of search hits for a name that are considered.
const CANDIDATES: usize = 3;

/// Facts and passages that the graph adds to search results.
#[derive(Default)]
pub struct ExpansionResult {
    pub snapshot: Option<GraphSnapshot>,
    pub facts: Vec<u32>,
    /// Each passage with the fact that led to it.
    pub passages: Vec<(Passage, u32)>,
}

#[derive(Debug, thiserror::Error)]
pub enum ExpansionError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    DocumentIndex(#[from] DocumentIndexError),
}

/// Expands search results over the graph. Returns an empty result, without searching, if no name
/// of the graph occurs in them.
pub async fn expand(
    graph: &Graph,
    documents: &DocumentIndex,
    scope: &SearchScope,
    question: &str,
    passages: &[Passage],
) -> Result<ExpansionResult, ExpansionError> {
    let principal: &Principal = &scope.principal;
    let snapshot = graph.snapshot(principal).await?;
    let mut names = snapshot.find_entities(question);
    let mut mentioned = names.clone();
    for passage in passages {
        let entities = snapshot.find_entities(&passage.text);
        names.extend(entities.iter().filter(|name| !mentioned.contains(name)));
        mentioned.extend(entities);
    }
    names.truncate(MAX_NAMES);
    let as_of = AsOf::At(graph.now());
    let mut facts: Vec<u32> = Vec::new();
    for name in names {
        let about = snapshot
            .facts_about(name, None, as_of, FACTS_PER_NAME)
            .facts;
        let new: Vec<u32> = about
            .into_iter()
            .filter(|fact| !facts.contains(fact))
            .collect();
        facts.extend(new);
    }
    facts.truncate(MAX_FACTS);
    let mut expansion = ExpansionResult::default();
    for fact in &facts {
        let (subject, object) = (snapshot.fact(*fact).subject, snapshot.fact(*fact).object);
        let Some(other) = [object, subject]
            .into_iter()
            .find(|name| !mentioned.contains(name))
        else {
            continue;
        };
        if expansion.passages.len() == MAX_PASSAGES {
            break;
        }
        mentioned.push(other);
        let candidates = documents
            .search(snapshot.name(other), scope, CANDIDATES)
            .await?;
        let is_new = |passage: &Passage| {
            let same =
                |known: &Passage| known.source == passage.source && known.span == passage.span;
            !passages.iter().any(same) && !expansion.passages.iter().any(|(known, _)| same(known))
        };
        let about = candidates.into_iter().find(|passage| {
            is_new(passage) && snapshot.find_entities(&passage.text).contains(&other)
        });
        expansion
            .passages
            .extend(about.map(|passage| (passage, *fact)));
    }
    (expansion.facts, expansion.snapshot) = (facts, Some(snapshot));
    Ok(expansion)
}
