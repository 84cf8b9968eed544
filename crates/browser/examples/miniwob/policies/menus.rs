//! Tasks with menus and trees.

use crate::element::Element;
use crate::episode::{Episode, Outcome};

pub const TASKS: &[&str] = &["click-menu", "click-menu-2", "navigate-tree"];

pub async fn run(task: &str, episode: &Episode<'_>) -> Outcome {
    match task {
        "click-menu" => {
            let path = episode.task.trim_start_matches("Select ").to_owned();
            let names: Vec<&str> = path.split('>').map(str::trim).collect();
            for (name, next) in names.iter().zip(&names[1..]) {
                open_submenu(episode, name, next).await?;
            }
            let last = names.last().copied().unwrap_or_default();
            episode.click(&["menuitem"], last).await
        }
        "click-menu-2" => click_entry(episode).await,
        _ => navigate_tree(episode).await,
    }
}

/// Points at an entry until the menu below it is open. A click would choose the entry itself.
async fn open_submenu(episode: &Episode<'_>, name: &str, next: &str) -> Outcome {
    let entry = episode.find(&["menuitem"], name).await?;
    let args = serde_json::json!({ "action": "hover", "ref": entry.id });
    episode.act(args).await?;
    episode
        .wait_for("the menu", |controls, _| {
            controls.iter().any(|one| one.name == next).then_some(())
        })
        .await
}

/// Opens a menu and clicks the entry with a label or an icon, which may be in the menu below Playback.
async fn click_entry(episode: &Episode<'_>) -> Outcome {
    let label = episode.quoted().get(1).cloned();
    let icon = match &label {
        Some(_) => None,
        None => {
            let elements = episode.all_elements().await?;
            let mut shown = elements.into_iter().filter(|one| one.top < 50.0);
            shown.find(|one| one.kind == "image").map(|one| one.name)
        }
    };
    let is_wanted = |one: &&Element| match (&label, &icon) {
        (Some(label), _) => one.kind == "menuitem" && one.name == *label,
        (None, icon) => one.kind == "image" && Some(&one.name) == icon.as_ref(),
    };
    episode.click(&["button"], "Menu").await?;
    for name in ["", "Playback"] {
        if !name.is_empty() {
            open_submenu(episode, name, "Stop").await?;
        }
        let elements = match label {
            Some(_) => episode.controls().await?,
            None => episode.elements().await?,
        };
        if let Some(entry) = elements.iter().find(is_wanted) {
            return episode.click_on(entry).await;
        }
    }
    Err("no such entry".to_owned())
}

/// Opens folders until the name is there.
async fn navigate_tree(episode: &Episode<'_>) -> Outcome {
    let wanted = episode.first_quoted()?;
    for _ in 0..12 {
        let elements = episode.elements().await?;
        if let Some(found) = elements.iter().find(|one| one.name == wanted) {
            return episode.click_on(found).await;
        }
        let is_closed = |one: &&Element| one.name.starts_with("hitarea expandable");
        let folder = elements.iter().find(is_closed);
        episode
            .click_on(folder.ok_or("no folder is closed")?)
            .await?;
    }
    Err(format!("{wanted} was not found"))
}
