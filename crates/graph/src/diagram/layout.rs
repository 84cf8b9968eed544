//! Node layout: a radial tree first, then a force simulation, then removal of overlaps. The layout
//! is deterministic, so that the same graph gives the same diagram.

use std::f64::consts::TAU;

use lango_text::svg::text_width;

use super::{Diagram, DiagramNode};

const RING_RADIUS: f64 = 150.0;
/// Preferred edge length.
const EDGE_LENGTH: f64 = 105.0;
const REPULSION: f64 = 3.5;
const ATTRACTION: f64 = 0.12;
const ITERATIONS: usize = 260;
/// Strength of the force that moves nodes away from edges, and the distance it keeps.
const AVOIDANCE: f64 = 0.7;
const CLEARANCE: f64 = 10.0;
/// Nodes are wide and low, so horizontal distances are scaled down.
const WIDTH_FACTOR: f64 = 1.7;
const GAP: f64 = 18.0;

/// The center and size of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlacedNode {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

pub fn place_nodes(diagram: &Diagram) -> Vec<PlacedNode> {
    let mut placed: Vec<PlacedNode> = diagram.nodes.iter().map(node_size).collect();
    arrange_in_rings(diagram, &mut placed);
    for round in 0..ITERATIONS {
        let heat = 30.0 * (1.0 - round as f64 / ITERATIONS as f64) + 0.5;
        let mut moves = vec![(0.0, 0.0); placed.len()];
        apply_forces(diagram, &placed, &mut moves);
        if round > ITERATIONS / 4 {
            avoid_edges(diagram, &placed, &mut moves);
        }
        // The first node stays in the center.
        for (node, (x, y)) in placed.iter_mut().zip(moves).skip(1) {
            let length = f64::hypot(x, y).max(1e-9);
            let step = length.min(heat) / length;
            node.x += x * step;
            node.y += y * step;
        }
    }
    for _ in 0..200 {
        if !separate_overlaps(&mut placed) {
            break;
        }
    }
    placed
}

fn node_size(node: &DiagramNode) -> PlacedNode {
    let scale = if node.depth == 0 { 1.15 } else { 1.0 };
    let label = text_width(&node.label(), 13.0) * scale;
    let kind = text_width(&node.kind, 10.5);
    let height = if node.kind.is_empty() { 28.0 } else { 42.0 };
    PlacedNode {
        width: label.max(kind) + 26.0,
        height: height * scale,
        ..PlacedNode::default()
    }
}

/// Places each node on the ring of its depth, near its parent, in a sector sized by its descendants.
fn arrange_in_rings(diagram: &Diagram, placed: &mut [PlacedNode]) {
    let count = diagram.nodes.len();
    let mut parents = vec![None; count];
    for edge in &diagram.edges {
        for (near, far) in [(edge.from, edge.to), (edge.to, edge.from)] {
            if diagram.nodes[far].depth == diagram.nodes[near].depth + 1 && parents[far].is_none() {
                parents[far] = Some(near);
            }
        }
    }
    // Nodes are ordered by depth, so iterating backwards counts every child before its parent.
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
            RING_RADIUS * f64::from(diagram.nodes[at].depth),
        );
        (placed[at].x, placed[at].y) = (radius * angle.cos() * 1.25, radius * angle.sin());
    }
}

fn apply_forces(diagram: &Diagram, placed: &[PlacedNode], moves: &mut [(f64, f64)]) {
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
    for edge in diagram.edges.iter().filter(|edge| edge.from != edge.to) {
        let (a, b) = (edge.from, edge.to);
        let (dx, dy) = (
            (placed[a].x - placed[b].x) / WIDTH_FACTOR,
            placed[a].y - placed[b].y,
        );
        let distance = dx.hypot(dy).max(1.0);
        let force = (distance - EDGE_LENGTH) / distance * -ATTRACTION;
        shift(moves, (a, b), (dx * force * WIDTH_FACTOR, dy * force));
    }
}

/// Moves nodes away from edges between other nodes.
fn avoid_edges(diagram: &Diagram, placed: &[PlacedNode], moves: &mut [(f64, f64)]) {
    for edge in diagram.edges.iter().filter(|edge| edge.from != edge.to) {
        let (from, to) = (placed[edge.from], placed[edge.to]);
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = dx.hypot(dy).max(1.0);
        let (across_x, across_y) = (-dy / length, dx / length);
        for (at, node) in placed.iter().enumerate() {
            let (x, y) = (node.x - from.x, node.y - from.y);
            let along = (x * dx + y * dy) / (length * length);
            if at == edge.from || at == edge.to || !(0.0..=1.0).contains(&along) {
                continue;
            }
            let distance = x * across_x + y * across_y;
            let half = across_x.abs() * node.width / 2.0 + across_y.abs() * node.height / 2.0;
            let missing = half + CLEARANCE - distance.abs();
            if missing > 0.0 {
                let step = (missing * AVOIDANCE).copysign(distance);
                shift(moves, (at, edge.from), (across_x * step, across_y * step));
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

/// Moves overlapping nodes apart. Returns true if there were any.
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
                let step = if dy >= 0.0 { over_y } else { -over_y };
                placed[a].y += step * share;
                placed[b].y -= step * (1.0 - share);
            } else {
                let step = if dx >= 0.0 { over_x } else { -over_x };
                placed[a].x += step * share;
                placed[b].x -= step * (1.0 - share);
            }
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagram::DiagramEdge;

    #[test]
    fn layout_is_deterministic_and_without_overlaps() {
        let node = |at: usize| DiagramNode {
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
        let edge = |at: usize| DiagramEdge {
            from: if at <= 12 { 0 } else { at % 12 + 1 },
            to: at,
            predicate: 0,
            validity: String::new(),
        };
        let diagram = Diagram {
            nodes: (0..50).map(node).collect(),
            edges: (1..50).map(edge).collect(),
            predicates: vec!["p".to_owned()],
            has_more: false,
        };
        let placed = place_nodes(&diagram);
        assert_eq!(placed, place_nodes(&diagram));
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
