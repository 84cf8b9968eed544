//! Where things stand in a picture: a tree around the middle first, then forces, then nothing on top of anything.
//! Nothing is left to chance, so that the same graph gives the same picture.

use std::f64::consts::TAU;

use super::{Diagram, DiagramNode};

const RING_RADIUS: f64 = 150.0;
/// The length that links would like to have.
const EDGE_LENGTH: f64 = 105.0;
const REPULSION: f64 = 3.5;
const ATTRACTION: f64 = 0.12;
const ITERATIONS: usize = 260;
/// How strongly boxes get out of the way of arrows, and how far.
const AVOIDANCE: f64 = 0.7;
const CLEARANCE: f64 = 10.0;
/// Boxes are wide and low: beside each other they need more room.
const WIDTH_FACTOR: f64 = 1.7;
const GAP: f64 = 18.0;

/// A box with its middle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlacedNode {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

pub fn place_nodes(sketch: &Diagram) -> Vec<PlacedNode> {
    let mut placed: Vec<PlacedNode> = sketch.nodes.iter().map(node_size).collect();
    arrange_in_rings(sketch, &mut placed);
    for round in 0..ITERATIONS {
        let heat = 30.0 * (1.0 - round as f64 / ITERATIONS as f64) + 0.5;
        let mut moves = vec![(0.0, 0.0); placed.len()];
        apply_forces(sketch, &placed, &mut moves);
        if round > ITERATIONS / 4 {
            avoid_edges(sketch, &placed, &mut moves);
        }
        // The first stays in the middle.
        for (place, (x, y)) in placed.iter_mut().zip(moves).skip(1) {
            let length = f64::hypot(x, y).max(1e-9);
            let step = length.min(heat) / length;
            place.x += x * step;
            place.y += y * step;
        }
    }
    for _ in 0..200 {
        if !separate_overlaps(&mut placed) {
            break;
        }
    }
    placed
}

fn node_size(name: &DiagramNode) -> PlacedNode {
    let scale = if name.depth == 0 { 1.15 } else { 1.0 };
    let label = text_width(&name.label(), 13.0) * scale;
    let kind = text_width(&name.kind, 10.5);
    let height = if name.kind.is_empty() { 28.0 } else { 42.0 };
    PlacedNode {
        width: label.max(kind) + 26.0,
        height: height * scale,
        ..PlacedNode::default()
    }
}

/// About as wide as most fonts make it.
pub fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ':' | '\'' | ' ' => 0.34,
        'm' | 'w' | 'M' | 'W' => 0.86,
        'A'..='Z' => 0.68,
        '\u{300}'..='\u{36f}' => 0.0,
        '\u{1100}'.. => 1.0,
        _ => 0.57,
    };
    text.chars().map(width).sum::<f64>() * size
}

/// Each name on the ring of its depth, near the one that it was reached from, with room for what hangs on it.
fn arrange_in_rings(sketch: &Diagram, placed: &mut [PlacedNode]) {
    let count = sketch.nodes.len();
    let mut parents = vec![None; count];
    for link in &sketch.edges {
        for (near, far) in [(link.from, link.to), (link.to, link.from)] {
            if sketch.nodes[far].depth == sketch.nodes[near].depth + 1 && parents[far].is_none() {
                parents[far] = Some(near);
            }
        }
    }
    // Names come nearest first: backwards, every child is counted before its parent.
    let mut leaves = vec![0.0_f64; count];
    for at in (0..count).rev() {
        leaves[at] = leaves[at].max(1.0);
        if let Some(parent) = parents[at] {
            leaves[parent] += leaves[at];
        }
    }
    let mut sectors = vec![(0.0, TAU); count];
    let mut used = vec![0.0; count];
    for at in 0..count {
        let Some(parent) = parents[at] else { continue };
        let (begin, width): (f64, f64) = sectors[parent];
        let all = leaves[parent].max(1.0);
        let share = width * leaves[at] / all;
        sectors[at] = (begin + used[parent], share);
        used[parent] += share;
        let (angle, radius) = (
            sectors[at].0 + share / 2.0,
            RING_RADIUS * f64::from(sketch.nodes[at].depth),
        );
        (placed[at].x, placed[at].y) = (radius * angle.cos() * 1.25, radius * angle.sin());
    }
}

