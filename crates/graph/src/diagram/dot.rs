//! Renders diagrams in Graphviz DOT.

use std::fmt::Write as _;

use super::Diagram;

pub fn render_dot(diagram: &Diagram) -> String {
    let mut text = "digraph lango {\n  graph [overlap=false, splines=true];\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n".to_owned();
    for (index, node) in diagram.nodes.iter().enumerate() {
        let kind = if node.kind.is_empty() {
            String::new()
        } else {
            format!("\\n{}", escape(&node.kind))
        };
        let bold = if node.depth == 0 { ", penwidth=2" } else { "" };
        let name = escape(&node.name);
        let _ = writeln!(text, "  n{index} [label=\"{name}{kind}\"{bold}];");
    }
    for edge in &diagram.edges {
        let predicate = diagram
            .predicates
            .get(edge.predicate)
            .map_or("", String::as_str);
        let label = escape(&format!("{predicate}{}", edge.validity));
        let _ = writeln!(
            text,
            "  n{} -> n{} [label=\"{label}\"];",
            edge.from, edge.to
        );
    }
    text.push_str("}\n");
    text
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', " ")
}
