//! The policies: the steps that solve each task, written for its wording.

use serde_json::json;

use super::{Episode, Outcome};

/// Runs the policy of a task.
#[expect(clippy::too_many_lines, reason = "one arm for each task")]
pub async fn run_policy(task: &str, episode: &Episode<'_>) -> Outcome {
    match task {
        "click-test" => episode.click(&["button"], "Click Me!").await,
        "click-test-2" | "click-test-transfer" => episode.click(&["button"], "ONE").await,
        "click-button" => episode.click(&["button"], &episode.first_quoted()?).await,
        "click-button-sequence" => {
            episode.click(&["button"], "ONE").await?;
            episode.click(&["button"], "TWO").await
        }
        "click-dialog" => episode.click(&["button"], "Close").await,
        "click-dialog-2" => {
            let wanted = episode.first_quoted()?;
            let name = if wanted == "x" {
                "Close".to_owned()
            } else {
                wanted
            };
            episode.click(&["button"], &name).await
        }
        "click-link" => episode.click(&[], &episode.first_quoted()?).await,
        "click-tab" => {
            let wanted = episode.between("Click on ", ".")?;
            episode.click(&["tab", "link"], &wanted).await
        }
        "click-tab-2" | "click-tab-2-easy" | "click-tab-2-medium" | "click-tab-2-hard" => {
            episode.search_tabs(&episode.first_quoted()?).await
        }
        "focus-text" => {
            let id = episode.nth("textbox", 0).await?;
            episode.act(json!({ "action": "click", "ref": id })).await
        }
        "focus-text-2" => {
            let ordinals = ["1st", "2nd", "3rd", "4th", "5th"];
            let at = ordinals.iter().position(|word| episode.task.contains(word));
            let id = episode.nth("textbox", at.unwrap_or_default()).await?;
            episode.act(json!({ "action": "click", "ref": id })).await
        }
        "enter-text" | "enter-text-dynamic" => {
            episode
                .type_into("textbox", 0, &episode.first_quoted()?)
                .await?;
            episode.click(&["button"], "Submit").await
        }
        "enter-text-2" => {
            let text = episode.first_quoted()?;
            let text = match episode.task.contains("upper case") {
                true => text.to_uppercase(),
                false => text.to_lowercase(),
            };
            episode.type_into("textbox", 0, &text).await?;
            episode.click(&["button"], "Submit").await
        }
        "enter-password" => {
            let text = episode.first_quoted()?;
            episode.type_into("textbox", 0, &text).await?;
            episode.type_into("textbox", 1, &text).await?;
            episode.click(&["button"], "Submit").await
        }
        "login-user" => {
            let quoted = episode.quoted();
            let [user, password] = quoted.as_slice() else {
                return Err(format!("unexpected task `{}`", episode.task));
            };
            episode.type_into("textbox", 0, user).await?;
            episode.type_into("textbox", 1, password).await?;
            episode.click(&["button"], "Login").await
        }
        "click-checkboxes" | "click-checkboxes-large" | "click-checkboxes-transfer" => {
            episode.select_boxes("checkbox").await
        }
        "click-option" => episode.select_boxes("radio").await,
        "choose-list" => {
            let wanted = episode.between("Select ", " from the list")?;
            let id = episode.nth("combobox", 0).await?;
            episode
                .act(json!({ "action": "select", "ref": id, "text": wanted }))
                .await?;
            episode.click(&["button"], "Submit").await
        }
        "enter-date" => {
            let wanted = episode.between("Enter ", " as the date")?;
            let parts: Vec<&str> = wanted.split('/').collect();
            let [month, day, year] = parts.as_slice() else {
                return Err(format!("unexpected date {wanted}"));
            };
            episode
                .type_into("textbox", 0, &format!("{year}-{month}-{day}"))
                .await?;
            episode.click(&["button"], "Submit").await
        }
        "enter-time" => {
            let wanted = episode.between("Enter ", " as the time")?;
            episode
                .type_into("textbox", 0, &to_24_hours(&wanted)?)
                .await?;
            episode.click(&["button"], "Submit").await
        }
        "click-widget" => {
            let role = match episode.first_quoted()?.as_str() {
                "text" | "textarea" => "textbox",
                "button" => "button",
                "radio" => "radio",
                _ => "checkbox",
            };
            let controls = episode.controls().await?;
            let is_area = episode.task.contains("textarea");
            let found = controls.iter().find(|one| {
                one.role == role && (role != "textbox" || is_area == one.text.contains("= "))
            });
            let id = match found {
                Some(control) => control.id.clone(),
                None => episode.nth(role, 0).await?,
            };
            episode.act(json!({ "action": "click", "ref": id })).await
        }
        "simple-arithmetic" => {
            let outline = episode.outline().await?;
            let line = outline.lines().find(|line| line.contains('='));
            let answer = line.and_then(arithmetic).ok_or("no sum on the page")?;
            episode.type_into("textbox", 0, &answer.to_string()).await?;
            episode.click(&["button"], "Submit").await
        }
        _ => Err("there is no policy for this task".to_owned()),
    }
}

pub const TASKS: [&str; 28] = [
    "choose-list",
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-checkboxes-large",
    "click-checkboxes-transfer",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-option",
    "click-tab",
    "click-tab-2",
    "click-tab-2-easy",
    "click-tab-2-hard",
    "click-tab-2-medium",
    "click-test",
    "click-test-2",
    "click-test-transfer",
    "enter-date",
    "enter-password",
    "enter-text",
    "enter-text-2",
    "enter-text-dynamic",
    "enter-time",
    "focus-text",
    "focus-text-2",
    "login-user",
    "simple-arithmetic",
];

fn to_24_hours(time: &str) -> Result<String, String> {
    let bad = || format!("unexpected time {time}");
    let (clock, half) = time.split_once(' ').ok_or_else(bad)?;
    let (hour, minute) = clock.split_once(':').ok_or_else(bad)?;
    let hour: u32 = hour.parse().map_err(|_| bad())?;
    let hour = hour % 12 + if half == "PM" { 12 } else { 0 };
    Ok(format!("{hour:02}:{minute}"))
}

/// Computes `3 + 4 =`.
fn arithmetic(line: &str) -> Option<i64> {
    let sum = line.split('=').next()?;
    let words: Vec<&str> = sum.split_whitespace().collect();
    let [left, sign, right] = words.as_slice() else {
        return None;
    };
    let (left, right): (i64, i64) = (left.parse().ok()?, right.parse().ok()?);
    match *sign {
        "+" => Some(left + right),
        "-" => Some(left - right),
        "x" | "*" => Some(left * right),
        _ => None,
    }
}
