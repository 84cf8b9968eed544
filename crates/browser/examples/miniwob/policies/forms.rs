//! Tasks with forms: fields, lists of options, sliders, spinners.

use serde_json::json;

use crate::element::Element;
use crate::episode::{Episode, Outcome};

use super::click::named_color;
use super::number_in;

pub const TASKS: &[&str] = &[
    "choose-list",
    "click-scroll-list",
    "enter-password",
    "enter-text",
    "enter-text-2",
    "enter-text-dynamic",
    "form-sequence",
    "form-sequence-2",
    "form-sequence-3",
    "login-user",
    "login-user-popup",
    "multi-layouts",
    "multi-orderings",
    "sign-agreement",
    "use-autocomplete",
    "use-autocomplete-nodelay",
    "use-colorwheel",
    "use-colorwheel-2",
    "use-slider",
    "use-slider-2",
    "use-spinner",
];

pub async fn run(task: &str, episode: &Episode<'_>) -> Outcome {
    match task {
        "choose-list" => choose(episode, "combobox", " from the list").await,
        "click-scroll-list" => choose(episode, "listbox", " from the scroll list").await,
        "enter-text" | "enter-text-dynamic" => {
            let text = episode.first_quoted()?;
            episode.type_into("textbox", 0, &text).await?;
            episode.submit().await
        }
        "enter-text-2" => {
            let text = episode.first_quoted()?;
            let text = match episode.task.contains("upper case") {
                true => text.to_uppercase(),
                false => text.to_lowercase(),
            };
            episode.type_into("textbox", 0, &text).await?;
            episode.submit().await
        }
        "enter-password" => {
            let text = episode.first_quoted()?;
            episode.type_into("textbox", 0, &text).await?;
            episode.type_into("textbox", 1, &text).await?;
            episode.submit().await
        }
        "form-sequence" => slider_and_box(episode).await,
        "form-sequence-2" => radio_and_text(episode).await,
        "form-sequence-3" => drop_down_and_button(episode).await,
        "login-user" => log_in(episode, "Login").await,
        "login-user-popup" => log_in(episode, "OK").await,
        "multi-layouts" | "multi-orderings" => search_movie(episode).await,
        "sign-agreement" => sign(episode).await,
        "use-colorwheel" | "use-colorwheel-2" => choose_color(episode).await,
        "use-slider" => {
            let goal = number_after(episode, "Select ")?;
            set_slider(episode, 0, goal).await?;
            episode.submit().await
        }
        "use-slider-2" => set_sliders(episode).await,
        "use-spinner" => spin(episode).await,
        _ => complete(episode).await,
    }
}

fn number_after(episode: &Episode<'_>, before: &str) -> Result<i64, String> {
    let rest = episode.task.split_once(before).map(|(_, rest)| rest);
    rest.and_then(number_in).ok_or_else(|| episode.unexpected())
}

async fn choose(episode: &Episode<'_>, role: &str, after: &str) -> Outcome {
    let wanted = episode.between("Select ", after)?;
    let list = episode.nth(role, 0).await?;
    let text = match role {
        "listbox" => wanted.replace(", ", "\n"),
        _ => wanted,
    };
    // Names may have commas of their own: then the text as a whole is one option.
    let args = json!({ "action": "select", "ref": list.id, "text": text });
    episode.act(args).await?;
    episode.submit().await
}

/// Fills in the name and the password. A dialog may appear in between; it is cancelled.
async fn log_in(episode: &Episode<'_>, button: &str) -> Outcome {
    let quoted = episode.quoted();
    let [user, password] = quoted.as_slice() else {
        return Err(episode.unexpected());
    };
    for (at, text) in [user, password].into_iter().enumerate() {
        let typed = episode.type_into("textbox", at, text).await;
        let dialog = episode.find(&["button"], "Cancel").await;
        if let Ok(cancel) = dialog {
            episode.click_on(&cancel).await?;
            episode.type_into("textbox", at, text).await?;
        } else {
            typed?;
        }
    }
    episode.click(&["button"], button).await
}

