//! Tasks about shapes and places in drawings.

use crate::element::Element;
use crate::episode::{Episode, Outcome};

pub const TASKS: &[&str] = &[
    "bisect-angle",
    "circle-center",
    "click-shape",
    "count-shape",
    "find-midpoint",
    "grid-coordinate",
    "identify-shape",
    "right-angle",
];

pub async fn run(task: &str, episode: &Episode<'_>) -> Outcome {
    let (drawing, shapes) = episode.drawing().await?;
    match task {
        "click-shape" => {
            let wanted = episode.task.trim_start_matches("Click on a ");
            let found = shapes.iter().find(|one| matches(one, wanted));
            episode.click_on(found.ok_or("no such shape")?).await
        }
        "count-shape" => {
            let wanted = episode.between("How many ", "s are there")?;
            let count = shapes.iter().filter(|one| matches(one, &wanted)).count();
            episode.click(&["button"], &count.to_string()).await
        }
        "identify-shape" => {
            let shape = shapes.first().ok_or("no shape")?;
            episode.click(&["button"], kind_of(shape)).await
        }
        "grid-coordinate" => grid_coordinate(episode, &drawing, &shapes).await,
        _ => {
            let (x, y) = place(task, &drawing, &shapes).ok_or("no place")?;
            episode.click_at(&drawing, x, y).await?;
            episode.submit().await
        }
    }
}

fn kind_of(shape: &Element) -> &'static str {
    match shape.kind.as_str() {
        "rect" => "Rectangle",
        "circle" => "Circle",
        "polygon" => "Triangle",
        _ if shape.name.starts_with(|c: char| c.is_ascii_digit()) => "Number",
        _ => "Letter",
    }
}

/// Returns true for a shape that a description such as `small red digit` means.
fn matches(shape: &Element, wanted: &str) -> bool {
    // Text is as high as its font, which has room above and below.
    let limit = if shape.kind == "text" { 16.0 } else { 15.0 };
    let is_large = shape.height > limit;
    wanted.split(' ').all(|word| match word {
        "large" => is_large,
        "small" => !is_large,
        "item" => true,
        "shape" => shape.kind != "text",
        "digit" => kind_of(shape) == "Number",
        "letter" => kind_of(shape) == "Letter",
        "circle" => shape.kind == "circle",
        "rectangle" => shape.kind == "rect",
        "triangle" => shape.kind == "polygon",
        word if word.chars().count() == 1 => shape.name == word,
        color => shape.has(color),
    })
}

async fn grid_coordinate(episode: &Episode<'_>, drawing: &Element, shapes: &[Element]) -> Outcome {
    let place = episode.between("(", ")")?;
    let (x, y) = place.split_once(',').ok_or_else(|| episode.unexpected())?;
    let parse = |text: &str| text.trim().parse::<f64>().map_err(|_| episode.unexpected());
    let (x, y) = (parse(x)?, parse(y)?);
    let (middle_x, middle_y) = (drawing.width / 2.0, drawing.height / 2.0);
    let goal = (middle_x + 30.0 * x, middle_y - 30.0 * y);
    let circles = shapes.iter().filter(|one| one.kind == "circle");
    let distance = |one: &&Element| {
        let (x, y) = one.center();
        (x - goal.0).hypot(y - goal.1)
    };
    let nearest = circles.min_by(|one, other| distance(one).total_cmp(&distance(other)));
    episode.click_on(nearest.ok_or("no point")?).await
}

/// Computes the place in the drawing that a task asks for.
fn place(task: &str, drawing: &Element, shapes: &[Element]) -> Option<(f64, f64)> {
    let circles = || shapes.iter().filter(|one| one.kind == "circle");
    let black = || circles().filter(|one| one.has("black"));
    let blue = || circles().find(|one| one.has("blue"));
    match task {
        "circle-center" => circles().next().map(Element::center),
        "find-midpoint" => {
            let (one, other) = (black().next()?.center(), black().nth(1)?.center());
            Some(((one.0 + other.0) / 2.0, (one.1 + other.1) / 2.0))
        }
        "right-angle" => {
            let (corner, other) = (blue()?.center(), black().next()?.center());
            let (dx, dy) = direction(corner, other);
            let sides = [(-dy, dx), (dy, -dx)];
            farthest(drawing, corner, &sides)
        }
        _ => {
            let corner = blue()?.center();
            let one = direction(corner, black().next()?.center());
            let other = direction(corner, black().nth(1)?.center());
            let (dx, dy) = direction((0.0, 0.0), (one.0 + other.0, one.1 + other.1));
            farthest(drawing, corner, &[(dx, dy)])
        }
    }
}

fn direction(from: (f64, f64), to: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(0.001);
    (dx / length, dy / length)
}

/// Returns the place that is farthest away in one of the directions, up to 60 px, and in the drawing.
fn farthest(drawing: &Element, from: (f64, f64), directions: &[(f64, f64)]) -> Option<(f64, f64)> {
    let steps = (4..=60).rev().map(f64::from);
    let mut places = steps.flat_map(|length| {
        let at = move |(dx, dy): &(f64, f64)| (from.0 + dx * length, from.1 + dy * length);
        directions.iter().map(at)
    });
    places.find(|(x, y)| {
        (3.0..drawing.width - 3.0).contains(x) && (3.0..drawing.height - 3.0).contains(y)
    })
}
