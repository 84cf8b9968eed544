//! The text of a task as it is sent to a remote agent.

use lango_domain::remote_agent::RemoteTask;

/// Returns the text for the remote agent: its task, followed by the user's request if the task does
/// not contain it.
pub(crate) fn task_text(task: &RemoteTask) -> String {
    let request = task.request.trim();
    let given = task.task.as_deref().map(str::trim);
    match given.filter(|given| !given.is_empty()) {
        Some(given) if given.contains(request) || is_addressed(request, given) => given.to_owned(),
        Some(given) => format!("{given}\n\nThe user's own words: {request}"),
        None => request.to_owned(),
    }
}

/// Returns true if the request is the task after an agent's name: "far: yes", "ask far to sing".
fn is_addressed(request: &str, given: &str) -> bool {
    let Some(before) = request.strip_suffix(given).map(str::trim_end) else {
        return false;
    };
    let has_verb = ["ask ", "tell ", "@"]
        .iter()
        .any(|word| before.to_lowercase().starts_with(word));
    has_verb || before.ends_with([':', ','])
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_domain::event::{Principal, SessionId};

    #[test]
    fn tasks_include_the_users_request() {
        let text = |request: &str, task: Option<&str>| {
            task_text(&RemoteTask {
                session: SessionId::new("s"),
                principal: Principal::local(),
                request: request.to_owned(),
                task: task.map(str::to_owned),
                thread: None,
            })
        };
        assert_eq!(text("오늘 비 와?", None), "오늘 비 와?");
        assert_eq!(text("rain?", Some(" ")), "rain?");
        assert_eq!(
            text("rain?", Some("answer: rain? please")),
            "answer: rain? please"
        );
        assert_eq!(
            text("rain?", Some("find out")),
            "find out\n\nThe user's own words: rain?"
        );
        assert_eq!(text("far: yes", Some("yes")), "yes");
        assert_eq!(text("ask far to sing", Some("sing")), "sing");
        assert!(text("weather in Berlin", Some("Berlin")).contains("weather"));
    }
}