async fn slider_and_box(episode: &Episode<'_>) -> Outcome {
    set_slider(episode, 0, number_after(episode, "Select ")?).await?;
    let at = episode.ordinal("click the")?;
    let checkbox = episode.nth("checkbox", at).await?;
    episode.click_on(&checkbox).await?;
    episode.submit().await
}

async fn radio_and_text(episode: &Episode<'_>) -> Outcome {
    let radio = episode.nth("radio", episode.ordinal("Check the")?).await?;
    episode.click_on(&radio).await?;
    let at = episode.ordinal("into the")?;
    episode
        .type_into("textbox", at, &episode.first_quoted()?)
        .await?;
    episode.submit().await
}

async fn drop_down_and_button(episode: &Episode<'_>) -> Outcome {
    let wanted = episode.between("Choose ", " from the dropdown")?;
    let list = episode.nth("clickable", 0).await?;
    episode.click_on(&list).await?;
    let option = episode
        .wait_for("the option", |controls, _| {
            let mut options = controls.iter();
            options.find(|one| one.name == wanted).cloned()
        })
        .await?;
    episode.click_on(&option).await?;
    episode.click(&["button"], &episode.first_quoted()?).await
}

/// Returns the text that belongs to a field: its name, or the line before or after it.
fn label_of(lines: &[&str], at: usize, field: &Element) -> String {
    let words = ["genre", "director", "year", "date"];
    let line = |at: Option<usize>| at.and_then(|at| lines.get(at)).copied();
    let is_label = |line: &&str| {
        let line = line.to_lowercase();
        line.len() < 20 && words.iter().any(|word| line.contains(word))
    };
    // If a label stands before the first field, labels stand before all of them.
    let first = lines.iter().position(|line| line.contains(" textbox"));
    let before = line(first.and_then(|at| at.checked_sub(1))).filter(is_label);
    let label = match before {
        _ if !field.name.is_empty() => Some(field.name.as_str()),
        Some(_) => line(at.checked_sub(1)),
        None => line(Some(at + 1)),
    };
    label.unwrap_or_default().to_lowercase()
}

async fn search_movie(episode: &Episode<'_>) -> Outcome {
    let genre = episode.between("Search for ", " movies")?;
    let director = episode.between("directed by ", " from year")?;
    let year = episode.between("from year ", ".")?;
    let outline = episode.outline().await?;
    let lines: Vec<&str> = outline.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        for field in crate::element::parse_elements(line) {
            if field.kind != "textbox" {
                continue;
            }
            let label = label_of(&lines, at, &field);
            let text = match () {
                () if label.contains("genre") => &genre,
                () if label.contains("director") => &director,
                () => &year,
            };
            episode.type_in(&field, text).await?;
        }
    }
    let controls = episode.controls().await?;
    let is_button = |one: &&Element| ["Submit", "Search", "Go!"].contains(&one.name.as_str());
    let button = controls.iter().find(is_button);
    episode.click_on(button.ok_or("no button")?).await
}

async fn sign(episode: &Episode<'_>) -> Outcome {
    if episode.task.contains("Click the cancel") {
        return episode.click(&["button"], "Cancel").await;
    }
    let area = episode.nth("textbox", 0).await?;
    let args = json!({ "action": "scroll", "ref": area.id, "text": "bottom" });
    episode.act(args).await?;
    let quoted = episode.quoted();
    let [name, button] = quoted.as_slice() else {
        return Err(episode.unexpected());
    };
    let field = episode
        .wait_for("the field", |controls, _| {
            let field = controls.iter().find(|one| one.name == "Name")?;
            (!field.has("disabled")).then(|| field.clone())
        })
        .await?;
    episode.type_in(&field, name).await?;
    episode.click(&["button"], button).await
}

