//! Content of messages, tool results and answers: text with images and files (B110).

mod attachment;
mod media_type;

pub use attachment::{
    Attachment, AttachmentError, AttachmentKind, BlobData, BlobId, MAX_ATTACHMENT_BYTES,
    MAX_ATTACHMENTS, MAX_MESSAGE_BYTES, ReadableKinds,
};

use serde::{Deserialize, Serialize};

/// Text and the images and files that stand in it.
///
/// The text is one string, so that everything that reads only text needs no parts. Content without
/// attachments has the same JSON as text had before attachments existed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// A part of content, in reading order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentPart<'a> {
    Text(&'a str),
    Image(&'a Attachment),
    File(&'a Attachment),
}

impl<T: Into<String>> From<T> for Content {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            attachments: Vec::new(),
        }
    }
}

impl Content {
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.attachments.is_empty()
    }

    /// Appends text as a paragraph of its own.
    pub fn push_paragraph(&mut self, text: &str) {
        self.pin_attachments();
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }

    /// Appends an attachment after the text so far.
    pub fn attach(&mut self, attachment: Attachment) {
        let at = Some(self.text.len() as u64);
        self.attachments.push(Attachment { at, ..attachment });
    }

    /// Appends other content as a paragraph of its own.
    pub fn append(&mut self, other: Self) {
        self.push_paragraph(&other.text);
        let shift = self.text.len() - other.text.len();
        for attachment in other.attachments {
            let at = position(&other.text, &attachment) + shift;
            self.attachments.push(Attachment {
                at: Some(at as u64),
                ..attachment
            });
        }
    }

    /// Returns the parts in order. A position outside the text counts as its end.
    pub fn parts(&self) -> Vec<ContentPart<'_>> {
        let mut placed: Vec<(usize, &Attachment)> = self
            .attachments
            .iter()
            .map(|attachment| (position(&self.text, attachment), attachment))
            .collect();
        placed.sort_by_key(|(at, _)| *at);
        let (mut parts, mut done) = (Vec::new(), 0);
        for (at, attachment) in placed {
            push_text(&mut parts, &self.text[done..at]);
            done = at;
            parts.push(match attachment.kind() {
                AttachmentKind::Image => ContentPart::Image(attachment),
                AttachmentKind::Pdf | AttachmentKind::Other => ContentPart::File(attachment),
            });
        }
        push_text(&mut parts, &self.text[done..]);
        parts
    }

    /// Replaces every attachment that `replace` returns a text for by that text.
    #[must_use]
    pub fn replace_attachments(
        &self,
        mut replace: impl FnMut(&Attachment) -> Option<String>,
    ) -> Self {
        self.rewrite_attachments(|attachment| match replace(attachment) {
            Some(text) => (Some(text), None),
            None => (None, Some(attachment.clone())),
        })
    }

    /// Rebuilds the content. For each attachment, in reading order, `rewrite` returns a text to insert and
    /// the attachment to place behind it.
    #[must_use]
    pub fn rewrite_attachments(
        &self,
        mut rewrite: impl FnMut(&Attachment) -> (Option<String>, Option<Attachment>),
    ) -> Self {
        if self.attachments.is_empty() {
            return self.clone();
        }
        let mut content = Self::default();
        for part in self.parts() {
            match part {
                ContentPart::Text(text) => content.text.push_str(text),
                ContentPart::Image(attachment) | ContentPart::File(attachment) => {
                    let (text, kept) = rewrite(attachment);
                    text.iter().for_each(|text| content.push_paragraph(text));
                    kept.into_iter().for_each(|kept| content.attach(kept));
                }
            }
        }
        content
    }

    /// Returns the attachments in reading order.
    pub fn attachments_in_order(&self) -> Vec<&Attachment> {
        let attachment = |part| match part {
            ContentPart::Text(_) => None,
            ContentPart::Image(attachment) | ContentPart::File(attachment) => Some(attachment),
        };
        self.parts().into_iter().filter_map(attachment).collect()
    }

    /// Returns the text with a placeholder for each attachment.
    pub fn to_plain_text(&self) -> String {
        self.replace_attachments(|attachment| Some(attachment.placeholder()))
            .text
    }

    /// Gives attachments at the end an explicit position, before text is appended.
    fn pin_attachments(&mut self) {
        let end = self.text.len() as u64;
        for attachment in &mut self.attachments {
            attachment.at.get_or_insert(end);
        }
    }
}

