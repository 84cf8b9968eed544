//! Tasks with lists: inboxes, posts, contacts, results, food.

use serde_json::json;

use crate::element::Element;
use crate::episode::{Episode, Outcome};

use super::number_in;

pub const TASKS: &[&str] = &[
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-forward",
    "email-inbox-forward-nl",
    "email-inbox-forward-nl-turk",
    "email-inbox-important",
    "email-inbox-nl-turk",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
    "order-food",
    "phone-book",
    "search-engine",
    "social-media",
    "social-media-all",
    "social-media-some",
];

pub async fn run(task: &str, episode: &Episode<'_>) -> Outcome {
    match task {
        "order-food" => order_food(episode).await,
        "phone-book" => phone_book(episode).await,
        "search-engine" => search(episode).await,
        "social-media" => one_post(episode).await,
        "social-media-all" | "social-media-some" => several_posts(episode).await,
        _ => inbox(episode).await,
    }
}

/// The action to take on a message.
enum MessageAction {
    Delete,
    Star,
    Reply(String),
    Forward(String),
}

async fn inbox(episode: &Episode<'_>) -> Outcome {
    let outline = episode.outline().await?;
    let threads = threads(&outline);
    let (sender, action) = read_order(episode, &threads)?;
    let thread = threads.iter().find(|(name, _)| *name == sender);
    let (_, parts) = thread.ok_or_else(|| format!("no message by {sender}"))?;
    let icon = |name: &str| {
        let found = parts.iter().find(|one| one.name.contains(name));
        found.ok_or_else(|| format!("no icon {name}"))
    };
    let (button, text) = match action {
        MessageAction::Delete => return episode.click_on(icon("trash")?).await,
        MessageAction::Star => return episode.click_on(icon("star")?).await,
        MessageAction::Reply(text) => ("reply", text),
        MessageAction::Forward(text) => ("forward", text),
    };
    episode.click_on(&parts[0]).await?;
    click_icon(episode, button).await?;
    episode.type_into("textbox", 0, &text).await?;
    click_icon(episode, "send").await
}

async fn click_icon(episode: &Episode<'_>, name: &str) -> Outcome {
    let controls = episode.controls().await?;
    let is_icon = |one: &&Element| one.kind == "image" && one.name.contains(name);
    let icon = controls.iter().find(is_icon);
    episode
        .click_on(icon.ok_or_else(|| format!("no icon {name}"))?)
        .await
}

/// Returns the senders, each with the controls of its line.
fn threads(outline: &str) -> Vec<(String, Vec<Element>)> {
    let lines = outline.lines().map(crate::element::parse_elements);
    let threads = lines.filter(|parts| parts.iter().any(|one| one.name.contains("trash")));
    threads
        .filter_map(|parts| {
            let sender = parts.first()?.name.split(' ').next()?.to_owned();
            Some((sender, parts))
        })
        .collect()
}

/// Reads who sent the message and what to do with it. Orders are worded in many ways.
fn read_order(
    episode: &Episode<'_>,
    threads: &[(String, Vec<Element>)],
) -> Result<(String, MessageAction), String> {
    let task = &episode.task;
    let lower = task.to_lowercase();
    let names = names_in(task, threads);
    if let Some(text) = episode.quoted().into_iter().next() {
        let sender = names.first().ok_or_else(|| episode.unexpected())?;
        return Ok((sender.clone(), MessageAction::Reply(text)));
    }
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let first = names.first().cloned().ok_or_else(|| episode.unexpected())?;
    if says(&["trash", "delete", "remove", "erase", "get rid"]) {
        return Ok((first, MessageAction::Delete));
    }
    if says(&["star", "important", "favorite"]) {
        return Ok((first, MessageAction::Star));
    }
    let (from, to) = sender_and_receiver(task, &names).ok_or_else(|| episode.unexpected())?;
    Ok((from, MessageAction::Forward(to)))
}

/// Returns the names of people in the order of the task: words that begin with a capital and are not the
/// first one, or that are names in the inbox.
fn names_in(task: &str, threads: &[(String, Vec<Element>)]) -> Vec<String> {
    let outside = task.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words = outside.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    let words: Vec<&str> = words.filter(|word| word.len() > 1).collect();
    let is_sender = |word: &str| threads.iter().any(|(sender, _)| sender == word);
    let is_name = |at: usize, word: &str| {
        is_sender(word)
            || (at > 0 && word.starts_with(char::is_uppercase) && !NO_NAMES.contains(&word))
    };
    let names = words.iter().enumerate();
    names
        .filter(|(at, word)| is_name(*at, word))
        .map(|(_, word)| (*word).to_owned())
        .collect()
}

const NO_NAMES: [&str; 4] = ["Email", "Please", "Forward", "Inbox"];

/// Tells the sender from the receiver by the words around their names.
fn sender_and_receiver(task: &str, names: &[String]) -> Option<(String, String)> {
    let [first, .., second] = names else {
        return None;
    };
    let lower = task.to_lowercase();
    let is_sender = |name: &str| {
        let name = name.to_lowercase();
        let marks = ["from ", "by ", "that ", "which "].map(|mark| format!("{mark}{name}"));
        lower.contains(&format!("{name}'s"))
            || lower.contains(&format!("{name} sent"))
            || marks.iter().any(|mark| lower.contains(mark))
    };
    let is_receiver = |name: &str| {
        let name = name.to_lowercase();
        let marks = ["to ", "for ", "give ", "with ", "send ", "forward "];
        let marks = marks.map(|mark| format!("{mark}{name}"));
        marks.iter().any(|mark| lower.contains(mark)) && !lower.contains(&format!("{name}'s"))
    };
    let swapped =
        is_receiver(first) && !is_receiver(second) || is_sender(second) && !is_sender(first);
    Some(match swapped {
        true => (second.clone(), first.clone()),
        false => (first.clone(), second.clone()),
    })
}

