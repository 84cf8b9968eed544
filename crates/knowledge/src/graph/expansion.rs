//! From passages to what hangs together with them: names that the graph knows, their facts, and passages about the other ends.

use lango_domain::event::Principal;

use super::{AsOf, Graph, GraphError, GraphSnapshot};
use crate::document_index::{DocumentIndex, DocumentIndexError, Passage, SearchScope};

/// So many names are followed, those of the question first.
const MAX_NAMES: usize = 6;
/// So many facts of each.
const FACTS_PER_NAME: usize = 6;
const MAX_FACTS: usize = 12;
/// So many further passages are looked for.
const MAX_PASSAGES: usize = 3;
/// A passage counts when it is among so many that its name finds.
const CANDIDATES: usize = 3;

/// What the graph adds to passages.
#[derive(Default)]
pub struct ExpansionResult {
    pub snapshot: Option<GraphSnapshot>,
    pub facts: Vec<u32>,
    /// Each with the fact that led to it.
    pub passages: Vec<(Passage, u32)>,
}

#[derive(Debug, thiserror::Error)]
pub enum ExpansionError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    DocumentIndex(#[from] DocumentIndexError),
}

/// Where the graph knows nothing of what was found, it adds nothing and takes no time.
pub async fn expand(
    graph: &Graph,
    library: &DocumentIndex,
    scope: &SearchScope,
    question: &str,
    found: &[Passage],
) -> Result<ExpansionResult, ExpansionError> {
    let of: &Principal = &scope.principal;
    let view = graph.snapshot(of).await?;
    let mut names = view.find_entities(question);
    let mut mentioned = names.clone();
    for passage in found {
        let inside = view.find_entities(&passage.text);
        names.extend(inside.iter().filter(|name| !mentioned.contains(name)));
        mentioned.extend(inside);
    }
    names.truncate(MAX_NAMES);
    let when = AsOf::At(graph.now());
    let mut facts: Vec<u32> = Vec::new();
    for name in names {
        let about = view.facts_about(name, None, when, FACTS_PER_NAME).facts;
        let new: Vec<u32> = about
            .into_iter()
            .filter(|fact| !facts.contains(fact))
            .collect();
        facts.extend(new);
    }
    facts.truncate(MAX_FACTS);
    let mut expansion = ExpansionResult::default();
    for fact in &facts {
        let (subject, object) = (view.fact(*fact).subject, view.fact(*fact).object);
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
        let near = library.search(view.name(other), scope, CANDIDATES).await?;
        let is_new = |passage: &Passage| {
            let same =
                |known: &Passage| known.source == passage.source && known.span == passage.span;
            !found.iter().any(same) && !expansion.passages.iter().any(|(known, _)| same(known))
        };
        let about = near
            .into_iter()
            .find(|passage| is_new(passage) && view.find_entities(&passage.text).contains(&other));
        expansion
            .passages
            .extend(about.map(|passage| (passage, *fact)));
    }
    (expansion.facts, expansion.snapshot) = (facts, Some(view));
    Ok(expansion)
}
