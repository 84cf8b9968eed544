//! Tasks that are solved by dragging.

use std::f64::consts::TAU;

use serde_json::json;

use crate::element::Element;
use crate::episode::{Episode, Outcome};

pub const TASKS: &[&str] = &[
    "drag-box",
    "drag-circle",
    "drag-items",
    "drag-items-grid",
    "drag-shapes",
    "drag-shapes-2",
    "drag-single-shape",
    "drag-sort-numbers",
    "draw-circle",
    "draw-line",
    "resize-textarea",
];

pub async fn run(task: &str, episode: &Episode<'_>) -> Outcome {
    match task {
        "drag-box" => {
            let (small, large) = (episode.element("s").await?, episode.element("L").await?);
            let args = json!({ "action": "drag", "ref": small.id, "to_ref": large.id });
            episode.act(args).await?;
            episode.submit().await
        }
        "drag-items" => drag_item(episode, 1).await,
        "drag-items-grid" => drag_item(episode, 3).await,
        "drag-shapes" => drag_shapes(episode).await,
        "drag-shapes-2" => sort_shapes(episode).await,
        "drag-sort-numbers" => sort_numbers(episode).await,
        "draw-circle" => draw_circle(episode).await,
        "draw-line" => draw_line(episode).await,
        "resize-textarea" => resize(episode).await,
        _ => drag_shape(episode).await,
    }
}

async fn drag_shape(episode: &Episode<'_>) -> Outcome {
    let (_, shapes) = episode.drawing().await?;
    let shape = shapes.first().ok_or("no shape")?;
    let (x, y) = (shape.width / 2.0, shape.height / 2.0);
    let (dx, dy) = match () {
        () if episode.task.contains("left") => (-15.0, 0.0),
        () if episode.task.contains("right") => (15.0, 0.0),
        () if episode.task.contains(" up") => (0.0, -15.0),
        () => (0.0, 15.0),
    };
    episode
        .drag_along(shape, &[(x, y), (x + dx, y + dy)])
        .await?;
    episode.submit().await
}

/// Returns the entries of a list or grid that can be sorted.
async fn entries(episode: &Episode<'_>) -> Result<Vec<Element>, String> {
    let elements = episode.elements().await?;
    let mut entries = Vec::new();
    for (at, element) in elements.iter().enumerate() {
        if element.kind == "li" {
            let text = elements[at + 1..].iter().find(|one| one.kind == "div");
            let name = text.map(|one| one.name.clone()).unwrap_or_default();
            entries.push(Element {
                name,
                ..element.clone()
            });
        }
    }
    Ok(entries)
}

/// Drags an entry to the place of another one, a little further in the direction that it moves.
async fn move_entry(episode: &Episode<'_>, entries: &[Element], from: usize, to: usize) -> Outcome {
    let (entry, goal) = (&entries[from], &entries[to]);
    let (x, y) = (entry.width / 2.0, entry.height / 2.0);
    let step = |distance: f64| distance + 4.0 * distance.signum() * f64::from(distance.abs() > 1.0);
    let (dx, dy) = (step(goal.left - entry.left), step(goal.top - entry.top));
    episode.drag_along(entry, &[(x, y), (x + dx, y + dy)]).await
}

async fn drag_item(episode: &Episode<'_>, columns: usize) -> Outcome {
    let entries = entries(episode).await?;
    let name = episode.task.split(' ').nth(1).unwrap_or_default();
    let from = entries.iter().position(|one| one.name == name);
    let from = from.ok_or_else(|| format!("no entry {name}"))?;
    let says = |text: &str| episode.task.contains(text);
    let last = entries.len() - 1;
    let to = match () {
        () if says("up by one") => from - columns,
        () if says("down by one") => from + columns,
        () if says("left by one") => from - 1,
        () if says("right by one") => from + 1,
        () if columns == 1 && says("to the top") => 0,
        () if columns == 1 && says("to the bottom") => last,
        () if columns == 1 => episode.ordinal("to the")?,
        () => {
            let row = match () {
                () if says("top") => 0,
                () if says("bottom") => 2,
                () => 1,
            };
            let column = match () {
                () if says("left") => 0,
                () if says("right") => 2,
                () => 1,
            };
            row * 3 + column
        }
    };
    move_entry(episode, &entries, from, to).await
}

