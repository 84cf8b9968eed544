//! For Graphviz.

use std::fmt::Write as _;

use super::Diagram;

pub fn dot(sketch: &Diagram) -> String {
    let mut text = "digraph lango {\n  graph [overlap=false, splines=true];\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n".to_owned();
    for (at, name) in sketch.boxes.iter().enumerate() {
        let kind = if name.kind.is_empty() { String::new() } else { format!("\\n{}", escaped(&name.kind)) };
        let bold = if name.depth == 0 { ", penwidth=2" } else { "" };
        let _ = writeln!(text, "  n{at} [label=\"{}{kind}\"{bold}];", escaped(&name.name));
    }
    for link in &sketch.links {
        let predicate = sketch.predicates.get(link.predicate).map_or("", String::as_str);
        let label = escaped(&format!("{predicate}{}", link.remark));
        let _ = writeln!(text, "  n{} -> n{} [label=\"{label}\"];", link.from, link.to);
    }
    text.push_str("}\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}
