//! Assembles the answer of a remote task from artifacts (whole or in chunks), messages and states.

use std::collections::{HashMap, HashSet};

use lango_domain::Attachment;
use lango_domain::content::{BlobId, MAX_ATTACHMENTS};
use lango_text::sanitize::strip_control_chars;
use lango_text::sanitize::truncated_line;

use crate::a2a::{Artifact, ArtifactId, Message, Part, PartContent};

/// Maximum length of the answer of one task (B92).
pub(crate) const MAX_BYTES: usize = 256 * 1024;
const TRUNCATION_MARKER: &str = "\n[the rest is cut: the answer is too long]";
/// Most bytes of the files of one answer.
const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;
/// Longer data parts are replaced by their size.
const MAX_DATA_BYTES: usize = 16 * 1024;

/// Maximum size of the stored artifacts, which are needed to find out what is new. Artifacts
/// without text or with many changes take space, too.
const MAX_STORED_BYTES: usize = 4 * MAX_BYTES;
/// Memory of a stored artifact in addition to its text.
const ARTIFACT_OVERHEAD: usize = 128;

/// The answer so far.
#[derive(Debug, Default)]
pub(crate) struct RemoteAnswer {
    artifacts: HashMap<ArtifactId, String>,
    /// Size of the stored artifacts.
    stored_bytes: usize,
    /// The files of the answer that were not taken yet.
    new_files: Vec<Attachment>,
    /// All files of the answer so far: a file is taken once, in whatever artifacts it is.
    files: HashSet<BlobId>,
    file_bytes: u64,
    bytes: usize,
    is_truncated: bool,
    is_over_budget: bool,
}

impl RemoteAnswer {
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns true if nothing more is accepted.
    pub fn is_full(&self) -> bool {
        self.is_truncated || self.is_over_budget
    }

    /// Returns the files that arrived since the last call.
    pub fn take_files(&mut self) -> Vec<Attachment> {
        std::mem::take(&mut self.new_files)
    }

    fn add_files(&mut self, parts: &[Part]) {
        for file in parts.iter().filter_map(file_attachment) {
            let fits =
                self.files.len() < MAX_ATTACHMENTS && self.file_bytes + file.size <= MAX_FILE_BYTES;
            if fits && self.files.insert(file.blob.clone()) {
                self.file_bytes += file.size;
                self.new_files.push(file);
            }
        }
    }

    /// Appends a chunk of an artifact. Returns the new text.
    pub fn append(&mut self, artifact: &Artifact) -> Option<String> {
        if !self.artifacts.contains_key(&artifact.id) {
            return self.replace(artifact);
        }
        self.add_files(&artifact.parts);
        let text = parts_text(&artifact.parts);
        if self.reserve(text.len())
            && let Some(stored) = self.artifacts.get_mut(&artifact.id)
        {
            stored.push_str(&text);
        }
        self.append_text(text)
    }

    /// Replaces an artifact by its current version. Returns the new text.
    pub fn replace(&mut self, artifact: &Artifact) -> Option<String> {
        self.add_files(&artifact.parts);
        let text = parts_text(&artifact.parts);
        let stored = self.artifacts.remove(&artifact.id);
        self.stored_bytes -= stored
            .as_ref()
            .map_or(0, |stored| stored.len() + ARTIFACT_OVERHEAD);
        if self.reserve(text.len() + ARTIFACT_OVERHEAD) {
            self.artifacts.insert(artifact.id.clone(), text.clone());
        }
        match stored {
            None => self.append_paragraph(text),
            Some(stored) => match text.strip_prefix(stored.as_str()) {
                Some(rest) => self.append_text(rest.to_owned()),
                // Text that was sent cannot be taken back; the other version follows it.
                None => self.append_paragraph(text),
            },
        }
    }

    pub fn append_message(&mut self, message: &Message) -> Option<String> {
        self.add_files(&message.parts);
        self.append_paragraph(parts_text(&message.parts))
    }

    pub fn append_paragraph(&mut self, text: String) -> Option<String> {
        if text.trim().is_empty() {
            return None;
        }
        let separator = if self.is_empty() { "" } else { "\n\n" };
        self.append_text(format!("{separator}{text}"))
    }

    /// Reserves space for a stored artifact. Without space, the answer ends after the current text.
    fn reserve(&mut self, bytes: usize) -> bool {
        let fits = self.stored_bytes + bytes <= MAX_STORED_BYTES;
        if fits {
            self.stored_bytes += bytes;
        } else {
            self.is_over_budget = true;
        }
        fits
    }

