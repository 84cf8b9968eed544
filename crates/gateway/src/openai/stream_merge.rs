//! One voice out of several: specialists may speak side by side, and whoever listens hears one after the other.

use lango_domain::event::{Author, EventBody, Event, Update};

/// What was said in a turn, in an order that can be read.
#[derive(Default)]
pub(super) struct StreamMerger {
    /// Who speaks, and what was heard of its reply.
    speaker: Option<(String, String)>,
    /// Answers that came while somebody else spoke.
    waiting: Vec<String>,
    has_spoken: bool,
}

impl StreamMerger {
    /// What is to be heard now.
    pub fn push(&mut self, update: &Update) -> Vec<String> {
        match update {
            Update::Delta { author, text } => self.delta(author.as_str(), text),
            Update::Event(event) => self.event(event),
            Update::Printed { .. } | Update::Broken(_) => Vec::new(),
        }
    }

    /// Whatever still waits.
    pub fn end(&mut self) -> Vec<String> {
        self.speaker = None;
        self.flush_waiting()
    }

    /// Words of whoever speaks, or begins to; those of others come with their answers.
    fn delta(&mut self, author: &str, text: &str) -> Vec<String> {
        match &mut self.speaker {
            Some((speaker, heard)) if speaker == author => {
                heard.push_str(text);
                vec![text.to_owned()]
            }
            Some(_) => Vec::new(),
            None => {
                self.speaker = Some((author.to_owned(), text.to_owned()));
                vec![self.apart(text)]
            }
        }
    }

    fn event(&mut self, event: &Event) -> Vec<String> {
        let Author::Agent(author) = &event.author else { return Vec::new() };
        let is_speaker = self.speaker.as_ref().is_some_and(|(speaker, _)| speaker == author.as_str());
        match &event.body {
            EventBody::Usage(_) | EventBody::Approval { .. } | EventBody::Context { .. } | EventBody::Digest { .. } => Vec::new(),
            EventBody::Answer { text } if is_speaker => {
                let mut pieces: Vec<String> = self.rest(text).into_iter().collect();
                pieces.extend(self.flush_waiting());
                pieces
            }
            EventBody::Answer { text } if self.speaker.is_none() => vec![self.apart(text)],
            EventBody::Answer { text } => {
                self.waiting.push(text.clone());
                Vec::new()
            }
            // Whatever else it does, it has said what it had to say.
            _ if is_speaker => {
                self.speaker = None;
                self.flush_waiting()
            }
            _ => Vec::new(),
        }
    }

    /// What of an answer was not heard yet.
    fn rest(&mut self, answer: &str) -> Option<String> {
        let (_, heard) = self.speaker.take()?;
        match answer.strip_prefix(heard.as_str()) {
            Some("") => None,
            Some(rest) => Some(rest.to_owned()),
            // What was heard may differ from what is kept by the space around it.
            None if answer.trim() == heard.trim() => None,
            None => Some(self.apart(answer)),
        }
    }

    fn flush_waiting(&mut self) -> Vec<String> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|text| self.apart(&text)).collect()
    }

    fn apart(&mut self, text: &str) -> String {
        let before = if self.has_spoken { "\n\n" } else { "" };
        self.has_spoken = true;
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

    fn said(author: &str, text: &str) -> Update {
        Update::Delta { author: AgentName::new(author).unwrap(), text: text.to_owned() }
    }

    fn did(author: &str, body: EventBody) -> Update {
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

    fn answered(author: &str, text: &str) -> Update {
        did(author, EventBody::Answer { text: text.to_owned() })
    }

    fn heard(updates: &[Update]) -> String {
        let mut voice = StreamMerger::default();
        let mut pieces: Vec<String> = updates.iter().flat_map(|update| voice.push(update)).collect();
        pieces.extend(voice.end());
        pieces.concat()
    }

    #[test]
    fn words_that_were_heard_are_not_said_again() {
        assert_eq!(heard(&[said("a", "Hel"), said("a", "lo."), answered("a", "Hello.")]), "Hello.");
        assert_eq!(heard(&[answered("a", "Hello.")]), "Hello.");
        assert_eq!(heard(&[said("a", "Hel"), answered("a", "Hello.")]), "Hello.");
    }

    #[test]
    fn a_remark_stands_apart_from_the_answer() {
        let note = did("root", EventBody::Note { text: "One moment.".to_owned() });
        let updates = [said("root", "One moment."), note, said("a", "안녕"), answered("a", "안녕")];
        assert_eq!(heard(&updates), "One moment.\n\n안녕");
    }

    #[test]
    fn those_who_speak_side_by_side_are_heard_one_after_the_other() {
        let updates = [
            said("a", "A1 "),
            said("b", "B1 "),
            said("a", "A2"),
            said("b", "B2"),
            answered("b", "B1 B2"),
            answered("a", "A1 A2"),
        ];
        assert_eq!(heard(&updates), "A1 A2\n\nB1 B2");
    }
}
