//! Tasks that need several looks: guessing, searching by hand, waiting for a value.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::element::Element;
use crate::episode::{Episode, Outcome};

use super::number_in;

pub const TASKS: &[&str] = &[
    "generate-number",
    "guess-number",
    "hot-cold",
    "stock-market",
    "terminal",
    "visual-addition",
];

pub async fn run(task: &str, episode: &Episode<'_>) -> Outcome {
    match task {
        "generate-number" => generate(episode).await,
        "guess-number" => guess(episode).await,
        "hot-cold" => find_heat(episode).await,
        "stock-market" => buy_stock(episode).await,
        "terminal" => use_terminal(episode).await,
        _ => count_blocks(episode).await,
    }
}

async fn generate(episode: &Episode<'_>) -> Outcome {
    let is_wanted = |number: i64| match () {
        () if episode.task.contains("even") => number % 2 == 0,
        () if episode.task.contains("odd") => number % 2 != 0,
        () => {
            let limit = episode.task.rsplit(' ').find_map(number_in);
            let limit = limit
                .or_else(|| number_in(&episode.task))
                .unwrap_or_default();
            match episode.task.contains("less than") {
                true => number < limit,
                false => number > limit,
            }
        }
    };
    let button = episode.find(&["button"], "Generate").await?;
    for _ in 0..100 {
        episode.click_on(&button).await?;
        let outline = episode.outline().await?;
        let mut lines = outline.lines().skip(2);
        let number = lines.find_map(|line| line.trim().parse::<i64>().ok());
        if number.is_some_and(is_wanted) {
            return episode.submit().await;
        }
    }
    Err("no such number came".to_owned())
}

async fn guess(episode: &Episode<'_>) -> Outcome {
    let (mut low, mut high) = (0, 9);
    while low <= high {
        let middle = (low + high) / 2;
        episode
            .type_into("spinbutton", 0, &middle.to_string())
            .await?;
        episode.submit().await?;
        let outline = episode.outline().await?;
        match () {
            () if outline.contains("is lower than") => high = middle - 1,
            () if outline.contains("is higher than") => low = middle + 1,
            () => return Ok(()),
        }
    }
    Err("the number was not found".to_owned())
}

/// Points at a place and returns how warm it is there, from 0.
async fn heat(episode: &Episode<'_>, area: &Element, x: f64, y: f64) -> Result<u8, String> {
    let args = json!({ "action": "hover", "ref": area.id, "x": x, "y": y });
    let changed = episode.act(args).await?;
    let text = match changed.contains("+ ") {
        true => changed,
        false => episode.outline().await?,
    };
    let has = |word: &str| {
        text.lines()
            .any(|line| line.trim_start_matches("+ ").trim() == word)
    };
    Ok(match () {
        () if has("HOT") => 3,
        () if has("WARM") => 2,
        () if has("ICE COLD") => 0,
        () if has("COLD") => 1,
        () => 0,
    })
}

/// Searches with a wide grid first, then around each place that is warmer.
async fn find_heat(episode: &Episode<'_>) -> Outcome {
    let elements = episode.elements().await?;
    let area = elements
        .iter()
        .find(|one| one.kind == "div" && one.height > 100.0);
    let area = area.ok_or("no area")?;
    let (width, height) = (area.width - 2.0, area.height - 2.0);
    let inside = |x: f64, y: f64| (x.clamp(1.0, width), y.clamp(1.0, height));
    let mut places: Vec<(f64, f64)> = Vec::new();
    for row in 0..3 {
        for column in 0..3 {
            let at = (
                26.0 + 52.0 * f64::from(column),
                21.0 + 42.0 * f64::from(row),
            );
            places.push(at);
        }
    }
    let mut cold = Vec::new();
    for (x, y) in places {
        match heat(episode, area, x, y).await? {
            0 => {}
            1 => cold.push((x, y)),
            _ => return close_in(episode, area, (x, y)).await,
        }
    }
    // The place is less than 40 px from all cold ones.
    let is_near = |x: f64, y: f64| {
        let near = |(cx, cy): &(f64, f64)| (cx - x).hypot(cy - y) < 41.0;
        cold.iter().all(near)
    };
    for row in 0..16 {
        for column in 0..20 {
            let (x, y) = inside(f64::from(column) * 8.0 + 2.0, f64::from(row) * 8.0 + 2.0);
            if is_near(x, y) && heat(episode, area, x, y).await? >= 2 {
                return close_in(episode, area, (x, y)).await;
            }
        }
    }
    Err("no warm place".to_owned())
}

/// Searches around a warm place.
async fn close_in(episode: &Episode<'_>, area: &Element, from: (f64, f64)) -> Outcome {
    let steps = [0.0, 4.0, -4.0, 8.0, -8.0, 11.0, -11.0];
    for dy in steps {
        for dx in steps {
            let x = (from.0 + dx).clamp(0.0, area.width - 1.0);
            let y = (from.1 + dy).clamp(0.0, area.height - 1.0);
            if heat(episode, area, x, y).await? == 3 {
                return episode.click_at(area, x, y).await;
            }
        }
    }
    Err("no hot place".to_owned())
}

/// Looks at the price until it is low enough, and buys at once: it changes ten times a second.
async fn buy_stock(episode: &Episode<'_>) -> Outcome {
    let limit = episode.task.rsplit('$').next().unwrap_or_default();
    let limit: f64 = limit
        .trim_end_matches('.')
        .parse()
        .map_err(|_| episode.unexpected())?;
    let button = episode.find(&["button"], "Buy").await?;
    let (start, mut last) = (Instant::now(), String::new());
    while start.elapsed() < Duration::from_secs(12) {
        let outline = episode.outline().await?;
        let price = outline
            .lines()
            .find_map(|line| line.split_once("Stock price: $"))
            .map(|(_, price)| price.trim().to_owned())
            .unwrap_or_default();
        let is_new = price != last;
        let amount: f64 = price.parse().unwrap_or(f64::MAX);
        last = price;
        // A price that was just set lasts long enough for a click.
        if is_new && amount < limit {
            return episode.click_on(&button).await;
        }
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    Err("the price stayed high".to_owned())
}

/// Returns a text as keys to press.
fn keys(text: &str) -> String {
    let keys = text.chars().map(|c| match c {
        ' ' => "Space".to_owned(),
        c => c.to_string(),
    });
    keys.collect::<Vec<_>>().join(" ") + " Enter"
}

async fn use_terminal(episode: &Episode<'_>) -> Outcome {
    let screen = episode.element("terminal").await?;
    episode.click_on(&screen).await?;
    let listed = episode.press(None, &keys("ls")).await?;
    let mut words = listed.split(|c: char| c.is_whitespace() || c == ',');
    let ending = episode.task.rsplit(' ').next().unwrap_or_default();
    let is_file = |word: &&str| {
        let word = word.trim();
        let is_name = word.len() > 2 && !["user$", "ls", "+", "-"].contains(&word);
        match episode.task.contains("no file extension") {
            true => is_name && !word.contains('.') && word.chars().all(is_name_char),
            false => is_name && word.ends_with(ending.trim()),
        }
    };
    let file = words.find(is_file);
    let file = file.ok_or_else(|| format!("no such file in {listed}"))?;
    episode.press(None, &keys(&format!("rm {file}"))).await?;
    Ok(())
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

async fn count_blocks(episode: &Episode<'_>) -> Outcome {
    let elements = episode.elements().await?;
    let is_block = |one: &&Element| one.kind == "span" && one.name == "addition-block";
    let count = elements.iter().filter(is_block).count();
    episode.type_into("textbox", 0, &count.to_string()).await?;
    episode.submit().await
}
