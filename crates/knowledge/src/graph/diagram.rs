//! Pictures of the graph around a name.

mod dot;
mod layout;
mod svg;

use std::collections::HashMap;

use super::query::TraversalResult;
use super::snapshot::GraphSnapshot;

pub use dot::dot;
pub use svg::svg;

/// Longer labels end in dots.
const MOST_LABEL: usize = 32;

/// What is drawn, before it has a place.
#[derive(Clone, Debug, Default)]
pub struct Diagram {
    pub boxes: Vec<DiagramNode>,
    pub links: Vec<DiagramEdge>,
    pub predicates: Vec<String>,
    /// Whether something was left out.
    pub more: bool,
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
    pub remark: String,
}

impl DiagramNode {
    fn label(&self) -> String {
        match self.name.char_indices().nth(MOST_LABEL) {
            Some((end, _)) => format!("{}…", self.name[..end].trim_end()),
            None => self.name.clone(),
        }
    }
}

/// The part of the graph that was walked.
pub fn build_diagram(view: &GraphSnapshot, walked: &TraversalResult) -> Diagram {
    let mut sketch = Diagram { more: walked.found.more, ..Diagram::default() };
    let mut places = HashMap::new();
    for (name, depth) in &walked.names {
        places.insert(*name, sketch.boxes.len());
        let (kind, depth) = (view.type_of(*name).to_owned(), *depth);
        sketch.boxes.push(DiagramNode { name: view.name(*name).to_owned(), kind, depth });
    }
    let mut predicates = HashMap::new();
    for number in &walked.found.facts {
        let (fact, item) = (view.fact(*number), view.item(*number));
        let (Some(from), Some(to)) = (places.get(&fact.subject), places.get(&fact.object)) else { continue };
        let predicate = *predicates.entry(fact.predicate).or_insert_with(|| {
            sketch.predicates.push(item.predicate.to_owned());
            sketch.predicates.len() - 1
        });
        let remark = match (item.valid_from, item.valid_to) {
            (None, None) => String::new(),
            (from, to) => format!(" ({} – {})", from.unwrap_or_default(), to.unwrap_or_default()),
        };
        sketch.links.push(DiagramEdge { from: *from, to: *to, predicate, remark });
    }
    sketch
}
