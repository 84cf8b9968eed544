//! Captures the output of a command for the model: its start and its end, in constant space.

use std::collections::VecDeque;

/// Number of bytes kept of the start, and of the end.
const HALF_BYTES: usize = 12 * 1024;

#[derive(Default)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    /// The first bytes of a character that is not complete yet.
    partial_char: Vec<u8>,
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
        self.decode(piece)
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
