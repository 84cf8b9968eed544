//! Diagrams of the graph around a name.

mod dot;
mod layout;
mod svg;

use std::collections::HashMap;

use super::query::TraversalResult;
use super::snapshot::GraphSnapshot;

pub use dot::render_dot;
pub use svg::render_svg;

/// Maximum label length in characters; longer labels are truncated with an ellipsis.
const MAX_LABEL: usize = 32;

/// The nodes and edges to draw, without positions.
#[derive(Clone, Debug, Default)]
pub struct Diagram {
    pub nodes: Vec<DiagramNode>,
    pub edges: Vec<DiagramEdge>,
    pub predicates: Vec<String>,
    /// True if the graph has more facts than the diagram shows.
    pub has_more: bool,
}

#[derive(Clone, Debug)]
pub struct DiagramNode {
    pub name: String,
    pub kind: String,
    pub depth: u32,
}

/// An edge between two nodes, given by their indexes in `Diagram::nodes`.
#[derive(Clone, Debug)]
pub struct DiagramEdge {
    pub from: usize,
    pub to: usize,
    pub predicate: usize,
    /// Suffix with the dates between which the fact is valid; empty if it has none.
    pub validity: String,
}

impl DiagramNode {
    fn label(&self) -> String {
        match self.name.char_indices().nth(MAX_LABEL) {
            Some((end, _)) => format!("{}…", self.name[..end].trim_end()),
            None => self.name.clone(),
        }
    }
}

/// Builds a diagram of the part of the graph that a traversal visited.
pub fn build_diagram(snapshot: &GraphSnapshot, traversal: &TraversalResult) -> Diagram {
    let mut diagram = Diagram {
        has_more: traversal.hits.has_more,
        ..Diagram::default()
    };
    let mut node_indexes = HashMap::new();
    for (name, depth) in &traversal.names {
        node_indexes.insert(*name, diagram.nodes.len());
        let (kind, depth) = (snapshot.entity_type(*name).to_owned(), *depth);
        diagram.nodes.push(DiagramNode {
            name: snapshot.name(*name).to_owned(),
            kind,
            depth,
        });
    }
    let mut predicates = HashMap::new();
    for number in &traversal.hits.facts {
        let (fact, item) = (snapshot.fact(*number), snapshot.fact_item(*number));
        let (Some(from), Some(to)) = (
            node_indexes.get(&fact.subject),
            node_indexes.get(&fact.object),
        ) else {
            continue;
        };
        let predicate = *predicates.entry(fact.predicate).or_insert_with(|| {
            diagram.predicates.push(item.predicate.to_owned());
            diagram.predicates.len() - 1
        });
        let validity = match (item.valid_from, item.valid_to) {
            (None, None) => String::new(),
            (from, to) => format!(
                " ({} – {})",
                from.unwrap_or_default(),
                to.unwrap_or_default()
            ),
        };
        diagram.edges.push(DiagramEdge {
            from: *from,
            to: *to,
            predicate,
            validity,
        });
    }
    diagram
}