async fn sort_numbers(episode: &Episode<'_>) -> Outcome {
    for place in 0..4 {
        let entries = entries(episode).await?;
        let rest = entries.iter().enumerate().skip(place);
        let least = rest.min_by_key(|(_, one)| one.name.parse::<i64>().unwrap_or(i64::MAX));
        let (from, _) = least.ok_or("no numbers")?;
        if from != place {
            move_entry(episode, &entries, from, place).await?;
        }
    }
    episode.submit().await
}

fn is_kind(shape: &Element, words: &str) -> bool {
    match shape.kind.as_str() {
        "rect" => words.contains("rectangles"),
        "circle" => words.contains("circles"),
        _ => words.contains("triangles"),
    }
}

/// Drags a shape into a box of the drawing. Shapes of a box get places side by side, so that none
/// covers another one.
async fn drag_into(
    episode: &Episode<'_>,
    shape: &Element,
    goal: &Element,
    count: usize,
) -> Outcome {
    let (column, row) = ((count % 3) as f64, (count / 3) as f64);
    let x = goal.left + goal.width * (0.3 + 0.2 * column);
    let y = goal.top + goal.height * (0.4 + 0.25 * row);
    let (from_x, from_y) = shape.center();
    // The middle of a triangle's box may be outside of it.
    let (at_x, at_y) = (shape.width / 2.0, shape.height * 0.6);
    let points = [(at_x, at_y), (at_x + x - from_x, at_y + y - from_y)];
    episode.drag_along(shape, &points).await
}

async fn drag_shapes(episode: &Episode<'_>) -> Outcome {
    let (_, shapes) = episode.drawing().await?;
    let goal = shapes.iter().find(|one| one.has("none")).ok_or("no box")?;
    let wanted = shapes
        .iter()
        .filter(|one| !one.has("none") && is_kind(one, &episode.task));
    for (count, shape) in wanted.enumerate() {
        drag_into(episode, shape, goal, count).await?;
    }
    episode.submit().await
}

async fn sort_shapes(episode: &Episode<'_>) -> Outcome {
    let (_, shapes) = episode.drawing().await?;
    let mut boxes: Vec<&Element> = shapes.iter().filter(|one| one.has("none")).collect();
    boxes.sort_by(|one, other| one.left.total_cmp(&other.left));
    let [left, right] = boxes.as_slice() else {
        return Err("expected two boxes".to_owned());
    };
    let wanted = episode.between("Drag all ", " into the left")?;
    let is_left =
        |shape: &Element| is_kind(shape, &wanted) || wanted.split(' ').any(|word| shape.has(word));
    let mut counts = [0, 0];
    for shape in shapes.iter().filter(|one| !one.has("none")) {
        let side = usize::from(!is_left(shape));
        let goal = if side == 0 { left } else { right };
        drag_into(episode, shape, goal, counts[side]).await?;
        counts[side] += 1;
    }
    episode.submit().await
}

async fn draw_circle(episode: &Episode<'_>) -> Outcome {
    let (drawing, shapes) = episode.drawing().await?;
    let (x, y) = shapes.first().ok_or("no point")?.center();
    let points: Vec<(f64, f64)> = (0..=24)
        .map(|step| {
            let angle = TAU * f64::from(step) / 24.0;
            (x + 22.0 * angle.cos(), y + 22.0 * angle.sin())
        })
        .collect();
    episode.drag_along(&drawing, &points).await?;
    episode.submit().await
}

async fn draw_line(episode: &Episode<'_>) -> Outcome {
    let (drawing, shapes) = episode.drawing().await?;
    let (x, y) = shapes.first().ok_or("no dot")?.center();
    let points = match episode.task.contains("horizontal") {
        true => [(8.0, y), (drawing.width - 8.0, y)],
        false => [(x, 8.0), (x, drawing.height - 8.0)],
    };
    episode.drag_along(&drawing, &points).await?;
    episode.submit().await
}

async fn resize(episode: &Episode<'_>) -> Outcome {
    let elements = episode.elements().await?;
    let corner = elements
        .iter()
        .find(|one| one.name.contains("resizable-se"));
    let corner = corner.ok_or("no corner to drag")?;
    let step = if episode.task.contains("larger") {
        14.0
    } else {
        -14.0
    };
    let (dx, dy) = match episode.task.contains("width") {
        true => (step, 0.0),
        false => (0.0, step),
    };
    let (x, y) = (corner.width / 2.0, corner.height / 2.0);
    episode
        .drag_along(corner, &[(x, y), (x + dx, y + dy)])
        .await?;
    episode.submit().await
}
