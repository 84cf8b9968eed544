//! For Graphviz.

use std::fmt::Write as _;

use super::Diagram;

pub fn render_dot(sketch: &Diagram) -> String {
    let mut text = "digraph lango {\n  graph [overlap=false, splines=true];\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n".to_owned();
    for (at, name) in sketch.nodes.iter().enumerate() {
        let kind = if name.kind.is_empty() {
            String::new()
        } else {
            format!("\\n{}", escape(&name.kind))
        };
        let bold = if name.depth == 0 { ", penwidth=2" } else { "" };
        let _ = writeln!(
            text,
            "  n{at} [label=\"{}{kind}\"{bold}];",
            escape(&name.name)
        );
    }
    for link in &sketch.edges {
        let predicate = sketch
            .predicates
            .get(link.predicate)
            .map_or("", String::as_str);
        let label = escape(&format!("{predicate}{}", link.validity));
        let _ = writeln!(
            text,
            "  n{} -> n{} [label=\"{label}\"];",
            link.from, link.to
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
