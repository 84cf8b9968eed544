//! Graph expansion of search results: finds names of the graph in passages, the facts about those
//! names, and passages about the other ends of the facts.

use lango_domain::StoreError;
use lango_domain::documents::{
    Passage, PassageExpander, PassageExpansion, PassageSearch, SearchScope,
};
use lango_domain::session::StoreFuture;
use serde_json::json;

use crate::{AsOf, Graph, LazyGraph};

/// Most names to expand; names in the question come first.
const MAX_NAMES: usize = 6;
/// Most facts per name.
const FACTS_PER_NAME: usize = 6;
const MAX_FACTS: usize = 12;
/// Most additional passages.
const MAX_PASSAGES: usize = 3;
/// Number of search hits for a name that are considered.
const CANDIDATES: usize = 3;

/// Expands passages over a graph that is opened on first use.
pub struct GraphExpander(pub LazyGraph);

impl PassageExpander for GraphExpander {
    fn expand<'a>(
        &'a self,
        search: &'a dyn PassageSearch,
        scope: &'a SearchScope,
        question: &'a str,
        passages: &'a [Passage],
    ) -> StoreFuture<'a, PassageExpansion> {
        Box::pin(async move {
            let graph = self
                .0
                .get()
                .await
                .map_err(|error| StoreError::Other(error.to_string()))?;
            expand(graph, search, scope, question, passages).await
        })
    }
}

/// Expands search results over the graph. Returns an empty result, without searching, if no name
/// of the graph occurs in them.
async fn expand(
    graph: &Graph,
    search: &dyn PassageSearch,
    scope: &SearchScope,
    question: &str,
    passages: &[Passage],
) -> Result<PassageExpansion, StoreError> {
    let snapshot = graph.snapshot(&scope.principal).await;
    let snapshot = snapshot.map_err(|error| StoreError::Other(error.to_string()))?;
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
    let mut expansion = PassageExpansion::default();
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
        let candidates = search
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
        let fact = snapshot.fact_item(*fact);
        let sentence = format!("{} {} {}", fact.subject, fact.predicate, fact.object);
        expansion
            .passages
            .extend(about.map(|passage| (passage, sentence)));
    }
    let items = facts.iter().map(|fact| json!(snapshot.fact_item(*fact)));
    expansion.facts = items.collect();
    Ok(expansion)
}