async fn choose_color(episode: &Episode<'_>) -> Outcome {
    let color = match episode.between("Select ", " with the color picker") {
        Ok(name) => named_color(&name),
        Err(_) => None,
    };
    let color = match color {
        Some(color) => Some(color),
        // The color is shown in the task.
        None => {
            let elements = episode.all_elements().await?;
            let mut boxes = elements.iter().filter(|one| one.top < 50.0);
            let shown = boxes.find(|one| one.width < 20.0 && one.color().is_some());
            shown.and_then(Element::color)
        }
    };
    let (red, green, blue) = color.ok_or_else(|| episode.unexpected())?;
    let field = episode.nth("textbox", 0).await?;
    let text = format!("{red:02X}{green:02X}{blue:02X}");
    episode.type_in(&field, &text).await?;
    // A click on something else closes the picker, which covers the button.
    let elements = episode.all_elements().await?;
    let mut elements = elements.iter();
    let task = elements.find(|one| one.name.starts_with("Select "));
    episode.click_on(task.ok_or("no task")?).await?;
    episode.submit().await
}

/// Returns the value that is shown after a slider.
fn slider_value(outline: &str, at: usize) -> Option<(Element, i64)> {
    let mut lines = outline.lines();
    let mut handle = None;
    for _ in 0..=at {
        handle = lines.find_map(|line| {
            let found = crate::element::parse_elements(line).into_iter().next()?;
            found.name.contains("slider-handle").then_some(found)
        });
    }
    let value = lines.find_map(|line| line.trim().parse().ok())?;
    Some((handle?, value))
}

/// Moves a slider with keys: each arrow is one step.
async fn set_slider(episode: &Episode<'_>, at: usize, goal: i64) -> Outcome {
    for _ in 0..4 {
        let outline = episode.outline().await?;
        let (handle, value) = slider_value(&outline, at).ok_or("no slider")?;
        let key = match goal.cmp(&value) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => "ArrowLeft",
            std::cmp::Ordering::Greater => "ArrowRight",
        };
        let count = usize::try_from((goal - value).unsigned_abs()).unwrap_or(0);
        let keys = vec![key; count.min(200)].join(" ");
        episode.press(Some(&handle), &keys).await?;
    }
    Err("the slider does not reach the value".to_owned())
}

async fn set_sliders(episode: &Episode<'_>) -> Outcome {
    let numbers = episode.between("[", "]")?;
    for (at, number) in numbers.split(',').enumerate() {
        let goal = number_in(number).ok_or_else(|| episode.unexpected())?;
        set_slider(episode, at, goal).await?;
    }
    episode.submit().await
}

async fn spin(episode: &Episode<'_>) -> Outcome {
    let goal = number_after(episode, "Select ")?;
    let key = if goal < 0 { "ArrowDown" } else { "ArrowUp" };
    let count = usize::try_from(goal.unsigned_abs()).unwrap_or(0);
    let field = episode.nth("spinbutton", 0).await?;
    if count > 0 {
        let keys = vec![key; count].join(" ");
        episode.press(Some(&field), &keys).await?;
    }
    episode.submit().await
}

/// Types the start of a word and clicks the proposal that has the wanted end.
async fn complete(episode: &Episode<'_>) -> Outcome {
    let quoted = episode.quoted();
    let start = quoted.first().ok_or_else(|| episode.unexpected())?;
    let end = quoted.get(1).map(String::as_str).unwrap_or_default();
    episode.type_into("textbox", 0, start).await?;
    let is_match = |one: &&Element| {
        let name = one.name.to_lowercase();
        ["clickable", "menuitem", "option"].contains(&one.kind.as_str())
            && name.starts_with(&start.to_lowercase())
            && name.ends_with(&end.to_lowercase())
    };
    let proposal = episode
        .wait_for("a proposal", |controls, _| {
            controls.iter().find(is_match).cloned()
        })
        .await?;
    episode.click_on(&proposal).await?;
    episode.submit().await
}