async fn phone_book(episode: &Episode<'_>) -> Outcome {
    let name = episode.between("Find ", " in the contact book")?;
    let label = match () {
        () if episode.task.contains("phone") => "Phone:",
        () if episode.task.contains("email") => "Email:",
        () => "Address:",
    };
    for _ in 0..6 {
        let outline = episode.outline().await?;
        let is_here = outline
            .lines()
            .any(|line| line.trim_start_matches(['#', ' ']) == name);
        let mut lines = outline.lines();
        let line = match is_here {
            true => lines.find(|line| line.starts_with(label)),
            false => lines.find(|line| line.contains("\">\"")),
        };
        let parts = crate::element::parse_elements(line.ok_or("no such line")?);
        let control = match is_here {
            true => parts.first(),
            false => parts.iter().find(|one| one.name == ">"),
        };
        episode.click_on(control.ok_or("no link")?).await?;
        if is_here {
            return Ok(());
        }
    }
    Err(format!("{name} is not in the book"))
}

async fn search(episode: &Episode<'_>) -> Outcome {
    episode
        .type_into("textbox", 0, &episode.first_quoted()?)
        .await?;
    episode.click(&["button"], "Search").await?;
    let at = episode.ordinal("click the")?;
    if at >= 3 {
        let page = (at / 3 + 1).to_string();
        episode.click(&["link"], &page).await?;
    }
    let controls = episode.controls().await?;
    let is_result = |one: &&Element| one.kind == "link" && one.name.len() > 1;
    let result = controls.iter().filter(is_result).nth(at % 3);
    episode.click_on(result.ok_or("no result")?).await
}

/// Returns the posts: the name of the writer, and the elements.
async fn posts(episode: &Episode<'_>) -> Result<Vec<(String, Vec<Element>)>, String> {
    let mut posts: Vec<(String, Vec<Element>)> = Vec::new();
    for element in episode.elements().await? {
        if element.name == "media" {
            posts.push((String::new(), Vec::new()));
        }
        let Some((writer, parts)) = posts.last_mut() else {
            continue;
        };
        if element.name.starts_with('@') && writer.is_empty() {
            *writer = element.name.clone();
        }
        parts.push(element);
    }
    Ok(posts)
}

fn icon_of<'a>(parts: &'a [Element], name: &str) -> Result<&'a Element, String> {
    let is_icon = |one: &&Element| one.kind == "image" && one.name.starts_with(name);
    let icon = parts.iter().find(is_icon);
    icon.ok_or_else(|| format!("no icon {name}"))
}

async fn one_post(episode: &Episode<'_>) -> Outcome {
    let user = episode.between("For the user ", ",")?;
    let button = episode.first_quoted()?;
    let posts = posts(episode).await?;
    let post = posts.iter().find(|(writer, _)| *writer == user);
    let (_, parts) = post.ok_or("no such post")?;
    if ["Reply", "Retweet", "Like"].contains(&button.as_str()) {
        return episode
            .click_on(icon_of(parts, &button.to_lowercase())?)
            .await;
    }
    episode.click_on(icon_of(parts, "more")?).await?;
    let elements = episode.elements().await?;
    let is_item = |one: &&Element| one.kind == "li" && one.name.starts_with(&button);
    let item = elements.iter().find(is_item);
    episode.click_on(item.ok_or("no such entry")?).await
}

async fn several_posts(episode: &Episode<'_>) -> Outcome {
    let button = episode.first_quoted()?.to_lowercase();
    let user = episode.between(" by ", " and then")?;
    let count = number_in(episode.task.split(" on ").nth(1).unwrap_or_default());
    let count = match episode.task.contains("on all posts") {
        true => usize::MAX,
        false => count
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(1),
    };
    let posts = posts(episode).await?;
    let wanted = posts.iter().filter(|(writer, _)| *writer == user);
    for (_, parts) in wanted.take(count) {
        episode.click_on(icon_of(parts, &button)?).await?;
    }
    episode.submit().await
}

async fn order_food(episode: &Episode<'_>) -> Outcome {
    let elements = episode.elements().await?;
    let is_name =
        |one: &Element| one.kind == "div" && !one.name.is_empty() && one.name != "food-item";
    let add_after = |at: usize| {
        let rest = &elements[at..];
        rest.iter().find(|one| one.name == "+")
    };
    let mut orders: Vec<(&Element, usize)> = Vec::new();
    match episode.task.split_once("one of each item: ") {
        Some((_, items)) => {
            for item in items.split(", ") {
                let found = elements
                    .iter()
                    .position(|one| is_name(one) && one.name == item.trim());
                let at = found.ok_or_else(|| format!("no {item}"))?;
                orders.push((add_after(at).ok_or("no button")?, 1));
            }
        }
        None => {
            let kind = episode.task.rsplit(' ').next().unwrap_or_default();
            let count = number_in(&episode.task).unwrap_or(1);
            let at = elements.iter().position(|one| one.name == kind);
            let at = at.ok_or_else(|| format!("nothing is {kind}"))?;
            orders.push((
                add_after(at).ok_or("no button")?,
                usize::try_from(count).unwrap_or(1),
            ));
        }
    }
    for (button, count) in orders {
        for _ in 0..count {
            episode.click_on(button).await?;
        }
    }
    let mut boxes = elements.iter();
    let list = boxes.find(|one| one.has("scrolls")).ok_or("no list")?;
    let to_end = json!({ "action": "scroll", "ref": list.id, "text": "bottom" });
    // It may be at its end already.
    let _ = episode.act(to_end).await;
    episode.click(&["button"], "Order!").await
}
