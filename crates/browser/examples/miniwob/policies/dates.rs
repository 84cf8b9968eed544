//! Tasks with date pickers, and flights.

use crate::element::Element;
use crate::episode::{Episode, Outcome};

use super::number_in;

pub const TASKS: &[&str] = &[
    "book-flight",
    "book-flight-nodelay",
    "buy-ticket",
    "choose-date",
    "choose-date-easy",
    "choose-date-medium",
    "choose-date-nodelay",
    "enter-date",
    "enter-time",
];

pub async fn run(task: &str, episode: &Episode<'_>) -> Outcome {
    match task {
        "buy-ticket" => buy_ticket(episode).await,
        "enter-date" => {
            let wanted = episode.between("Enter ", " as the date")?;
            let [month, day, year] = date_parts(&wanted)?;
            let text = format!("{year}-{month:02}-{day:02}");
            episode.type_into("textbox", 0, &text).await?;
            episode.submit().await
        }
        "enter-time" => {
            let wanted = episode.between("Enter ", " as the time")?;
            episode
                .type_into("textbox", 0, &to_24_hours(&wanted)?)
                .await?;
            episode.submit().await
        }
        "book-flight" | "book-flight-nodelay" => book_flight(episode).await,
        _ => {
            let wanted = episode.between("Select ", " as the date")?;
            let field = episode.nth("textbox", 0).await?;
            episode.click_on(&field).await?;
            pick_date(episode, &wanted).await?;
            episode.submit().await
        }
    }
}

fn to_24_hours(time: &str) -> Result<String, String> {
    let bad = || format!("unexpected time {time}");
    let (clock, half) = time.split_once(' ').ok_or_else(bad)?;
    let (hour, minute) = clock.split_once(':').ok_or_else(bad)?;
    let hour: u32 = hour.parse().map_err(|_| bad())?;
    let hour = hour % 12 + if half == "PM" { 12 } else { 0 };
    Ok(format!("{hour:02}:{minute}"))
}

fn date_parts(text: &str) -> Result<[i64; 3], String> {
    let parts: Option<Vec<i64>> = text.split('/').map(|part| part.parse().ok()).collect();
    parts
        .and_then(|parts| parts.try_into().ok())
        .ok_or_else(|| format!("unexpected date {text}"))
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Turns the pages of an open calendar to a month and clicks the day.
async fn pick_date(episode: &Episode<'_>, date: &str) -> Outcome {
    let [month, day, year] = date_parts(date)?;
    for _ in 0..40 {
        let (shown, controls) = episode
            .wait_for("the calendar", |controls, outline| {
                let shown = outline.lines().find_map(shown_month)?;
                Some((shown, controls.to_vec()))
            })
            .await?;
        let distance = (year * 12 + month) - shown;
        let name = match distance {
            0 => day.to_string(),
            1.. => "Next".to_owned(),
            _ => "Prev".to_owned(),
        };
        let found = controls.iter().find(|one| one.name == name);
        episode
            .click_on(found.ok_or_else(|| format!("no {name} in the calendar"))?)
            .await?;
        if distance == 0 {
            return Ok(());
        }
    }
    Err("the month was not found".to_owned())
}

/// Returns the months since year 0 for a line with `December 2016`.
fn shown_month(line: &str) -> Option<i64> {
    let at = MONTHS.iter().position(|month| line.contains(month))?;
    let rest = line.split_once(MONTHS[at])?.1;
    let year = number_in(rest.trim_start())?;
    (year > 1900).then_some(year * 12 + i64::try_from(at).ok()? + 1)
}

/// Returns the minutes of `10h 30m`.
fn minutes(text: &str) -> Option<i64> {
    let (hours, rest) = text.trim().split_once("h ")?;
    Some(hours.parse::<i64>().ok()? * 60 + rest.trim().trim_end_matches('m').parse::<i64>().ok()?)
}

/// Returns the buttons with a price, each with its minutes and its price.
fn offers(outline: &str) -> Vec<(i64, i64, Element)> {
    let (mut offers, mut duration) = (Vec::new(), 0);
    for line in outline.lines() {
        duration = minutes(line).unwrap_or(duration);
        for button in crate::element::parse_elements(line) {
            let price = button.name.split_once('$');
            if let Some(price) = price.and_then(|(_, price)| number_in(price)) {
                offers.push((duration, price, button));
            }
        }
    }
    offers
}

async fn take_offer(episode: &Episode<'_>, wanted: &str, outline: &str) -> Outcome {
    let offers = offers(outline);
    let best = offers
        .iter()
        .min_by_key(|(duration, price, _)| match wanted {
            "cheapest" => *price,
            "shortest" => *duration,
            "longest" => -duration,
            _ => -price,
        });
    episode.click_on(&best.ok_or("no offers")?.2).await
}

async fn buy_ticket(episode: &Episode<'_>) -> Outcome {
    let words = ["cheapest", "shortest", "longest", "most expensive"];
    let wanted = words.iter().find(|word| episode.task.contains(**word));
    let wanted = wanted.ok_or_else(|| episode.unexpected())?;
    take_offer(episode, wanted, &episode.outline().await?).await
}

async fn book_flight(episode: &Episode<'_>) -> Outcome {
    let wanted = episode.between("Book the ", " one-way")?;
    let places = [
        episode.between("from: ", " to: ")?,
        episode.between(" to: ", " on ")?,
    ];
    for (at, place) in places.iter().enumerate() {
        episode.type_into("textbox", at, place).await?;
        let code = format!("({place})");
        let is_match = |one: &&Element| {
            one.kind != "textbox"
                && (one.name.contains(&code) || one.name.starts_with(&format!("{place} (")))
        };
        let option = episode
            .wait_for("the airport", |controls, _| {
                controls.iter().find(is_match).cloned()
            })
            .await?;
        episode.click_on(&option).await?;
    }
    let date = episode.task.rsplit(' ').next().unwrap_or_default();
    let field = episode.nth("textbox", 2).await?;
    episode.click_on(&field).await?;
    pick_date(episode, date.trim_end_matches('.')).await?;
    episode.click(&["button"], "Search").await?;
    take_offer(episode, &wanted, &episode.outline().await?).await
}