    fn append_text(&mut self, mut text: String) -> Option<String> {
        if text.is_empty() || self.is_truncated {
            return None;
        }
        let remaining = MAX_BYTES - self.bytes;
        if text.len() > remaining {
            text.truncate(text.floor_char_boundary(remaining));
            text.push_str(TRUNCATION_MARKER);
            self.is_truncated = true;
        }
        self.bytes = (self.bytes + text.len()).min(MAX_BYTES);
        Some(text)
    }
}

/// Returns the text of parts; other content is described.
pub(crate) fn parts_text(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let separator = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        match &part.content {
            PartContent::Text(part_text) => text.push_str(&strip_control_chars(part_text)),
            PartContent::Data(data) => {
                let mut data = data.to_string();
                if data.len() > MAX_DATA_BYTES {
                    data = format!("[{} bytes of data]", data.len());
                }
                text.push_str(&format!("{separator}{}", strip_control_chars(&data)));
            }
            PartContent::Url(url) => text.push_str(&format!(
                "{separator}[{}: {}]",
                part_name(part),
                truncated_line(url, 500)
            )),
            PartContent::Raw(bytes) => {
                let outcome = match file_attachment(part) {
                    Some(_) => "attached",
                    None => "not shown",
                };
                text.push_str(&format!(
                    "{separator}[{}: {} bytes, {outcome}]",
                    part_name(part),
                    bytes.len() / 4 * 3
                ));
            }
        }
    }
    text
}

/// Returns the file of a part with bytes, if it is valid and not too large.
fn file_attachment(part: &Part) -> Option<Attachment> {
    let PartContent::Raw(bytes) = &part.content else {
        return None;
    };
    let name = part.filename.as_deref().unwrap_or("file");
    Attachment::from_base64(bytes, name, part.media_type.as_deref()).ok()
}

fn part_name(part: &Part) -> String {
    let name = part.filename.as_deref().or(part.media_type.as_deref());
    name.map_or_else(|| "a file".to_owned(), |name| truncated_line(name, 80))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(id: &str, text: &str) -> Artifact {
        Artifact::text(ArtifactId::new(id), text)
    }

    #[test]
    fn text_is_not_repeated() {
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
            answer.replace(&artifact("b", "Changed")).as_deref(),
            Some("\n\nChanged")
        );
    }

    #[test]
    fn long_answers_are_truncated() {
        let mut answer = RemoteAnswer::default();
        let text = answer
            .append(&artifact("a", &"ü".repeat(MAX_BYTES)))
            .unwrap();
        assert!(
            text.len() <= MAX_BYTES + TRUNCATION_MARKER.len() && text.ends_with(TRUNCATION_MARKER)
        );
        assert!(answer.is_full());
        assert_eq!(answer.append(&artifact("a", "x")), None);
    }

    /// B105
    #[test]
    fn endless_artifacts_fill_an_answer() {
        let mut empty = RemoteAnswer::default();
        let artifacts = (0..).find(|number: &usize| {
            empty.replace(&artifact(&number.to_string(), ""));
            empty.is_full()
        });
        assert!(
            artifacts.unwrap() <= MAX_STORED_BYTES / ARTIFACT_OVERHEAD,
            "empty artifacts"
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
            !growing.is_full() && growing.stored_bytes < 1024,
            "an unchanged artifact"
        );
    }

    /// B110
    #[test]
    fn files_are_taken_once_and_bad_ones_described() {
        let part = |data: &str, media_type: &str| Part {
            filename: Some("a.png".to_owned()),
            media_type: Some(media_type.to_owned()),
            ..Part::new(PartContent::Raw(data.to_owned()))
        };
        let parts = vec![
            part("aGkh", "text/plain"),
            part("aGkh", "image/png"),
            part("?", "a/b"),
        ];
        let artifact = Artifact {
            parts,
            ..artifact("a", "")
        };
        let mut answer = RemoteAnswer::default();
        let text = answer.replace(&artifact).unwrap();
        let outcomes: Vec<bool> = text.lines().map(|line| line.contains("attached")).collect();
        assert_eq!(outcomes, [true, false, false], "{text}");
        assert_eq!(answer.take_files().len(), 1);
        answer.replace(&artifact);
        assert!(answer.take_files().is_empty());
    }

    #[test]
    fn other_parts_are_described_and_control_characters_removed() {
        let file = Part {
            filename: Some("a\u{1b}.png".to_owned()),
            ..Part::new(PartContent::Raw("aGkh".to_owned()))
        };
        let link = Part::new(PartContent::Url("http://10.0.0.1/x".to_owned()));
        let data = Part::new(PartContent::Data(serde_json::json!({ "a": 1 })));
        let parts = [Part::text("x\u{1b}[2Jy"), data, link, file];
        assert_eq!(
            parts_text(&parts),
            "x[2Jy\n{\"a\":1}\n[a file: http://10.0.0.1/x]\n[a.png: 3 bytes, attached]"
        );
    }
}
