//! The answer, put together from what comes: artifacts in pieces or whole, messages, states.

use std::collections::HashMap;

use lango_domain::text::strip_control_chars;
use lango_net::sanitize::one_line;

use crate::a2a::{Artifact, ArtifactId, Message, Part, PartContent};

/// What a colleague may say in one task (B92).
pub(crate) const MAX_BYTES: usize = 256 * 1024;
const TRUNCATION_MARKER: &str = "\n[the rest is cut: the answer is too long]";
/// A datum that is longer is for programs.
const MAX_DATA: usize = 16 * 1024;

/// What is held to find out what is new: artifacts that are no text, or are said to change, take room as well.
const MAX_HELD: usize = 4 * MAX_BYTES;
/// What an artifact takes beside its words.
const ARTIFACT_OVERHEAD: usize = 128;

/// What was said so far.
#[derive(Debug, Default)]
pub(crate) struct RemoteAnswer {
    artifacts: HashMap<ArtifactId, String>,
    /// How much of them is held.
    held_bytes: usize,
    bytes: usize,
    is_truncated: bool,
    is_over_budget: bool,
}

impl RemoteAnswer {
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether nothing more is taken.
    pub fn is_full(&self) -> bool {
        self.is_truncated || self.is_over_budget
    }

    /// A further piece of an artifact.
    pub fn append(&mut self, artifact: &Artifact) -> Option<String> {
        let text = parts_text(&artifact.parts);
        if !self.artifacts.contains_key(&artifact.id) {
            return self.replace(artifact);
        }
        if self.reserve(text.len())
            && let Some(known) = self.artifacts.get_mut(&artifact.id)
        {
            known.push_str(&text);
        }
        self.append_text(text)
    }

    /// An artifact as it stands now: what is new of it.
    pub fn replace(&mut self, artifact: &Artifact) -> Option<String> {
        let text = parts_text(&artifact.parts);
        let known = self.artifacts.remove(&artifact.id);
        self.held_bytes -= known
            .as_ref()
            .map_or(0, |known| known.len() + ARTIFACT_OVERHEAD);
        if self.reserve(text.len() + ARTIFACT_OVERHEAD) {
            self.artifacts.insert(artifact.id.clone(), text.clone());
        }
        match known {
            None => self.append_paragraph(text),
            Some(known) => match text.strip_prefix(known.as_str()) {
                Some(rest) => self.append_text(rest.to_owned()),
                // What was said stays said; the other version follows it.
                None => self.append_paragraph(text),
            },
        }
    }

    pub fn append_message(&mut self, message: &Message) -> Option<String> {
        self.append_paragraph(parts_text(&message.parts))
    }

    pub fn append_paragraph(&mut self, text: String) -> Option<String> {
        if text.trim().is_empty() {
            return None;
        }
        let break_before = if self.is_empty() { "" } else { "\n\n" };
        self.append_text(format!("{break_before}{text}"))
    }

    /// Counts what is to be held. Without room for it the answer is cut behind what comes now.
    fn reserve(&mut self, bytes: usize) -> bool {
        let has_room = self.held_bytes + bytes <= MAX_HELD;
        if has_room {
            self.held_bytes += bytes;
        } else {
            self.is_over_budget = true;
        }
        has_room
    }

    fn append_text(&mut self, mut text: String) -> Option<String> {
        if text.is_empty() || self.is_truncated {
            return None;
        }
        let room = MAX_BYTES - self.bytes;
        if text.len() > room {
            text.truncate(text.floor_char_boundary(room));
            text.push_str(TRUNCATION_MARKER);
            self.is_truncated = true;
        }
        self.bytes = (self.bytes + text.len()).min(MAX_BYTES);
        Some(text)
    }
}

