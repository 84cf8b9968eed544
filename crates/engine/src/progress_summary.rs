//! What a turn got done and what not, in words.

use std::collections::BTreeMap;
use std::sync::Arc;

use lango_domain::event::{Event, EventBody, ToolCode, TransferOutcome, TurnId};
use lango_domain::markers::TRANSFER_TOOL;

/// What a turn got done and what not, for whoever finds it unfinished.
pub(crate) fn progress_summary(log: &[Arc<Event>], turn: &TurnId) -> String {
    let (mut done, mut unknown, mut not_done) = (
        StepCounts::default(),
        StepCounts::default(),
        StepCounts::default(),
    );
    let mut names = BTreeMap::new();
    for event in log.iter().filter(|event| event.turn == *turn) {
        let who = &event.author;
        match &event.body {
            EventBody::ToolCall { id, tool, .. } if tool != TRANSFER_TOOL => {
                _ = names.insert(id, tool.as_str())
            }
            EventBody::Transfer { id, to, .. } => _ = names.insert(id, to.as_str()),
            EventBody::ToolResult { id, ok, code, .. } => match names.get(id) {
                Some(tool) if *ok => done.count(format!("{who} ran {tool}")),
                // It had begun, and nobody saw how far it came.
                Some(tool) if matches!(code, Some(ToolCode::Interrupted | ToolCode::Timeout)) => {
                    unknown.count(format!("{tool} by {who}"));
                }
                Some(tool) => not_done.count(format!("{tool} by {who}")),
                None => {}
            },
            EventBody::TransferResult { id, outcome, .. } => match (names.get(id), outcome) {
                (Some(to), TransferOutcome::Answered) => done.count(format!("{to} reported")),
                (Some(to), _) => not_done.count(format!("the task of {to}")),
                (None, _) => {}
            },
            _ => {}
        }
    }
    let begun = unknown
        .into_text()
        .map(|begun| format!("Begun, with an unknown outcome: {begun}."));
    let done = match (done.into_text(), begun) {
        (Some(done), Some(begun)) => format!("Done: {done}. {begun}"),
        (Some(done), None) => format!("Done: {done}."),
        (None, Some(begun)) => begun,
        (None, None) => "Nothing was done.".to_owned(),
    };
    let rest = not_done
        .into_text()
        .map_or(String::new(), |rest| format!("{rest}; "));
    format!("{done} Not done: {rest}an answer to the request.")
}

/// Things, each told once with how often it happened.
#[derive(Default)]
struct StepCounts(BTreeMap<String, usize>);

impl StepCounts {
    fn count(&mut self, what: String) {
        *self.0.entry(what).or_default() += 1;
    }

    fn into_text(self) -> Option<String> {
        let times = |(what, times)| {
            if times == 1 {
                what
            } else {
                format!("{what} {times} times")
            }
        };
        let told: Vec<String> = self.0.into_iter().map(times).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}
