//! Redaction of a text that arrives in parts.

use super::automaton::{Found, Scan};
use super::{SecretRedactor, hidden_mark};

/// Redacts a text that arrives in parts, so that a value which is split between parts is found.
/// Text is held back only while it may become a value.
pub struct RedactedStream {
    redactor: SecretRedactor,
    scan: Scan,
    /// Text that was received and not returned, and its position in the stream.
    held: String,
    held_from: usize,
    /// Matches in the held text.
    found: Vec<Found>,
}

impl RedactedStream {
    pub fn new(redactor: SecretRedactor) -> Self {
        Self {
            redactor,
            scan: Scan::new(0),
            held: String::new(),
            held_from: 0,
            found: Vec::new(),
        }
    }

    /// Adds the next part and returns the text that is decided.
    pub fn push(&mut self, part: &str) -> String {
        let Some(automaton) = &self.redactor.automaton else {
            return part.to_owned();
        };
        for found in self.scan.feed(automaton, part.as_bytes()) {
            found.append_to(&mut self.found);
        }
        self.held.push_str(part);
        let mut decided = self.scan.undecided_from();
        // A match that reaches into the undecided text may grow.
        for found in self.found.iter().rev() {
            if found.end > decided {
                decided = decided.min(found.start);
            }
        }
        self.take_until(decided)
    }

    /// Returns the rest of the text at its end.
    pub fn finish(&mut self) -> String {
        let end = self.held_from + self.held.len();
        let rest = self.take_until(end);
        self.scan = Scan::new(end);
        rest
    }

    fn take_until(&mut self, end: usize) -> String {
        let length = self.held.floor_char_boundary(end - self.held_from);
        let end = self.held_from + length;
        let mut text = String::with_capacity(length);
        let mut from = 0;
        for found in self.found.extract_if(.., |found| found.end <= end) {
            text.push_str(&self.held[from..found.start - self.held_from]);
            text.push_str(&hidden_mark(&self.redactor.known[found.secret].name));
            from = found.end - self.held_from;
        }
        text.push_str(&self.held[from..length]);
        self.held.drain(..length);
        self.held_from = end;
        text
    }
}
