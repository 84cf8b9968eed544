//! The policies: the steps that solve each task, written for its wording. They see what the tools return.

mod click;
mod dates;
mod drag;
mod forms;
mod games;
mod lists;
mod menus;
mod shapes;
mod text;

use super::episode::{Episode, Outcome};

/// Returns the names of all tasks with a policy, in the order of the alphabet.
pub fn tasks() -> Vec<&'static str> {
    let groups = [
        click::TASKS,
        dates::TASKS,
        drag::TASKS,
        forms::TASKS,
        games::TASKS,
        lists::TASKS,
        menus::TASKS,
        shapes::TASKS,
        text::TASKS,
    ];
    let mut tasks: Vec<&str> = groups.into_iter().flatten().copied().collect();
    tasks.sort_unstable();
    tasks
}

/// Runs the policy of a task.
pub async fn run_policy(task: &str, episode: &Episode<'_>) -> Outcome {
    let is_in = |tasks: &[&str]| tasks.contains(&task);
    match () {
        () if is_in(click::TASKS) => click::run(task, episode).await,
        () if is_in(dates::TASKS) => dates::run(task, episode).await,
        () if is_in(drag::TASKS) => drag::run(task, episode).await,
        () if is_in(forms::TASKS) => forms::run(task, episode).await,
        () if is_in(games::TASKS) => games::run(task, episode).await,
        () if is_in(lists::TASKS) => lists::run(task, episode).await,
        () if is_in(menus::TASKS) => menus::run(task, episode).await,
        () if is_in(shapes::TASKS) => shapes::run(task, episode).await,
        () if is_in(text::TASKS) => text::run(task, episode).await,
        () => Err(format!("there is no policy for {task}")),
    }
}

/// Returns the first number of a text.
fn number_in(text: &str) -> Option<i64> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let digits: String = text[start..]
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let is_negative = text[..start].ends_with('-');
    let number: i64 = digits.parse().ok()?;
    Some(if is_negative { -number } else { number })
}
