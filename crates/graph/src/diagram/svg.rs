//! Renders diagrams as SVG: a box per name, an arrow per fact, a color per predicate. Follows the
//! viewer's light or dark color scheme.

use std::collections::HashMap;
use std::fmt::Write as _;

use lango_text::svg::{escape_xml, text_width};

use super::layout::{self, PlacedNode};
use super::{Diagram, DiagramEdge};

const COLORS: [&str; 10] = [
    "#4e79a7", "#e0813a", "#4f9a5b", "#c9525b", "#8a6fb0", "#2f9aa0", "#b8902f", "#c4679a",
    "#7a6a5c", "#6b8e23",
];
/// Dash patterns distinguish predicates that share a color.
const DASH_PATTERNS: [&str; 3] = ["", "6 4", "2 4"];
/// Most entries in the legend.
const MAX_IN_LEGEND: usize = 24;
const MARGIN: f64 = 36.0;
const LEGEND_LINE_HEIGHT: f64 = 20.0;

const STYLE: &str = "
  text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif; fill: #24292f; }
  .ground { fill: #fbfbfa; }
  .name { fill: #ffffff; stroke: #c9ccd1; stroke-width: 1.2; }
  .middle .name { fill: #2b4c7e; stroke: #2b4c7e; }
  .middle text, .middle .kind { fill: #ffffff; }
  .label { font-size: 13px; text-anchor: middle; }
  .middle .label { font-size: 15px; font-weight: 600; }
  .kind { font-size: 10.5px; text-anchor: middle; fill: #6b7280; }
  .fact { fill: none; stroke-width: 1.6; opacity: 0.85; }
  .predicate { font-size: 10px; text-anchor: middle; paint-order: stroke; stroke: #fbfbfa; stroke-width: 4px; stroke-linejoin: round; }
  .legend { font-size: 12px; }
  .soft { fill: #6b7280; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e8eb; }
    .ground { fill: #16181c; }
    .name { fill: #22262c; stroke: #454b54; }
    .middle .name { fill: #9db8dd; stroke: #9db8dd; }
    .middle text, .middle .kind { fill: #16181c; }
    .kind { fill: #9aa3af; }
    .predicate { stroke: #16181c; }
    .soft { fill: #9aa3af; }
  }
";

pub fn render_svg(diagram: &Diagram) -> String {
    let placed = layout::place_nodes(diagram);
    let frame = SvgFrame::around(diagram, &placed);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{:.0} {:.0} {:.0} {:.0}\" width=\"{:.0}\" height=\"{:.0}\" role=\"img\">\n",
        frame.x, frame.y, frame.width, frame.height, frame.width, frame.height
    );
    let title = diagram
        .nodes
        .first()
        .map_or("an empty graph", |node| node.name.as_str());
    let _ = writeln!(
        text,
        "<title>{}</title>\n<style>{STYLE}</style>",
        escape_xml(title)
    );
    text.push_str("<defs>\n");
    for (at, color) in COLORS.iter().enumerate().take(diagram.predicates.len()) {
        let _ = writeln!(
            text,
            "<marker id=\"a{at}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\"><path d=\"M0 1 L10 5 L0 9 Z\" fill=\"{color}\"/></marker>"
        );
    }
    text.push_str("</defs>\n");
    let SvgFrame {
        x,
        y,
        width,
        height,
    } = frame;
    let _ = writeln!(
        text,
        "<rect class=\"ground\" x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{height:.0}\"/>"
    );
    draw_edges(&mut text, diagram, &placed);
    draw_nodes(&mut text, diagram, &placed);
    draw_legend(&mut text, diagram, &frame);
    text.push_str("</svg>\n");
    text
}

struct SvgFrame {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl SvgFrame {
    fn around(diagram: &Diagram, placed: &[PlacedNode]) -> Self {
        let sides = placed
            .iter()
            .fold([0.0_f64; 4], |[left, top, right, bottom], node| {
                let (w, h) = (node.width / 2.0, node.height / 2.0);
                [
                    left.min(node.x - w),
                    top.min(node.y - h - 20.0),
                    right.max(node.x + w),
                    bottom.max(node.y + h),
                ]
            });
        let [left, top, right, bottom] = sides;
        let legend = diagram.predicates.len().min(MAX_IN_LEGEND) as f64 * LEGEND_LINE_HEIGHT + 60.0;
        let names = diagram.predicates.iter().take(MAX_IN_LEGEND);
        let widest = names
            .map(|name| text_width(&short_predicate(name), 12.0))
            .fold(90.0, f64::max);
        let height = (bottom - top).max(legend) + 2.0 * MARGIN;
        let middle = f64::midpoint(top, bottom);
        let width = right - left + 3.0 * MARGIN + widest + 44.0;
        Self {
            x: left - MARGIN,
            y: middle - height / 2.0,
            width,
            height,
        }
    }
}

fn draw_edges(text: &mut String, diagram: &Diagram, placed: &[PlacedNode]) {
    let mut drawn_per_pair: HashMap<(usize, usize), usize> = HashMap::new();
    let mut edges_per_pair: HashMap<(usize, usize), usize> = HashMap::new();
    let pair = |edge: &DiagramEdge| (edge.from.min(edge.to), edge.from.max(edge.to));
    diagram
        .edges
        .iter()
        .for_each(|edge| *edges_per_pair.entry(pair(edge)).or_default() += 1);
    let mut labels = String::new();
    for edge in &diagram.edges {
        let number = drawn_per_pair.entry(pair(edge)).or_default();
        let count = edges_per_pair.get(&pair(edge)).copied().unwrap_or(1);
        let bend = (*number as f64 - (count as f64 - 1.0) / 2.0) * 34.0;
        *number += 1;
        // Bend to the same side, whatever the edge's direction.
        let bend = if edge.from < edge.to { bend } else { -bend };
        let (curve, middle) = curve(
            placed[edge.from],
            placed[edge.to],
            edge.from == edge.to,
            bend,
        );
        let (color, stroke) = edge_style(edge.predicate);
        let dashes = if stroke.is_empty() {
            String::new()
        } else {
            format!(" stroke-dasharray=\"{stroke}\"")
        };
        let predicate = &diagram.predicates[edge.predicate];
        let (from, to) = (&diagram.nodes[edge.from].name, &diagram.nodes[edge.to].name);
        let _ = writeln!(
            text,
            "<path class=\"fact\" d=\"{curve}\" stroke=\"{color}\"{dashes} marker-end=\"url(#a{})\"><title>{}</title></path>",
            edge.predicate % COLORS.len(),
            escape_xml(&format!("{from} {predicate} {to}{}", edge.validity))
        );
        let _ = writeln!(
            labels,
            "<text class=\"predicate\" x=\"{:.1}\" y=\"{:.1}\" style=\"fill:{color}\">{}</text>",
            middle.0,
            middle.1 + 3.0,
            escape_xml(&short_predicate(predicate))
        );
    }
    text.push_str(&labels);
}

/// Returns the path of an arrow from border to border, and its midpoint.
fn curve(from: PlacedNode, to: PlacedNode, is_loop: bool, bend: f64) -> (String, (f64, f64)) {
    if is_loop {
        let (x, y) = (from.x, from.y - from.height / 2.0);
        let high = y - 34.0 - bend.abs();
        let path = format!(
            "M{:.1} {y:.1} C{:.1} {high:.1} {:.1} {high:.1} {:.1} {y:.1}",
            x - 12.0,
            x - 30.0,
            x + 30.0,
            x + 12.0
        );
        return (path, (x, high + 6.0));
    }
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let length = dx.hypot(dy).max(1.0);
    let control = (
        (from.x + to.x) / 2.0 - dy / length * bend * 2.0,
        (from.y + to.y) / 2.0 + dx / length * bend * 2.0,
    );
    let (start, end) = (border(from, control, 0.0), border(to, control, 2.0));
    let middle = (
        0.25 * start.0 + 0.5 * control.0 + 0.25 * end.0,
        0.25 * start.1 + 0.5 * control.1 + 0.25 * end.1,
    );
    let path = format!(
        "M{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1}",
        start.0, start.1, control.0, control.1, end.0, end.1
    );
    (path, middle)
}

/// Returns the point where the line from a node's center towards a point crosses its border.
fn border(node: PlacedNode, towards: (f64, f64), gap: f64) -> (f64, f64) {
    let (dx, dy) = (towards.0 - node.x, towards.1 - node.y);
    let (w, h) = (node.width / 2.0 + gap, node.height / 2.0 + gap);
    let share = (w / dx.abs().max(1e-9))
        .min(h / dy.abs().max(1e-9))
        .min(1.0);
    (node.x + dx * share, node.y + dy * share)
}

fn draw_nodes(text: &mut String, diagram: &Diagram, placed: &[PlacedNode]) {
    for (node, position) in diagram.nodes.iter().zip(placed) {
        let class = if node.depth == 0 {
            " class=\"middle\""
        } else {
            ""
        };
        let PlacedNode {
            x,
            y,
            width,
            height,
        } = *position;
        let _ = writeln!(
            text,
            "<g{class}><title>{}</title><rect class=\"name\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"9\"/>",
            escape_xml(&node.name),
            x - width / 2.0,
            y - height / 2.0
        );
        let lift = if node.kind.is_empty() { 4.5 } else { -2.0 };
        let _ = writeln!(
            text,
            "<text class=\"label\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            y + lift,
            escape_xml(&node.label())
        );
        if !node.kind.is_empty() {
            let _ = writeln!(
                text,
                "<text class=\"kind\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                y + 13.0,
                escape_xml(&node.kind)
            );
        }
        text.push_str("</g>\n");
    }
}

fn draw_legend(text: &mut String, diagram: &Diagram, frame: &SvgFrame) {
    let widest = diagram.predicates.iter().take(MAX_IN_LEGEND);
    let widest = widest
        .map(|name| text_width(&short_predicate(name), 12.0))
        .fold(90.0, f64::max);
    let x = frame.x + frame.width - MARGIN - widest - 36.0;
    let mut y = frame.y + MARGIN + 6.0;
    for (at, predicate) in diagram.predicates.iter().enumerate().take(MAX_IN_LEGEND) {
        let (color, stroke) = edge_style(at);
        let _ = writeln!(
            text,
            "<path d=\"M{x:.0} {:.0} h26\" stroke=\"{color}\" stroke-width=\"2.4\" stroke-dasharray=\"{stroke}\"/><text class=\"legend\" x=\"{:.0}\" y=\"{y:.0}\">{}</text>",
            y - 4.0,
            x + 34.0,
            escape_xml(&short_predicate(predicate))
        );
        y += LEGEND_LINE_HEIGHT;
    }
    let hidden = diagram.predicates.len().saturating_sub(MAX_IN_LEGEND);
    let more = if diagram.has_more { ", more exist" } else { "" };
    let mut summary = format!("{} facts{more}", diagram.edges.len());
    if hidden > 0 {
        let _ = write!(summary, ", {hidden} other predicates");
    }
    let _ = writeln!(
        text,
        "<text class=\"legend soft\" x=\"{x:.0}\" y=\"{:.0}\">{summary}</text>",
        y + 6.0
    );
}

fn edge_style(predicate: usize) -> (&'static str, &'static str) {
    (
        COLORS[predicate % COLORS.len()],
        DASH_PATTERNS[predicate / COLORS.len() % DASH_PATTERNS.len()],
    )
}

/// Returns the last segment of an IRI, truncated for display.
fn short_predicate(predicate: &str) -> String {
    let end = match predicate.contains("://") {
        true => predicate
            .rsplit(['/', '#'])
            .find(|part| !part.is_empty())
            .unwrap_or(predicate),
        false => predicate,
    };
    if end.chars().count() > 28 {
        end.chars().take(27).chain(['…']).collect()
    } else {
        end.to_owned()
    }
}
