//! Summary of the finished and unfinished steps of a turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use lango_domain::event::{Event, EventBody, ToolCode, TransferOutcome, TurnId};
use lango_domain::markers::TRANSFER_TOOL;

/// Returns a summary of what a turn did and did not do, for a turn that ends without an answer.
pub(crate) fn progress_summary(log: &[Arc<Event>], turn: &TurnId) -> String {
    let (mut done, mut unknown, mut not_done) = (
        StepCounts::default(),
        StepCounts::default(),
        StepCounts::default(),
    );
    let mut names = BTreeMap::new();
    for event in log.iter().filter(|event| event.turn == *turn) {
        let author = &event.author;
        match &event.body {
            EventBody::ToolCall { id, tool, .. } if tool != TRANSFER_TOOL => {
                _ = names.insert(id, tool.as_str())
            }
            EventBody::Transfer { id, to, .. } => _ = names.insert(id, to.as_str()),
            EventBody::ToolResult { id, ok, code, .. } => match names.get(id) {
                Some(tool) if *ok => done.count(format!("{author} ran {tool}")),
                // The call had started; its effect is unknown.
                Some(tool) if matches!(code, Some(ToolCode::Interrupted | ToolCode::Timeout)) => {
                    unknown.count(format!("{tool} by {author}"));
                }
                Some(tool) => not_done.count(format!("{tool} by {author}")),
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
    let unknown = unknown
        .into_text()
        .map(|steps| format!("Begun, with an unknown outcome: {steps}."));
    let done = match (done.into_text(), unknown) {
        (Some(done), Some(unknown)) => format!("Done: {done}. {unknown}"),
        (Some(done), None) => format!("Done: {done}."),
        (None, Some(unknown)) => unknown,
        (None, None) => "Nothing was done.".to_owned(),
    };
    let rest = not_done
        .into_text()
        .map_or(String::new(), |rest| format!("{rest}; "));
    format!("{done} Not done: {rest}an answer to the request.")
}

/// Steps with the number of times each occurred.
#[derive(Default)]
struct StepCounts(BTreeMap<String, usize>);

impl StepCounts {
    fn count(&mut self, step: String) {
        *self.0.entry(step).or_default() += 1;
    }

    fn into_text(self) -> Option<String> {
        let describe = |(step, times)| {
            if times == 1 {
                step
            } else {
                format!("{step} {times} times")
            }
        };
        let steps: Vec<String> = self.0.into_iter().map(describe).collect();
        (!steps.is_empty()).then(|| steps.join(", "))
    }
}
