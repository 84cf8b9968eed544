//! Tasks that are solved by clicking what has a name or a color.

use crate::element::Element;
use crate::episode::{Episode, Outcome};

pub const TASKS: &[&str] = &[
    "ascending-numbers",
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-checkboxes-large",
    "click-checkboxes-transfer",
    "click-collapsible",
    "click-collapsible-2",
    "click-collapsible-2-nodelay",
    "click-collapsible-nodelay",
    "click-color",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-option",
    "click-shades",
    "click-tab",
    "click-tab-2",
    "click-tab-2-easy",
    "click-tab-2-hard",
    "click-tab-2-medium",
    "click-test",
    "click-test-2",
    "click-test-transfer",
    "click-widget",
    "find-greatest",
    "focus-text",
    "focus-text-2",
    "odd-or-even",
    "unicode-test",
];

pub async fn run(task: &str, episode: &Episode<'_>) -> Outcome {
    match task {
        "ascending-numbers" => ascending_numbers(episode).await,
        "click-test" => episode.click(&["button"], "Click Me!").await,
        "click-test-2" | "click-test-transfer" => episode.click(&["button"], "ONE").await,
        "click-button" | "unicode-test" => {
            episode.click(&["button"], &episode.first_quoted()?).await
        }
        "click-button-sequence" => {
            episode.click(&["button"], "ONE").await?;
            episode.click(&["button"], "TWO").await
        }
        "click-collapsible" | "click-collapsible-nodelay" => {
            let section = episode.nth("tab", 0).await?;
            episode.click_on(&section).await?;
            episode.submit().await
        }
        "click-color" => click_color(episode).await,
        "click-dialog" => episode.click(&["button"], "Close").await,
        "click-dialog-2" => {
            let wanted = episode.first_quoted()?;
            let name = if wanted == "x" { "Close" } else { &wanted };
            episode.click(&["button"], name).await
        }
        "click-link" => episode.click(&[], &episode.first_quoted()?).await,
        "click-option" => select_boxes(episode, "radio").await,
        "click-shades" => click_shades(episode).await,
        "click-tab" => {
            let wanted = episode.between("Click on ", ".")?;
            episode.click(&["tab", "link"], &wanted).await
        }
        "click-widget" => click_widget(episode).await,
        "find-greatest" => find_greatest(episode).await,
        "focus-text" => focus(episode, 0).await,
        "focus-text-2" => focus(episode, episode.ordinal("")?).await,
        "odd-or-even" => odd_or_even(episode).await,
        task if task.starts_with("click-checkboxes") => select_boxes(episode, "checkbox").await,
        _ => search_tabs(episode, &episode.first_quoted()?).await,
    }
}

async fn focus(episode: &Episode<'_>, at: usize) -> Outcome {
    let field = episode.nth("textbox", at).await?;
    episode.click_on(&field).await
}

async fn select_boxes(episode: &Episode<'_>, role: &str) -> Outcome {
    let wanted = episode.between("Select ", " and click")?;
    let controls = episode.controls().await?;
    for name in wanted.split(", ").filter(|name| *name != "nothing") {
        let found = controls
            .iter()
            .find(|one| one.kind == role && one.name == name);
        let found = found.ok_or_else(|| format!("no {role} \"{name}\""))?;
        episode.click_on(found).await?;
    }
    episode.submit().await
}

/// Opens tabs or sections until a link or word is there.
async fn search_tabs(episode: &Episode<'_>, wanted: &str) -> Outcome {
    for at in 0..8 {
        let controls = episode.controls().await?;
        let is_wanted = |one: &&Element| {
            ["clickable", "link"].contains(&one.kind.as_str()) && one.name == wanted
        };
        if let Some(link) = controls.iter().find(is_wanted) {
            return episode.click_on(link).await;
        }
        let mut tabs = controls.iter().filter(|one| one.kind == "tab");
        let Some(tab) = tabs.nth(at) else {
            break;
        };
        if !tab.has("selected") || !tab.has("expanded") {
            episode.click_on(tab).await?;
        }
    }
    // The score of the page decides: some pages count the tab itself.
    Ok(())
}

