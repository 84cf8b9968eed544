//! Captures the output of a command for the model: its start and its end, in constant space.

use std::borrow::Cow;
use std::collections::VecDeque;

use lango_domain::secret_reference::{RedactedStream, SecretRedactor};

/// Number of bytes kept of the start, and of the end.
const HALF_BYTES: usize = 12 * 1024;

#[derive(Default)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    decoder: TextDecoder,
}

/// Decodes text that arrives in pieces.
#[derive(Default)]
struct TextDecoder {
    /// The first bytes of a character that is not complete yet.
    partial_char: Vec<u8>,
}

/// Removes the values of secrets from output before it is kept in any form. Without secrets, pieces
/// stay as they are; with secrets, bytes that are no text are replaced.
pub struct OutputRedaction {
    decoder: TextDecoder,
    stream: Option<RedactedStream>,
}

impl OutputRedaction {
    pub fn new(redactor: &SecretRedactor) -> Self {
        let stream = (!redactor.is_empty()).then(|| RedactedStream::new(redactor.clone()));
        Self {
            decoder: TextDecoder::default(),
            stream,
        }
    }

    /// Adds a piece and returns what may be kept of the output so far.
    pub fn push<'p>(&mut self, piece: &'p [u8]) -> Cow<'p, [u8]> {
        match &mut self.stream {
            Some(stream) => Cow::Owned(stream.push(&self.decoder.decode(piece)).into_bytes()),
            None => Cow::Borrowed(piece),
        }
    }

    /// Returns the rest at the end of the output.
    pub fn finish(&mut self) -> Vec<u8> {
        let Some(stream) = &mut self.stream else {
            return Vec::new();
        };
        let partial = std::mem::take(&mut self.decoder.partial_char);
        let mut rest = stream.push(&String::from_utf8_lossy(&partial));
        rest.push_str(&stream.finish());
        rest.into_bytes()
    }
}

impl Capture {
    /// Adds a piece of output, and returns it as text to show immediately.
    pub fn push(&mut self, piece: &[u8]) -> String {
        self.total += piece.len() as u64;
        let space = HALF_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..space]);
        self.tail.extend(&piece[space..]);
        let excess = self.tail.len().saturating_sub(HALF_BYTES);
        self.tail.drain(..excess);
        self.decoder.decode(piece)
    }

    /// Returns the number of bytes that were dropped.
    pub fn omitted_bytes(&self) -> u64 {
        self.total - self.head.len() as u64 - self.tail.len() as u64
    }

    /// Returns the captured text, with `marker` in place of the dropped part.
    pub fn text(&self, marker: &str) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.omitted_bytes() == 0 {
            return String::from_utf8_lossy(&[&self.head[..], &tail].concat()).into_owned();
        }
        // Drop a character that was split by the cut.
        let head = &self.head[..whole_chars_len(&self.head)];
        let tail = tail
            .iter()
            .position(|byte| byte & 0xc0 != 0x80)
            .map_or(&tail[..], |start| &tail[start..]);
        format!(
            "{}\n{marker}\n{}",
            String::from_utf8_lossy(head),
            String::from_utf8_lossy(tail)
        )
    }
}

impl TextDecoder {
    fn decode(&mut self, piece: &[u8]) -> String {
        self.partial_char.extend_from_slice(piece);
        let end = whole_chars_len(&self.partial_char);
        let text = String::from_utf8_lossy(&self.partial_char[..end]).into_owned();
        self.partial_char.drain(..end);
        text
    }
}

/// Returns the length up to which characters are complete; at most three bytes at the end may be
/// incomplete.
fn whole_chars_len(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    let is_lead = |byte: &u8| (0xc2..=0xf4).contains(byte);
    let Some(at) = bytes[start..]
        .iter()
        .rposition(is_lead)
        .map(|at| start + at)
    else {
        return bytes.len();
    };
    let length = match bytes[at] {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    };
    if at + length > bytes.len() {
        at
    } else {
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_start_and_end_of_long_output() {
        let mut capture = Capture::default();
        capture.push(b"START");
        for _ in 0..1_000 {
            capture.push(&[b'x'; 1_000]);
        }
        capture.push("€ENDE".as_bytes());
        let text = capture.text("[…]");
        assert!(text.starts_with("START") && text.ends_with("€ENDE") && text.contains("\n[…]\n"));
        assert!(text.len() < 2 * HALF_BYTES + 10 && capture.omitted_bytes() > 900_000);
    }

    /// B130
    #[test]
    fn secrets_are_removed_before_output_is_kept() {
        let redactor = SecretRedactor::new([("A".to_owned(), "geheimnis-€-1".to_owned())]);
        for size in [1, 2, 3, 7, 100] {
            let mut redaction = OutputRedaction::new(&redactor);
            let output = "x geheimnis-€-1 y gehe€".as_bytes();
            let mut kept: Vec<u8> = output
                .chunks(size)
                .flat_map(|piece| redaction.push(piece).into_owned())
                .collect();
            kept.extend(redaction.finish());
            let kept = String::from_utf8(kept).unwrap();
            assert_eq!(kept, "x [secret A: set, hidden] y gehe€", "{size}");
        }
        let mut redaction = OutputRedaction::new(&SecretRedactor::default());
        assert_eq!(*redaction.push(&[0xff, 0xe2]), [0xff, 0xe2]);
        assert!(redaction.finish().is_empty());
    }

    #[test]
    fn joins_characters_split_between_pieces() {
        let mut capture = Capture::default();
        let shown: String = "a€😀é"
            .as_bytes()
            .chunks(1)
            .map(|piece| capture.push(piece))
            .collect();
        assert_eq!(
            (shown.as_str(), capture.text("").as_str()),
            ("a€😀é", "a€😀é")
        );
        assert_eq!(capture.push(&[0xff, b'!']), "\u{fffd}!");
    }
}