/// The words of parts; what is no text is named.
pub(crate) fn parts_text(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let before = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        match &part.content {
            PartContent::Text(words) => text.push_str(&strip_control_chars(words)),
            PartContent::Data(data) => {
                let mut data = data.to_string();
                if data.len() > MAX_DATA {
                    data = format!("[{} bytes of data]", data.len());
                }
                text.push_str(&format!("{before}{}", strip_control_chars(&data)));
            }
            PartContent::Url(url) => text.push_str(&format!(
                "{before}[{}: {}]",
                part_name(part),
                one_line(url, 500)
            )),
            PartContent::Raw(bytes) => {
                text.push_str(&format!(
                    "{before}[{}: {} bytes, not shown]",
                    part_name(part),
                    bytes.len() / 4 * 3
                ));
            }
        }
    }
    text
}

fn part_name(part: &Part) -> String {
    let name = part.filename.as_deref().or(part.media_type.as_deref());
    name.map_or_else(|| "a file".to_owned(), |name| one_line(name, 80))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(id: &str, text: &str) -> Artifact {
        Artifact::text(ArtifactId::new(id), text)
    }

    #[test]
    fn nothing_is_said_twice() {
        let mut answer = RemoteAnswer::default();
        assert_eq!(answer.append(&artifact("a", "One")).as_deref(), Some("One"));
        assert_eq!(
            answer.append(&artifact("a", " two")).as_deref(),
            Some(" two")
        );
        assert_eq!(
            answer.replace(&artifact("a", "One two three")).as_deref(),
            Some(" three")
        );
        assert_eq!(answer.replace(&artifact("a", "One two three")), None);
        assert_eq!(
            answer.replace(&artifact("b", "Other")).as_deref(),
            Some("\n\nOther")
        );
        assert_eq!(
            answer.replace(&artifact("b", "Anew")).as_deref(),
            Some("\n\nAnew")
        );
    }

    #[test]
    fn an_answer_has_an_end() {
        let mut answer = RemoteAnswer::default();
        let said = answer
            .append(&artifact("a", &"ü".repeat(MAX_BYTES)))
            .unwrap();
        assert!(
            said.len() <= MAX_BYTES + TRUNCATION_MARKER.len() && said.ends_with(TRUNCATION_MARKER)
        );
        assert!(answer.is_full());
        assert_eq!(answer.append(&artifact("a", "x")), None);
    }

    /// B105
    #[test]
    fn artifacts_without_end_fill_an_answer() {
        let mut empty = RemoteAnswer::default();
        let numbers = (0..).find(|number: &usize| {
            empty.replace(&artifact(&number.to_string(), ""));
            empty.is_full()
        });
        assert!(
            numbers.unwrap() <= MAX_HELD / ARTIFACT_OVERHEAD,
            "artifacts that say nothing"
        );
        let mut blank = RemoteAnswer::default();
        let blanks = (0..).find(|number: &usize| {
            blank.replace(&artifact(&number.to_string(), &" ".repeat(MAX_BYTES / 2)));
            blank.is_full()
        });
        assert!(blanks.unwrap() < 10, "artifacts of white space");
        let mut growing = RemoteAnswer::default();
        for _ in 0..1_000 {
            growing.replace(&artifact("a", "the same"));
        }
        assert!(
            !growing.is_full() && growing.held_bytes < 1024,
            "one that stays the same"
        );
    }

    #[test]
    fn what_is_no_text_is_named_and_nothing_commands_a_terminal() {
        let file = Part {
            filename: Some("a\u{1b}.png".to_owned()),
            ..Part::new(PartContent::Raw("aGkh".to_owned()))
        };
        let link = Part::new(PartContent::Url("http://10.0.0.1/x".to_owned()));
        let data = Part::new(PartContent::Data(serde_json::json!({ "a": 1 })));
        let parts = [Part::text("x\u{1b}[2Jy"), data, link, file];
        assert_eq!(
            parts_text(&parts),
            "x[2Jy\n{\"a\":1}\n[a file: http://10.0.0.1/x]\n[a.png: 3 bytes, not shown]"
        );
    }
}
