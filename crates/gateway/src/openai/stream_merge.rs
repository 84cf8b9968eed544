//! One voice out of several: specialists may speak side by side, and whoever listens hears one after the other.

use lango_domain::event::{Author, Event, EventBody, Update};

/// What was said in a turn, in an order that can be read.
#[derive(Default)]
pub(super) struct StreamMerger {
    /// Who speaks, and what was heard of its reply.
    active: Option<(String, String)>,
    /// Answers that came while somebody else spoke.
    queued: Vec<String>,
    has_output: bool,
}

impl StreamMerger {
    /// What is to be heard now.
    pub fn push(&mut self, update: &Update) -> Vec<String> {
        match update {
            Update::Delta { author, text } => self.on_delta(author.as_str(), text),
            Update::Event(event) => self.on_event(event),
            Update::ToolOutputDelta { .. } | Update::StoreFailed(_) => Vec::new(),
        }
    }

    /// Whatever still waits.
    pub fn finish(&mut self) -> Vec<String> {
        self.active = None;
        self.flush_waiting()
    }

    /// Words of whoever speaks, or begins to; those of others come with their answers.
    fn on_delta(&mut self, author: &str, text: &str) -> Vec<String> {
        match &mut self.active {
            Some((speaker, heard)) if speaker == author => {
                heard.push_str(text);
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
        let is_speaker = self
            .active
            .as_ref()
            .is_some_and(|(speaker, _)| speaker == author.as_str());
        match &event.body {
            EventBody::Usage(_)
            | EventBody::Approval { .. }
            | EventBody::Context { .. }
            | EventBody::Digest { .. } => Vec::new(),
            EventBody::Answer { text } if is_speaker => {
                let mut pieces: Vec<String> = self.remaining_text(text).into_iter().collect();
                pieces.extend(self.flush_waiting());
                pieces
            }
            EventBody::Answer { text } if self.active.is_none() => vec![self.separate(text)],
            EventBody::Answer { text } => {
                self.queued.push(text.clone());
                Vec::new()
            }
            // Whatever else it does, it has said what it had to say.
            _ if is_speaker => {
                self.active = None;
                self.flush_waiting()
            }
            _ => Vec::new(),
        }
    }

    /// What of an answer was not heard yet.
    fn remaining_text(&mut self, answer: &str) -> Option<String> {
        let (_, heard) = self.active.take()?;
        match answer.strip_prefix(heard.as_str()) {
            Some("") => None,
            Some(rest) => Some(rest.to_owned()),
            // What was heard may differ from what is kept by the space around it.
            None if answer.trim() == heard.trim() => None,
            None => Some(self.separate(answer)),
        }
    }

    fn flush_waiting(&mut self) -> Vec<String> {
        let waiting = std::mem::take(&mut self.queued);
        waiting
            .into_iter()
            .map(|text| self.separate(&text))
            .collect()
    }

    fn separate(&mut self, text: &str) -> String {
        let before = if self.has_output { "\n\n" } else { "" };
        self.has_output = true;
        format!("{before}{text}")
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
        let draft = NewEvent {
            turn: TurnId::new("t"),
            author: Author::from(author.to_owned()),
            branch: Branch::new(author),
            at: Timestamp::UNIX_EPOCH,
            label: Default::default(),
            body,
        };
        Update::Event(Arc::new(draft.into_event(SessionId::new("s"), 1)))
    }

    fn answer(author: &str, text: &str) -> Update {
        event(
            author,
            EventBody::Answer {
                text: text.to_owned(),
            },
        )
    }

    fn merged(updates: &[Update]) -> String {
        let mut voice = StreamMerger::default();
        let mut pieces: Vec<String> = updates
            .iter()
            .flat_map(|update| voice.push(update))
            .collect();
        pieces.extend(voice.finish());
        pieces.concat()
    }

    #[test]
    fn words_that_were_heard_are_not_said_again() {
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
    fn a_remark_stands_apart_from_the_answer() {
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
    fn those_who_speak_side_by_side_are_heard_one_after_the_other() {
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
