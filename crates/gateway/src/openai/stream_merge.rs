//! Merges the answers of agents that run in parallel into one stream, one answer after the other.

use lango_domain::event::{Author, Event, EventBody, Update};

/// Merges the text of a turn into a readable order.
#[derive(Default)]
pub(super) struct StreamMerger {
    /// The agent whose text is streamed, and its text so far.
    active: Option<(String, String)>,
    /// Answers that arrived while another agent was streaming.
    queued: Vec<String>,
    has_output: bool,
}

impl StreamMerger {
    /// Adds an update and returns the text to send now.
    pub fn push(&mut self, update: &Update) -> Vec<String> {
        match update {
            Update::Delta { author, text } => self.on_delta(author.as_str(), text),
            Update::Event(event) => self.on_event(event),
            Update::ToolOutputDelta { .. } | Update::StoreFailed(_) => Vec::new(),
        }
    }

    /// Returns the remaining text.
    pub fn finish(&mut self) -> Vec<String> {
        self.active = None;
        self.flush_queued()
    }

    /// Streams the text of the active agent. Text of other agents is sent with their answers.
    fn on_delta(&mut self, author: &str, text: &str) -> Vec<String> {
        match &mut self.active {
            Some((active, sent)) if active == author => {
                sent.push_str(text);
                vec![text.to_owned()]
            }
            Some(_) => Vec::new(),
            None => {
                self.active = Some((author.to_owned(), text.to_owned()));
                vec![self.separate(text)]
            }
        }
    }

    fn on_event(&mut self, event: &Event) -> Vec<String> {
        let Author::Agent(author) = &event.author else {
            return Vec::new();
        };
        let is_active = self
            .active
            .as_ref()
            .is_some_and(|(active, _)| active == author.as_str());
        match &event.body {
            EventBody::Usage(_)
            | EventBody::Approval { .. }
            | EventBody::Context { .. }
            | EventBody::Digest { .. } => Vec::new(),
            EventBody::Answer(content) if is_active => {
                let text = content.to_plain_text();
                let mut texts: Vec<String> = self.remaining_text(&text).into_iter().collect();
                texts.extend(self.flush_queued());
                texts
            }
            EventBody::Answer(content) if self.active.is_none() => {
                vec![self.separate(&content.to_plain_text())]
            }
            EventBody::Answer(content) => {
                self.queued.push(content.to_plain_text());
                Vec::new()
            }
            // Any other event ends the text of the active agent.
            _ if is_active => {
                self.active = None;
                self.flush_queued()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the part of an answer that was not streamed yet.
    fn remaining_text(&mut self, answer: &str) -> Option<String> {
        let (_, sent) = self.active.take()?;
        match answer.strip_prefix(sent.as_str()) {
            Some("") => None,
            Some(rest) => Some(rest.to_owned()),
            // The streamed text may differ from the stored answer in surrounding whitespace.
            None if answer.trim() == sent.trim() => None,
            None => Some(self.separate(answer)),
        }
    }

    fn flush_queued(&mut self) -> Vec<String> {
        let queued = std::mem::take(&mut self.queued);
        queued
            .into_iter()
            .map(|text| self.separate(&text))
            .collect()
    }

    fn separate(&mut self, text: &str) -> String {
        let separator = if self.has_output { "\n\n" } else { "" };
        self.has_output = true;
        format!("{separator}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use lango_domain::AgentName;
    use lango_domain::event::{Branch, NewEvent, SessionId, TurnId};
    use std::sync::Arc;

    fn delta(author: &str, text: &str) -> Update {
        Update::Delta {
            author: AgentName::new(author).unwrap(),
            text: text.to_owned(),
        }
    }

    fn event(author: &str, body: EventBody) -> Update {
        let event = NewEvent {
            turn: TurnId::new("t"),
            author: Author::from(author.to_owned()),
            branch: Branch::new(author),
            at: Timestamp::UNIX_EPOCH,
            label: Default::default(),
            body,
        };
        Update::Event(Arc::new(event.into_event(SessionId::new("s"), 1)))
    }

    fn answer(author: &str, text: &str) -> Update {
        event(author, EventBody::Answer(text.into()))
    }

    fn merged(updates: &[Update]) -> String {
        let mut merger = StreamMerger::default();
        let mut texts: Vec<String> = updates
            .iter()
            .flat_map(|update| merger.push(update))
            .collect();
        texts.extend(merger.finish());
        texts.concat()
    }

    #[test]
    fn does_not_repeat_streamed_text() {
        assert_eq!(
            merged(&[delta("a", "Hel"), delta("a", "lo."), answer("a", "Hello.")]),
            "Hello."
        );
        assert_eq!(merged(&[answer("a", "Hello.")]), "Hello.");
        assert_eq!(
            merged(&[delta("a", "Hel"), answer("a", "Hello.")]),
            "Hello."
        );
    }

    #[test]
    fn separates_notes_from_answers() {
        let note = event(
            "root",
            EventBody::Note {
                text: "One moment.".to_owned(),
            },
        );
        let updates = [
            delta("root", "One moment."),
            note,
            delta("a", "안녕"),
            answer("a", "안녕"),
        ];
        assert_eq!(merged(&updates), "One moment.\n\n안녕");
    }

    #[test]
    fn merges_parallel_answers_one_after_the_other() {
        let updates = [
            delta("a", "A1 "),
            delta("b", "B1 "),
            delta("a", "A2"),
            delta("b", "B2"),
            answer("b", "B1 B2"),
            answer("a", "A1 A2"),
        ];
        assert_eq!(merged(&updates), "A1 A2\n\nB1 B2");
    }
}
