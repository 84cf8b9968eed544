//! Tasks about text: reading, copying, selecting, styling.

use serde_json::json;

use crate::element::Element;
use crate::episode::{Episode, Outcome};

pub const TASKS: &[&str] = &[
    "copy-paste",
    "copy-paste-2",
    "find-word",
    "highlight-text",
    "highlight-text-2",
    "read-table",
    "read-table-2",
    "scroll-text",
    "scroll-text-2",
    "simple-algebra",
    "simple-arithmetic",
    "text-editor",
    "text-transform",
];

pub async fn run(task: &str, episode: &Episode<'_>) -> Outcome {
    match task {
        "copy-paste" => copy(episode, None).await,
        "copy-paste-2" => copy(episode, Some(episode.ordinal("from the")?)).await,
        "find-word" => find_word(episode).await,
        "highlight-text" => highlight(episode, 0).await,
        "highlight-text-2" => highlight(episode, episode.ordinal("in the")?).await,
        "read-table" => read_table(episode).await,
        "read-table-2" => fill_from_table(episode).await,
        "scroll-text" => last_word(episode).await,
        "scroll-text-2" => {
            let end = if episode.task.contains("bottom") {
                "bottom"
            } else {
                "top"
            };
            let area = episode.nth("textbox", 0).await?;
            let args = json!({ "action": "scroll", "ref": area.id, "text": end });
            episode.act(args).await?;
            episode.submit().await
        }
        "simple-algebra" => answer(episode, algebra).await,
        "simple-arithmetic" => answer(episode, arithmetic).await,
        "text-editor" => style_text(episode).await,
        _ => {
            let outline = episode.outline().await?;
            let mut lines = outline.lines();
            lines.find(|line| *line == episode.task);
            let text = lines.next().ok_or("no text")?.trim().to_owned();
            episode.type_into("textbox", 0, &text).await?;
            episode.submit().await
        }
    }
}

/// Returns the whole text of a field: outlines show its start.
async fn whole_text(episode: &Episode<'_>, field: &Element) -> Result<String, String> {
    let args = json!({ "region": field.id });
    let text = episode.call("browser_observe", args).await?;
    let elements = crate::element::parse_elements(&text);
    let found = elements.into_iter().find(|one| one.id == field.id);
    found
        .map(|one| one.value)
        .ok_or_else(|| "the field is gone".to_owned())
}

/// Copies with the keyboard, as a person would: the clipboard keeps spaces and line breaks.
async fn copy(episode: &Episode<'_>, at: Option<usize>) -> Outcome {
    let controls = episode.controls().await?;
    let fields: Vec<&Element> = controls
        .iter()
        .filter(|one| one.kind == "textbox")
        .collect();
    let full = |one: &&&Element| !one.value.is_empty();
    let from = fields.iter().filter(full).nth(at.unwrap_or_default());
    let to = fields.iter().find(|one| one.value.is_empty());
    let (from, to) = from.zip(to).ok_or("no fields")?;
    episode.press(Some(from), "Control+A Control+C").await?;
    episode.press(Some(to), "Control+V").await?;
    episode.submit().await
}

async fn find_word(episode: &Episode<'_>) -> Outcome {
    let at = episode.ordinal("Find the")?;
    let outline = episode.outline().await?;
    let mut lines = outline.lines();
    lines.find(|line| *line == episode.task);
    let text = lines.next().ok_or("no text")?;
    let word = text.split_whitespace().nth(at).ok_or("no such word")?;
    let word: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
    episode.type_into("textbox", 0, &word).await?;
    episode.submit().await
}

async fn highlight(episode: &Episode<'_>, at: usize) -> Outcome {
    let elements = episode.elements().await?;
    let paragraphs = elements
        .iter()
        .filter(|one| matches!(one.kind.as_str(), "p" | "div") && one.name.contains(' '));
    let mut paragraphs: Vec<&Element> = paragraphs.collect();
    paragraphs.sort_by(|one, other| one.top.total_cmp(&other.top));
    let paragraph = paragraphs.get(at).ok_or("no such paragraph")?;
    let args = json!({ "action": "select_text", "ref": paragraph.id });
    episode.act(args).await?;
    episode.submit().await
}

async fn table_value(episode: &Episode<'_>, label: &str) -> Result<String, String> {
    let outline = episode.outline().await?;
    let rows = outline.lines().filter_map(|line| line.split_once(" | "));
    let mut rows = rows.map(|(key, value)| (key.trim(), value.trim().to_owned()));
    let found = rows.find(|(key, _)| *key == label);
    found
        .map(|(_, value)| value)
        .ok_or_else(|| format!("no row {label}"))
}

