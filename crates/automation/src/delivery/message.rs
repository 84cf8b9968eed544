//! The message of a delivery, in the forms that targets need.

use jiff::Timestamp;
use lango_domain::automation::{Delivery, DeliveryOccasion};
use lango_text::sanitize::{strip_control_chars, truncated_line};
use serde_json::{Value, json};

/// A delivery at the time of an attempt. Its texts come from models and other programs: every form
/// is without control characters and limited in size.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingMessage<'a> {
    pub delivery: &'a Delivery,
    /// The time of the attempt.
    pub sent_at: Timestamp,
}

impl OutgoingMessage<'_> {
    /// Returns the key of the delivery: the same in every attempt, and different from the keys of
    /// other stores, whose deliveries have the same numbers.
    pub fn key(&self) -> String {
        let created = self.delivery.created.as_nanosecond();
        format!("{}-{created:x}", self.delivery.id)
    }

    /// Returns the title on one line.
    pub fn title(&self, max_chars: usize) -> String {
        let title = truncated_line(&self.delivery.message.title, max_chars);
        if title.is_empty() {
            truncated_line(&self.delivery.message.from, max_chars)
        } else {
            title
        }
    }

    /// Returns the text, shortened to about `max_bytes` with a marker.
    pub fn text(&self, max_bytes: usize) -> String {
        capped_text(&self.delivery.message.text, max_bytes)
    }

    /// Returns the title and the text as one text for people.
    pub fn title_and_text(&self, max_bytes: usize) -> String {
        let (title, text) = (self.title(MAX_TITLE_CHARS), self.text(max_bytes));
        if text.trim().is_empty() || text.trim() == title {
            title
        } else {
            format!("{title}\n\n{text}")
        }
    }

    pub fn is_failure(&self) -> bool {
        self.delivery.occasion == DeliveryOccasion::Failure
    }

    /// Returns the JSON form, for programs.
    pub fn to_json(&self, max_bytes: usize) -> Value {
        let Delivery {
            run,
            occasion,
            message,
            created,
            ..
        } = self.delivery;
        json!({
            "id": self.key(),
            "from": truncated_line(&message.from, MAX_TITLE_CHARS),
            "title": self.title(MAX_TITLE_CHARS),
            "text": self.text(max_bytes),
            "occasion": occasion,
            "failure": self.is_failure(),
            "run": run,
            "session": message.session,
            "at": created,
        })
    }
}

pub(super) const MAX_TITLE_CHARS: usize = 200;

/// Removes control characters and shortens a text to about `max_bytes`. The marker names the size of
/// what is missing.
pub(super) fn capped_text(text: &str, max_bytes: usize) -> String {
    let mut text = strip_control_chars(&text.replace("\r\n", "\n"));
    if text.len() > max_bytes {
        let end = text.floor_char_boundary(max_bytes);
        let missing = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[… {missing} bytes left out]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_hostile_texts_are_capped_and_cleaned() {
        assert_eq!(
            capped_text("a\r\nb\u{1b}[2J\u{202e}\0c\td", 100),
            "a\nb[2Jc\td"
        );
        assert_eq!(
            capped_text("ääääää", 5),
            "ää\n[… 8 bytes left out]",
            "cut between characters"
        );
        let huge = capped_text(&"x".repeat(10_000_000), 1_000);
        assert!(huge.len() < 1_100 && huge.ends_with("[… 9999000 bytes left out]"));
    }
}
