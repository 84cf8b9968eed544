//! Pictures of the graph around a name.

mod dot;
mod layout;
mod svg;

use std::collections::HashMap;

use super::query::TraversalResult;
use super::snapshot::GraphSnapshot;

pub use dot::render_dot;
pub use svg::render_svg;

/// Longer labels end in dots.
const MAX_LABEL: usize = 32;

/// What is drawn, before it has a place.
#[derive(Clone, Debug, Default)]
pub struct Diagram {
    pub nodes: Vec<DiagramNode>,
    pub edges: Vec<DiagramEdge>,
    pub predicates: Vec<String>,
    /// Whether something was left out.
    pub has_more: bool,
}

#[derive(Clone, Debug)]
pub struct DiagramNode {
    pub name: String,
    pub kind: String,
    pub depth: u32,
}

/// From a box to a box, by their places in the list.
#[derive(Clone, Debug)]
pub struct DiagramEdge {
    pub from: usize,
    pub to: usize,
    pub predicate: usize,
    /// When it holds.
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

/// The part of the graph that was walked.
pub fn build_diagram(view: &GraphSnapshot, walked: &TraversalResult) -> Diagram {
    let mut sketch = Diagram {
        has_more: walked.hits.has_more,
        ..Diagram::default()
    };
    let mut places = HashMap::new();
    for (name, depth) in &walked.names {
        places.insert(*name, sketch.nodes.len());
        let (kind, depth) = (view.entity_type(*name).to_owned(), *depth);
        sketch.nodes.push(DiagramNode {
            name: view.name(*name).to_owned(),
            kind,
            depth,
        });
    }
    let mut predicates = HashMap::new();
    for number in &walked.hits.facts {
        let (fact, item) = (view.fact(*number), view.fact_item(*number));
        let (Some(from), Some(to)) = (places.get(&fact.subject), places.get(&fact.object)) else {
            continue;
        };
        let predicate = *predicates.entry(fact.predicate).or_insert_with(|| {
            sketch.predicates.push(item.predicate.to_owned());
            sketch.predicates.len() - 1
        });
        let remark = match (item.valid_from, item.valid_to) {
            (None, None) => String::new(),
            (from, to) => format!(
                " ({} – {})",
                from.unwrap_or_default(),
                to.unwrap_or_default()
            ),
        };
        sketch.edges.push(DiagramEdge {
            from: *from,
            to: *to,
            predicate,
            validity: remark,
        });
    }
    sketch
}