/// Returns the position of an attachment in its text, on a character boundary.
fn position(text: &str, attachment: &Attachment) -> usize {
    let at = attachment
        .at
        .and_then(|at| usize::try_from(at).ok())
        .unwrap_or(text.len());
    text.floor_char_boundary(at)
}

fn push_text<'a>(parts: &mut Vec<ContentPart<'a>>, text: &'a str) {
    if !text.is_empty() {
        parts.push(ContentPart::Text(text));
    }
}

/// JSON that is a string for text alone, as messages were before attachments existed.
pub(crate) mod string_or_content {
    use super::Content;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StringOrContent {
        String(String),
        Content(Content),
    }

    pub fn serialize<S: Serializer>(content: &Content, serializer: S) -> Result<S::Ok, S::Error> {
        match content.attachments.is_empty() {
            true => serializer.serialize_str(&content.text),
            false => content.serialize(serializer),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        Ok(match StringOrContent::deserialize(deserializer)? {
            StringOrContent::String(text) => text.into(),
            StringOrContent::Content(content) => content,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(name: &str) -> Attachment {
        Attachment::new(b"\x89PNG\r\n\x1a\nrest".to_vec(), name, Some("image/png")).unwrap()
    }

    /// B110: text alone has the JSON that it had before attachments existed.
    #[test]
    fn text_alone_is_one_field() {
        let content = Content::from("hello");
        let json = serde_json::to_value(&content).unwrap();
        assert_eq!(json, serde_json::json!({ "text": "hello" }));
        assert_eq!(serde_json::from_value::<Content>(json).unwrap(), content);
    }

    /// B110
    #[test]
    fn parts_keep_their_order() {
        let mut content = Content::from("before");
        content.attach(picture("a.png"));
        content.push_paragraph("between");
        content.attach(picture("b.png"));
        content.push_paragraph("after");
        let names: Vec<String> = content
            .parts()
            .iter()
            .map(|part| match part {
                ContentPart::Text(text) => text.trim().to_owned(),
                ContentPart::Image(attachment) | ContentPart::File(attachment) => {
                    attachment.name.clone()
                }
            })
            .collect();
        assert_eq!(names, ["before", "a.png", "between", "b.png", "after"]);
        let mut joined = Content::from("first");
        joined.append(content.clone());
        assert_eq!(joined.parts().len(), content.parts().len());
        assert_eq!(
            joined.parts()[1],
            ContentPart::Image(&joined.attachments[0])
        );
    }

    #[test]
    fn odd_positions_are_the_nearest_boundary() {
        let mut content = Content::from("é!");
        for at in [1, 99, u64::MAX] {
            content.attachments = vec![Attachment {
                at: Some(at),
                ..picture("a.png")
            }];
            let texts: String = content
                .parts()
                .iter()
                .filter_map(|part| match part {
                    ContentPart::Text(text) => Some(*text),
                    _ => None,
                })
                .collect();
            assert_eq!(texts, "é!");
        }
    }

    #[test]
    fn attachments_are_replaced_in_place() {
        let mut content = Content::from("look: ");
        content.attach(picture("a.png"));
        content.push_paragraph("and say");
        let plain = content.to_plain_text();
        assert!(plain.starts_with("look: \n\n[image a.png"), "{plain}");
        assert!(plain.ends_with("and say"), "{plain}");
        assert_eq!(content.replace_attachments(|_| None), content);
    }
}