fn apply_forces(sketch: &Diagram, placed: &[PlacedNode], moves: &mut [(f64, f64)]) {
    for a in 0..placed.len() {
        for b in 0..a {
            let (dx, dy) = (
                (placed[a].x - placed[b].x) / WIDTH_FACTOR,
                placed[a].y - placed[b].y,
            );
            let distance = dx.hypot(dy).max(1.0);
            let force = REPULSION * EDGE_LENGTH * EDGE_LENGTH / (distance * distance * distance);
            shift(moves, (a, b), (dx * force, dy * force));
        }
    }
    for link in sketch.edges.iter().filter(|link| link.from != link.to) {
        let (a, b) = (link.from, link.to);
        let (dx, dy) = (
            (placed[a].x - placed[b].x) / WIDTH_FACTOR,
            placed[a].y - placed[b].y,
        );
        let distance = dx.hypot(dy).max(1.0);
        let force = (distance - EDGE_LENGTH) / distance * -ATTRACTION;
        shift(moves, (a, b), (dx * force * WIDTH_FACTOR, dy * force));
    }
}

/// Boxes leave the lines between others.
fn avoid_edges(sketch: &Diagram, placed: &[PlacedNode], moves: &mut [(f64, f64)]) {
    for link in sketch.edges.iter().filter(|link| link.from != link.to) {
        let (from, to) = (placed[link.from], placed[link.to]);
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = dx.hypot(dy).max(1.0);
        let (across_x, across_y) = (-dy / length, dx / length);
        for (at, place) in placed.iter().enumerate() {
            let (x, y) = (place.x - from.x, place.y - from.y);
            let along = (x * dx + y * dy) / (length * length);
            if at == link.from || at == link.to || !(0.0..=1.0).contains(&along) {
                continue;
            }
            let away = x * across_x + y * across_y;
            let half = across_x.abs() * place.width / 2.0 + across_y.abs() * place.height / 2.0;
            let lacking = half + CLEARANCE - away.abs();
            if lacking > 0.0 {
                let way = (lacking * AVOIDANCE).copysign(away);
                shift(moves, (at, link.from), (across_x * way, across_y * way));
            }
        }
    }
}

fn shift(moves: &mut [(f64, f64)], (a, b): (usize, usize), (x, y): (f64, f64)) {
    moves[a].0 += x;
    moves[a].1 += y;
    moves[b].0 -= x;
    moves[b].1 -= y;
}

/// Moves boxes that lie on each other; whether there were any.
fn separate_overlaps(placed: &mut [PlacedNode]) -> bool {
    let mut any = false;
    for a in 1..placed.len() {
        for b in 0..a {
            let (one, other) = (placed[a], placed[b]);
            let (dx, dy) = (one.x - other.x, one.y - other.y);
            let over_x = (one.width + other.width) / 2.0 + GAP - dx.abs();
            let over_y = (one.height + other.height) / 2.0 + GAP - dy.abs();
            if over_x <= 0.01 || over_y <= 0.01 {
                continue;
            }
            any = true;
            let share = if b == 0 { 1.0 } else { 0.5 };
            if over_y <= over_x {
                let way = if dy >= 0.0 { over_y } else { -over_y };
                placed[a].y += way * share;
                placed[b].y -= way * (1.0 - share);
            } else {
                let way = if dx >= 0.0 { over_x } else { -over_x };
                placed[a].x += way * share;
                placed[b].x -= way * (1.0 - share);
            }
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::diagram::DiagramEdge;

    #[test]
    fn nothing_lies_on_anything_and_the_same_graph_looks_the_same() {
        let name = |at: usize| DiagramNode {
            name: format!("a name of some length {at}"),
            kind: if at.is_multiple_of(3) {
                "thing".to_owned()
            } else {
                String::new()
            },
            depth: match at {
                0 => 0,
                1..=12 => 1,
                _ => 2,
            },
        };
        let link = |at: usize| DiagramEdge {
            from: if at <= 12 { 0 } else { at % 12 + 1 },
            to: at,
            predicate: 0,
            validity: String::new(),
        };
        let sketch = Diagram {
            nodes: (0..50).map(name).collect(),
            edges: (1..50).map(link).collect(),
            predicates: vec!["p".to_owned()],
            has_more: false,
        };
        let placed = place_nodes(&sketch);
        assert_eq!(placed, place_nodes(&sketch));
        for a in 0..placed.len() {
            for b in 0..a {
                let (one, other) = (placed[a], placed[b]);
                let is_apart = (one.x - other.x).abs() >= (one.width + other.width) / 2.0
                    || (one.y - other.y).abs() >= (one.height + other.height) / 2.0;
                assert!(is_apart, "{a} and {b}: {one:?} {other:?}");
            }
        }
        assert!(place_nodes(&Diagram::default()).is_empty());
    }
}