async fn read_table(episode: &Episode<'_>) -> Outcome {
    let label = episode.between("value of ", " into the")?;
    let value = table_value(episode, &label).await?;
    episode.type_into("textbox", 0, &value).await?;
    episode.submit().await
}

async fn fill_from_table(episode: &Episode<'_>) -> Outcome {
    for field in episode.controls().await? {
        if field.kind == "textbox" {
            let value = table_value(episode, field.name.trim_end_matches(':')).await?;
            episode.type_in(&field, &value).await?;
        }
    }
    episode.submit().await
}

async fn last_word(episode: &Episode<'_>) -> Outcome {
    let area = episode.nth("textbox", 0).await?;
    let text = whole_text(episode, &area).await?;
    let word = text.split_whitespace().last().ok_or("no text")?;
    let word = word.trim_end_matches('.').to_owned();
    episode.type_into("textbox", 1, &word).await?;
    episode.submit().await
}

async fn answer(episode: &Episode<'_>, solve: fn(&str) -> Option<i64>) -> Outcome {
    let outline = episode.outline().await?;
    let result = outline
        .lines()
        .find_map(solve)
        .ok_or("no problem on the page")?;
    episode.type_into("textbox", 0, &result.to_string()).await?;
    episode.submit().await
}

/// Splits `3 + 4 = …` into its parts.
fn equation(line: &str) -> Option<(&str, &str, &str, &str)> {
    let (left, right) = line.split_once('=')?;
    let words: Vec<&str> = left.split_whitespace().collect();
    let [first, sign, second] = words.as_slice() else {
        return None;
    };
    Some((first, sign, second, right.split_whitespace().next()?))
}

fn arithmetic(line: &str) -> Option<i64> {
    let (first, sign, second, _) = equation(line)?;
    let (first, second): (i64, i64) = (first.parse().ok()?, second.parse().ok()?);
    match sign {
        "+" => Some(first + second),
        "-" => Some(first - second),
        "x" | "*" => Some(first * second),
        _ => None,
    }
}

fn algebra(line: &str) -> Option<i64> {
    let (first, sign, second, result) = equation(line)?;
    let result: i64 = result.parse().ok()?;
    match (first.parse::<i64>(), second.parse::<i64>(), sign) {
        (Ok(known), Err(_), "+") | (Err(_), Ok(known), "+") => Some(result - known),
        (Ok(known), Err(_), "-") => Some(known - result),
        (Err(_), Ok(known), "-") => Some(result + known),
        _ => None,
    }
}

async fn style_text(episode: &Episode<'_>) -> Outcome {
    let task = &episode.task;
    let editor = episode.nth("textbox", 0).await?;
    let word = episode.between("give the text ", " the ").ok();
    let text = word.as_ref().unwrap_or(&editor.value);
    let select = json!({ "action": "select_text", "ref": editor.id, "text": text });
    episode.act(select).await?;
    let buttons = [
        ("bold", "ql-bold"),
        ("italics", "ql-italic"),
        ("underlined", "ql-underline"),
    ];
    let style = task.split_once("the style ").map(|(_, rest)| rest);
    let button = style.and_then(|style| {
        let found = buttons.iter().find(|(name, _)| style.starts_with(name));
        found.map(|(_, button)| *button)
    });
    match button {
        Some(button) => episode.click(&["button"], button).await?,
        None => {
            let color = task.split_once("the color ").map(|(_, rest)| rest);
            let color = color.ok_or_else(|| episode.unexpected())?;
            episode
                .click(&["clickable", "button"], "ql-picker-label")
                .await?;
            choose_color(episode, color).await?;
        }
    }
    episode.submit().await
}

async fn choose_color(episode: &Episode<'_>, name: &str) -> Outcome {
    let elements = episode.elements().await?;
    let is_color = |(red, green, blue): (i32, i32, i32)| match () {
        () if name.starts_with("red") => red > 200 && green < 50 && blue < 50,
        () if name.starts_with("orange") => red > 200 && (100..200).contains(&green) && blue < 50,
        () if name.starts_with("yellow") => red > 200 && green > 200 && blue < 50,
        () if name.starts_with("green") => red < 50 && green > 100 && blue < 50,
        () if name.starts_with("blue") => red < 50 && blue > 180,
        () => (120..200).contains(&red) && blue > 200 && green < 100,
    };
    let is_item = |one: &&Element| one.name.starts_with("ql-picker-item");
    let item = elements
        .iter()
        .filter(is_item)
        .find(|one| one.color().is_some_and(is_color));
    episode.click_on(item.ok_or("no such color")?).await
}