/// The colors that the tasks name.
pub fn named_color(name: &str) -> Option<(i32, i32, i32)> {
    Some(match name {
        "black" => (0, 0, 0),
        "white" => (255, 255, 255),
        "aqua" | "cyan" => (0, 255, 255),
        "blue" => (0, 0, 255),
        "gray" | "grey" => (128, 128, 128),
        "green" => (0, 128, 0),
        "lime" => (0, 255, 0),
        "maroon" => (128, 0, 0),
        "navy" => (0, 0, 128),
        "olive" => (128, 128, 0),
        "purple" => (128, 0, 128),
        "red" => (255, 0, 0),
        "silver" => (192, 192, 192),
        "teal" => (0, 128, 128),
        "yellow" => (255, 255, 0),
        "pink" => (255, 192, 203),
        "magenta" => (255, 0, 255),
        "gold" => (255, 215, 0),
        "orange" => (255, 165, 0),
        _ => return None,
    })
}

async fn click_color(episode: &Episode<'_>) -> Outcome {
    let wanted = episode.between("Click on the ", " colored box")?;
    let color = named_color(&wanted).ok_or_else(|| episode.unexpected())?;
    let elements = episode.elements().await?;
    let found = elements.iter().find(|one| one.color() == Some(color));
    let found = found.ok_or_else(|| format!("no box is {wanted}"))?;
    episode.click_on(found).await
}

async fn click_shades(episode: &Episode<'_>) -> Outcome {
    let wanted = episode.between("shades of ", " and press")?;
    for element in episode.elements().await? {
        let Some((red, green, blue)) = element.color().filter(|_| element.kind == "span") else {
            continue;
        };
        let shade = match () {
            () if red > green && red > blue => "red",
            () if green > red && green > blue => "green",
            () => "blue",
        };
        if shade == wanted {
            episode.click_on(&element).await?;
        }
    }
    episode.submit().await
}

async fn click_widget(episode: &Episode<'_>) -> Outcome {
    let wanted = episode.first_quoted()?;
    let role = match wanted.as_str() {
        "text" | "textarea" => "textbox",
        "button" => "button",
        "radio" => "radio",
        _ => "checkbox",
    };
    let elements = episode.elements().await?;
    // A field of several lines is higher.
    let is_area =
        |one: &&Element| role != "textbox" || (one.height > 24.0) == (wanted == "textarea");
    let mut matching = elements.iter().filter(|one| one.kind == role);
    let found = matching.find(is_area);
    let found = found.ok_or_else(|| format!("no {wanted}"))?;
    episode.click_on(found).await
}

async fn find_greatest(episode: &Episode<'_>) -> Outcome {
    let controls = episode.controls().await?;
    let cards = controls.iter().filter(|one| one.kind == "clickable");
    let greatest = cards.max_by_key(|one| one.name.parse::<i64>().unwrap_or(-1));
    episode.click_on(greatest.ok_or("no cards")?).await?;
    episode.submit().await
}

async fn odd_or_even(episode: &Episode<'_>) -> Outcome {
    let outline = episode.outline().await?;
    let mut odd: Option<Element> = None;
    let mut number = None;
    for line in outline.lines() {
        let control = crate::element::parse_elements(line).into_iter().next();
        match control {
            Some(control) if control.name == "Odd" => odd = Some(control),
            Some(control) if control.name == "Even" => {
                let is_odd = number.take().is_some_and(|number: i64| number % 2 != 0);
                let button = if is_odd { odd.take() } else { Some(control) };
                episode.click_on(&button.ok_or("no button")?).await?;
            }
            _ => number = line.trim().parse().ok().or(number),
        }
    }
    episode.submit().await
}

/// The numbers are covered after the first click, so their places are noted before.
async fn ascending_numbers(episode: &Episode<'_>) -> Outcome {
    let (drawing, mut numbers) = episode.drawing().await?;
    numbers.sort_by_key(|one| one.name.parse::<i64>().unwrap_or(i64::MAX));
    for number in &numbers {
        let (x, y) = number.center();
        episode.click_at(&drawing, x, y).await?;
    }
    Ok(())
}
