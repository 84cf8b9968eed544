//! The message history of a task. Its size is limited, because clients control the messages.

use lango_remote::a2a::{Message, Part, PartContent, Task, WireFormat};

/// Maximum number of messages.
const MAX_MESSAGES: usize = 100;
/// Maximum size of all messages as JSON.
const MAX_BYTES: usize = 256 * 1024;
/// Maximum text size of a message that alone exceeds [`MAX_BYTES`]. A character may take six times its
/// size when it is escaped in JSON.
const MAX_MESSAGE_BYTES: usize = MAX_BYTES / 8;

/// Moves the question in the task's status to the history, once it is answered.
pub(crate) fn append_question(task: &mut Task) {
    if let (true, Some(question)) = (
        task.status.state.is_interrupted(),
        task.status.message.take(),
    ) {
        append_message(task, question);
    }
}

/// Appends a message. Drops the oldest messages if necessary and truncates a message that is too
/// long.
pub(crate) fn append_message(task: &mut Task, mut message: Message) {
    let mut bytes = size(&message);
    if bytes > MAX_BYTES {
        truncate(&mut message);
        bytes = size(&message);
    }
    let mut first_kept = task.history.len();
    for (index, older) in task.history.iter().enumerate().rev().take(MAX_MESSAGES - 1) {
        bytes += size(older);
        if bytes > MAX_BYTES {
            break;
        }
        first_kept = index;
    }
    task.history.drain(..first_kept);
    task.history.push(message);
}

fn size(message: &Message) -> usize {
    message.to_json(WireFormat::V1).to_string().len()
}

/// Keeps the beginning of the texts and drops all other parts.
fn truncate(message: &mut Message) {
    let mut remaining = MAX_MESSAGE_BYTES;
    let truncated = |part: Part| match part.content {
        PartContent::Text(mut text) => {
            text.truncate(text.floor_char_boundary(remaining));
            remaining -= text.len();
            (!text.is_empty()).then(|| Part::text(text))
        }
        _ => None,
    };
    message.parts = std::mem::take(&mut message.parts)
        .into_iter()
        .filter_map(truncated)
        .collect();
    message
        .parts
        .push(Part::text("[… truncated: the message was too long]"));
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
    fn limits_the_number_of_messages() {
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
    fn limits_the_size_and_keeps_the_newest_message() {
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
            let newest = task.history.last().unwrap();
            assert!(
                newest.id.as_str() == "99"
                    && newest.texts().next().unwrap().len() == MAX_MESSAGE_BYTES
            );
            assert!(newest.texts().last().unwrap().contains("too long"));
        }
    }
}
