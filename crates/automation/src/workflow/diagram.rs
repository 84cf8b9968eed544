//! Draws a workflow as SVG: a box per step, in columns from left to right, with its state if it is a run.

use std::collections::HashMap;
use std::fmt::Write as _;

use lango_domain::automation::{RunStep, StepState};
use lango_text::svg::{escape_xml, text_width};

use super::definition::{StepAction, Workflow, WorkflowStep};

const MARGIN: f64 = 28.0;
const BOX_HEIGHT: f64 = 50.0;
const ROW_GAP: f64 = 22.0;
const COLUMN_GAP: f64 = 64.0;
const TITLE_HEIGHT: f64 = 34.0;
/// The longest text in a box, in characters.
const MAX_CHARS: usize = 32;

const STYLE: &str = "
  text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif; fill: #24292f; }
  .ground { fill: #fbfbfa; }
  .title { font-size: 15px; font-weight: 600; }
  .box { fill: #ffffff; stroke: #c9ccd1; stroke-width: 1.4; }
  .id { font-size: 13px; font-weight: 600; }
  .action { font-size: 11px; fill: #6b7280; }
  .state { font-size: 11px; text-anchor: end; }
  .edge { fill: none; stroke: #9aa3af; stroke-width: 1.6; }
  .tip { fill: #9aa3af; }
  .done .box { stroke: #4f9a5b; } .done .state { fill: #3c7d47; }
  .running .box { stroke: #4e79a7; stroke-width: 2.4; } .running .state { fill: #3f6690; }
  .waiting .box { stroke: #b8902f; stroke-width: 2.4; } .waiting .state { fill: #8f6d1d; }
  .unknown .box { stroke: #b8902f; stroke-width: 2.4; stroke-dasharray: 5 3; } .unknown .state { fill: #8f6d1d; }
  .failed .box { stroke: #c9525b; stroke-width: 2.4; } .failed .state { fill: #b23b45; }
  .skipped .box, .cancelled .box { stroke-dasharray: 4 3; } .skipped, .cancelled { opacity: 0.65; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e8eb; }
    .ground { fill: #16181c; }
    .box { fill: #22262c; stroke: #454b54; }
    .action { fill: #9aa3af; }
    .done .state { fill: #7fc08a; } .running .state { fill: #8fb3dd; } .failed .state { fill: #e98a92; }
    .waiting .state, .unknown .state { fill: #dcb95c; }
  }
";

/// The place of a step.
#[derive(Clone, Copy, Default)]
struct PlacedStep {
    x: f64,
    y: f64,
    width: f64,
}

/// Draws a workflow. With the rows of a run, every step shows its state.
pub fn render_workflow(workflow: &Workflow, rows: Option<&[RunStep]>) -> String {
    let columns = columns(workflow);
    let placed = place(workflow, &columns);
    let right = placed.iter().map(|step| step.x + step.width);
    let edges = edges(workflow, &columns, &placed);
    let lanes = edges.iter().filter_map(|edge| edge.lane);
    let bottom = placed.iter().map(|step| step.y + BOX_HEIGHT).chain(lanes);
    let title_width = text_width(&shorten(&workflow.name), 15.0) * 1.1;
    let width = right.fold(MARGIN + title_width, f64::max) + MARGIN;
    let height = bottom.fold(TITLE_HEIGHT, f64::max) + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n"
    );
    let _ = writeln!(
        svg,
        "<title>{}</title>\n<style>{STYLE}</style>\n<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"tip\" d=\"M0 1 L10 5 L0 9 Z\"/></marker></defs>\n<rect class=\"ground\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n<text class=\"title\" x=\"{MARGIN:.0}\" y=\"{MARGIN:.0}\">{}</text>",
        escape_xml(&workflow.name),
        escape_xml(&shorten(&workflow.name))
    );
    edges.iter().for_each(|edge| draw_edge(&mut svg, *edge));
    for (step, place) in workflow.steps.iter().zip(&placed) {
        let row = rows.and_then(|rows| rows.iter().find(|row| row.step == step.id));
        let state = rows.map(|_| row.map_or(StepState::Pending, |row| row.state));
        draw_step(&mut svg, step, *place, state, row);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Returns the column of each step: one after the last of its dependencies.
fn columns(workflow: &Workflow) -> Vec<usize> {
    let positions = positions(workflow);
    let mut columns = vec![0; workflow.steps.len()];
    // A chain is never longer than the number of steps, so this ends even for a file with a cycle.
    for _ in 0..workflow.steps.len() {
        let mut is_stable = true;
        for (at, step) in workflow.steps.iter().enumerate() {
            let dependencies = step
                .depends_on
                .iter()
                .filter_map(|id| positions.get(id.as_str()));
            let column = dependencies
                .map(|before| columns[*before] + 1)
                .max()
                .unwrap_or(0);
            if column > columns[at] && column < workflow.steps.len() {
                columns[at] = column;
                is_stable = false;
            }
        }
        if is_stable {
            break;
        }
    }
    columns
}

fn positions(workflow: &Workflow) -> HashMap<&str, usize> {
    let steps = workflow.steps.iter().enumerate();
    steps.map(|(at, step)| (step.id.as_str(), at)).collect()
}

/// Places the steps column by column. In a column, steps follow the order of their dependencies.
fn place(workflow: &Workflow, columns: &[usize]) -> Vec<PlacedStep> {
    let positions = positions(workflow);
    let mut placed = vec![PlacedStep::default(); workflow.steps.len()];
    let count = columns.iter().max().map_or(0, |last| last + 1);
    let mut x = MARGIN;
    for column in 0..count {
        let mut members: Vec<usize> = (0..workflow.steps.len())
            .filter(|at| columns[*at] == column)
            .collect();
        let middle = |at: usize| {
            let dependencies = workflow.steps[at].depends_on.iter();
            let heights: Vec<f64> = dependencies
                .filter_map(|id| positions.get(id.as_str()))
                .map(|before| placed[*before].y)
                .collect();
            heights.iter().sum::<f64>() / heights.len().max(1) as f64
        };
        let middles: HashMap<usize, f64> = members.iter().map(|at| (*at, middle(*at))).collect();
        members.sort_by(|a, b| middles[a].total_cmp(&middles[b]).then(a.cmp(b)));
        let width = members
            .iter()
            .map(|at| box_width(&workflow.steps[*at]))
            .fold(120.0, f64::max);
        for (row, at) in members.into_iter().enumerate() {
            let y = MARGIN + TITLE_HEIGHT + row as f64 * (BOX_HEIGHT + ROW_GAP);
            placed[at] = PlacedStep { x, y, width };
        }
        x += width + COLUMN_GAP;
    }
    placed
}

fn box_width(step: &WorkflowStep) -> f64 {
    let id = text_width(&shorten(&step.id), 13.0) * 1.1 + 74.0;
    let action = text_width(&shorten(&action_text(step)), 11.0);
    id.max(action) + 24.0
}

/// An arrow between two boxes.
#[derive(Clone, Copy)]
struct DrawnEdge {
    from: (f64, f64),
    to: (f64, f64),
    /// The height at which it passes below the boxes between its ends, if some are in its way.
    lane: Option<f64>,
}

fn edges(workflow: &Workflow, columns: &[usize], placed: &[PlacedStep]) -> Vec<DrawnEdge> {
    let positions = positions(workflow);
    let mut edges: Vec<DrawnEdge> = Vec::new();
    for (at, step) in workflow.steps.iter().enumerate() {
        let dependencies = step.depends_on.iter();
        for before in dependencies.filter_map(|id| positions.get(id.as_str())) {
            let (start, end) = (placed[*before], placed[at]);
            let (top, low) = (start.y.min(end.y), start.y.max(end.y));
            let between =
                |other: &usize| columns[*other] > columns[*before] && columns[*other] < columns[at];
            let between: Vec<PlacedStep> = (0..placed.len())
                .filter(between)
                .map(|other| placed[other])
                .collect();
            let is_blocked = between.iter().any(|other| other.y >= top && other.y <= low);
            let used = edges.iter().filter(|edge| edge.lane.is_some()).count();
            let lowest = between.iter().map(|other| other.y + BOX_HEIGHT);
            let lane = lowest.fold(0.0, f64::max) + 11.0 + 6.0 * used as f64;
            edges.push(DrawnEdge {
                from: (start.x + start.width, start.y + BOX_HEIGHT / 2.0),
                to: (end.x - 2.0, end.y + BOX_HEIGHT / 2.0),
                lane: is_blocked.then_some(lane),
            });
        }
    }
    edges
}

fn draw_edge(svg: &mut String, edge: DrawnEdge) {
    let ((x1, y1), (x2, y2)) = (edge.from, edge.to);
    let path = match edge.lane {
        None => {
            let bend = ((x2 - x1) / 2.0).max(20.0);
            let (a, b) = (x1 + bend, x2 - bend);
            format!("M{x1:.1} {y1:.1} C{a:.1} {y1:.1} {b:.1} {y2:.1} {x2:.1} {y2:.1}")
        }
        Some(y) => {
            let (half, gap) = (COLUMN_GAP / 2.0, COLUMN_GAP);
            let (a, b, c, d) = (x1 + half, x1 + gap, x2 - gap, x2 - half);
            format!(
                "M{x1:.1} {y1:.1} C{a:.1} {y1:.1} {a:.1} {y:.1} {b:.1} {y:.1} L{c:.1} {y:.1} C{d:.1} {y:.1} {d:.1} {y2:.1} {x2:.1} {y2:.1}"
            )
        }
    };
    let _ = writeln!(
        svg,
        "<path class=\"edge\" d=\"{path}\" marker-end=\"url(#tip)\"/>"
    );
}

fn draw_step(
    svg: &mut String,
    step: &WorkflowStep,
    place: PlacedStep,
    state: Option<StepState>,
    row: Option<&RunStep>,
) {
    let PlacedStep { x, y, width } = place;
    let class = state.map_or("plain", StepState::as_str);
    let details = row.and_then(|row| row.error.as_deref().or(row.reason.as_deref()));
    let title = match (state, details) {
        (Some(state), Some(details)) => format!("{}: {}, {details}", step.id, state.as_str()),
        (Some(state), None) => format!("{}: {}", step.id, state.as_str()),
        (None, _) => step.id.clone(),
    };
    let _ = writeln!(
        svg,
        "<g class=\"{class}\"><title>{}</title><rect class=\"box\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BOX_HEIGHT:.1}\" rx=\"8\"/>",
        escape_xml(&title)
    );
    let _ = writeln!(
        svg,
        "<text class=\"id\" x=\"{:.1}\" y=\"{:.1}\">{}</text><text class=\"action\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        x + 12.0,
        y + 21.0,
        escape_xml(&shorten(&step.id)),
        x + 12.0,
        y + 39.0,
        escape_xml(&shorten(&action_text(step)))
    );
    if let Some(state) = state {
        let _ = writeln!(
            svg,
            "<text class=\"state\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + width - 10.0,
            y + 20.0,
            state.as_str()
        );
    }
    svg.push_str("</g>\n");
}

fn action_text(step: &WorkflowStep) -> String {
    let action = match &step.action {
        StepAction::Agent {
            agent: Some(agent), ..
        } => agent.clone(),
        StepAction::Agent { agent: None, .. } => "the team".to_owned(),
        StepAction::Tool { tool, .. } => tool.clone(),
    };
    let mut marks = Vec::new();
    if step.condition.is_some() {
        marks.push("if");
    }
    if step.approval.is_some() {
        marks.push("approval");
    }
    if step.retry.attempts > 1 {
        marks.push("retry");
    }
    match marks.is_empty() {
        true => action,
        false => format!("{action} · {}", marks.join(", ")),
    }
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= MAX_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARS - 1).chain(['…']).collect()
}
