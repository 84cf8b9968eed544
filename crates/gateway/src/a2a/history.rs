//! What a task remembers of its conversation: bounded, because whoever sends decides how much there is to remember.

use lango_remote::a2a::{Message, Part, PartContent, Task, WireFormat};

/// No task remembers more messages.
const MAX_MESSAGES: usize = 100;
/// Nor more bytes of them, as they are written.
const MAX_BYTES: usize = 256 * 1024;
/// Of a message that alone is longer, so much is remembered: a letter may take six times its place when it is written.
const MAX_OF_ONE: usize = MAX_BYTES / 8;

/// What the task asked is part of the conversation once it is answered.
pub(crate) fn append_question(task: &mut Task) {
    if let (true, Some(question)) = (
        task.status.state.is_interrupted(),
        task.status.message.take(),
    ) {
        append_message(task, question);
    }
}

/// The oldest messages make room; the newest is always there, cut where it has to be.
pub(crate) fn append_message(task: &mut Task, mut message: Message) {
    let mut bytes = size(&message);
    if bytes > MAX_BYTES {
        truncate(&mut message);
        bytes = size(&message);
    }
    let mut first_kept = task.history.len();
    for (place, older) in task.history.iter().enumerate().rev().take(MAX_MESSAGES - 1) {
        bytes += size(older);
        if bytes > MAX_BYTES {
            break;
        }
        first_kept = place;
    }
    task.history.drain(..first_kept);
    task.history.push(message);
}

fn size(message: &Message) -> usize {
    message.to_json(WireFormat::V1).to_string().len()
}

/// Keeps the beginnings of texts; whatever else is there is left out.
fn truncate(message: &mut Message) {
    let mut left = MAX_OF_ONE;
    let beginning = |part: Part| match part.content {
        PartContent::Text(mut text) => {
            text.truncate(text.floor_char_boundary(left));
            left -= text.len();
            (!text.is_empty()).then(|| Part::text(text))
        }
        _ => None,
    };
    message.parts = std::mem::take(&mut message.parts)
        .into_iter()
        .filter_map(beginning)
        .collect();
    message
        .parts
        .push(Part::text("[… the rest was too long to be remembered]"));
    message.metadata.clear();
    message.extensions.clear();
    message.references.clear();
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_remote::a2a::{MessageId, Metadata, Role, TaskId, TaskState, TaskStatus};
    use serde_json::json;

    fn task() -> Task {
        Task {
            id: TaskId::new("t"),
            context: None,
            status: TaskStatus {
                state: TaskState::Working,
                message: None,
                timestamp: None,
            },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: Metadata::new(),
        }
    }

    fn message(number: usize, text: &str) -> Message {
        Message::text(MessageId::new(number.to_string()), Role::User, text)
    }

    fn total(task: &Task) -> usize {
        task.history.iter().map(size).sum()
    }

    #[test]
    fn short_messages_are_bounded_by_number() {
        let mut task = task();
        for number in 0..250 {
            append_message(&mut task, message(number, "hi"));
        }
        assert_eq!(
            (task.history.len(), task.history[0].id.as_str()),
            (MAX_MESSAGES, "150")
        );
    }

    #[test]
    fn long_messages_are_bounded_by_bytes_and_the_newest_stays() {
        let mut task = task();
        for number in 0..60 {
            append_message(&mut task, message(number, &"x".repeat(100_000)));
            assert!(total(&task) <= MAX_BYTES);
        }
        assert_eq!(task.history.len(), 2);
        for text in ["é".repeat(1_000_000), "\u{1}".repeat(1_000_000)] {
            let mut longest = message(99, &text);
            longest
                .metadata
                .insert("more".to_owned(), json!("y".repeat(1_000_000)));
            longest.parts.push(Part::text("at the end"));
            append_message(&mut task, longest);
            assert!(total(&task) <= MAX_BYTES, "{}", total(&task));
            let kept = task.history.last().unwrap();
            assert!(kept.id.as_str() == "99" && kept.texts().next().unwrap().len() == MAX_OF_ONE);
            assert!(kept.texts().last().unwrap().contains("too long"));
        }
    }
}
