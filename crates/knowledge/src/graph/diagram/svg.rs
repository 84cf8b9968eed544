//! A picture to look at: boxes for names, arrows for facts, a colour for each predicate. Bright or dark as the reader's screen is.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::layout::{self, PlacedNode};
use super::{Diagram, DiagramEdge};

const COLORS: [&str; 10] = [
    "#4e79a7", "#e0813a", "#4f9a5b", "#c9525b", "#8a6fb0", "#2f9aa0", "#b8902f", "#c4679a",
    "#7a6a5c", "#6b8e23",
];
/// Predicates beyond the colours are told apart by their strokes.
const DASH_PATTERNS: [&str; 3] = ["", "6 4", "2 4"];
/// No legend is longer.
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

pub fn render_svg(sketch: &Diagram) -> String {
    let placed = layout::place_nodes(sketch);
    let frame = SvgFrame::around(sketch, &placed);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{:.0} {:.0} {:.0} {:.0}\" width=\"{:.0}\" height=\"{:.0}\" role=\"img\">\n",
        frame.x, frame.y, frame.width, frame.height, frame.width, frame.height
    );
    let title = sketch
        .nodes
        .first()
        .map_or("an empty graph", |name| name.name.as_str());
    let _ = writeln!(
        text,
        "<title>{}</title>\n<style>{STYLE}</style>",
        escape_xml(title)
    );
    text.push_str("<defs>\n");
    for (at, colour) in COLORS.iter().enumerate().take(sketch.predicates.len()) {
        let _ = writeln!(
            text,
            "<marker id=\"a{at}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\"><path d=\"M0 1 L10 5 L0 9 Z\" fill=\"{colour}\"/></marker>"
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
    draw_edges(&mut text, sketch, &placed);
    draw_nodes(&mut text, sketch, &placed);
    draw_legend(&mut text, sketch, &frame);
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
    fn around(sketch: &Diagram, placed: &[PlacedNode]) -> Self {
        let sides = placed
            .iter()
            .fold([0.0_f64; 4], |[left, top, right, bottom], place| {
                let (w, h) = (place.width / 2.0, place.height / 2.0);
                [
                    left.min(place.x - w),
                    top.min(place.y - h - 20.0),
                    right.max(place.x + w),
                    bottom.max(place.y + h),
                ]
            });
        let [left, top, right, bottom] = sides;
        let legend = sketch.predicates.len().min(MAX_IN_LEGEND) as f64 * LEGEND_LINE_HEIGHT + 60.0;
        let names = sketch.predicates.iter().take(MAX_IN_LEGEND);
        let widest = names
            .map(|name| layout::text_width(&short_predicate(name), 12.0))
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

fn draw_edges(text: &mut String, sketch: &Diagram, placed: &[PlacedNode]) {
    let mut beside: HashMap<(usize, usize), usize> = HashMap::new();
    let mut all: HashMap<(usize, usize), usize> = HashMap::new();
    let pair = |link: &DiagramEdge| (link.from.min(link.to), link.from.max(link.to));
    sketch
        .edges
        .iter()
        .for_each(|link| *all.entry(pair(link)).or_default() += 1);
    let mut labels = String::new();
    for link in &sketch.edges {
        let number = beside.entry(pair(link)).or_default();
        let count = all.get(&pair(link)).copied().unwrap_or(1);
        let bend = (*number as f64 - (count as f64 - 1.0) / 2.0) * 34.0;
        *number += 1;
        // Seen from the same side, whichever way it points.
        let bend = if link.from < link.to { bend } else { -bend };
        let (curve, middle) = curve(
            placed[link.from],
            placed[link.to],
            link.from == link.to,
            bend,
        );
        let (colour, stroke) = edge_style(link.predicate);
        let dashes = if stroke.is_empty() {
            String::new()
        } else {
            format!(" stroke-dasharray=\"{stroke}\"")
        };
        let predicate = &sketch.predicates[link.predicate];
        let (from, to) = (&sketch.nodes[link.from].name, &sketch.nodes[link.to].name);
        let _ = writeln!(
            text,
            "<path class=\"fact\" d=\"{curve}\" stroke=\"{colour}\"{dashes} marker-end=\"url(#a{})\"><title>{}</title></path>",
            link.predicate % COLORS.len(),
            escape_xml(&format!("{from} {predicate} {to}{}", link.validity))
        );
        let _ = writeln!(
            labels,
            "<text class=\"predicate\" x=\"{:.1}\" y=\"{:.1}\" style=\"fill:{colour}\">{}</text>",
            middle.0,
            middle.1 + 3.0,
            escape_xml(&short_predicate(predicate))
        );
    }
    text.push_str(&labels);
}

/// The path of an arrow from border to border, and the middle of it.
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

/// Where the line from the middle of a box to a point leaves the box.
fn border(place: PlacedNode, towards: (f64, f64), gap: f64) -> (f64, f64) {
    let (dx, dy) = (towards.0 - place.x, towards.1 - place.y);
    let (w, h) = (place.width / 2.0 + gap, place.height / 2.0 + gap);
    let share = (w / dx.abs().max(1e-9))
        .min(h / dy.abs().max(1e-9))
        .min(1.0);
    (place.x + dx * share, place.y + dy * share)
}

fn draw_nodes(text: &mut String, sketch: &Diagram, placed: &[PlacedNode]) {
    for (name, place) in sketch.nodes.iter().zip(placed) {
        let class = if name.depth == 0 {
            " class=\"middle\""
        } else {
            ""
        };
        let PlacedNode {
            x,
            y,
            width,
            height,
        } = *place;
        let _ = writeln!(
            text,
            "<g{class}><title>{}</title><rect class=\"name\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"9\"/>",
            escape_xml(&name.name),
            x - width / 2.0,
            y - height / 2.0
        );
        let lift = if name.kind.is_empty() { 4.5 } else { -2.0 };
        let _ = writeln!(
            text,
            "<text class=\"label\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            y + lift,
            escape_xml(&name.label())
        );
        if !name.kind.is_empty() {
            let _ = writeln!(
                text,
                "<text class=\"kind\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                y + 13.0,
                escape_xml(&name.kind)
            );
        }
        text.push_str("</g>\n");
    }
}

fn draw_legend(text: &mut String, sketch: &Diagram, frame: &SvgFrame) {
    let widest = sketch.predicates.iter().take(MAX_IN_LEGEND);
    let widest = widest
        .map(|name| layout::text_width(&short_predicate(name), 12.0))
        .fold(90.0, f64::max);
    let x = frame.x + frame.width - MARGIN - widest - 36.0;
    let mut y = frame.y + MARGIN + 6.0;
    for (at, predicate) in sketch.predicates.iter().enumerate().take(MAX_IN_LEGEND) {
        let (colour, stroke) = edge_style(at);
        let _ = writeln!(
            text,
            "<path d=\"M{x:.0} {:.0} h26\" stroke=\"{colour}\" stroke-width=\"2.4\" stroke-dasharray=\"{stroke}\"/><text class=\"legend\" x=\"{:.0}\" y=\"{y:.0}\">{}</text>",
            y - 4.0,
            x + 34.0,
            escape_xml(&short_predicate(predicate))
        );
        y += LEGEND_LINE_HEIGHT;
    }
    let hidden = sketch.predicates.len().saturating_sub(MAX_IN_LEGEND);
    let more = if sketch.has_more {
        ", more are known"
    } else {
        ""
    };
    let mut remark = format!("{} facts{more}", sketch.edges.len());
    if hidden > 0 {
        let _ = write!(remark, ", {hidden} other predicates");
    }
    let _ = writeln!(
        text,
        "<text class=\"legend soft\" x=\"{x:.0}\" y=\"{:.0}\">{remark}</text>",
        y + 6.0
    );
}

fn edge_style(predicate: usize) -> (&'static str, &'static str) {
    (
        COLORS[predicate % COLORS.len()],
        DASH_PATTERNS[predicate / COLORS.len() % DASH_PATTERNS.len()],
    )
}

/// The end of an address says enough.
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

fn escape_xml(text: &str) -> String {
    let allowed = |c: &char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let mut safe = String::with_capacity(text.len());
    for c in text.chars().filter(allowed) {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
