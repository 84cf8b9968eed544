//! Decodes bytes to text, or detects that they are not text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::{ParseError, file_type};

/// A text has at least this many characters for each invalid sequence or control character.
const CHARS_PER_ODD: usize = 20;

/// Returns the text of a file with `\n` line endings.
pub fn decode(bytes: &[u8], declared: Option<&'static Encoding>) -> Result<String, ParseError> {
    if file_type::has_binary_magic(bytes) {
        return Err(ParseError::Binary);
    }
    let text = match Encoding::for_bom(bytes) {
        Some((encoding, bom_len)) => encoding
            .decode_without_bom_handling(&bytes[bom_len..])
            .0
            .into_owned(),
        None if bytes.contains(&0) => return Err(ParseError::Binary),
        None => decode_without_bom(bytes, declared)?,
    };
    if !is_mostly_text(&text) {
        return Err(ParseError::NotText);
    }
    if text.trim().is_empty() {
        return Err(ParseError::Empty);
    }
    Ok(normalize_line_endings(text))
}

fn decode_without_bom(
    bytes: &[u8],
    declared: Option<&'static Encoding>,
) -> Result<String, ParseError> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(text.to_owned());
    }
    if let Some(encoding) =
        declared.filter(|encoding| ![UTF_8, UTF_16LE, UTF_16BE].contains(encoding))
    {
        return Ok(encoding.decode_without_bom_handling(bytes).0.into_owned());
    }
    if let Some(text) = decode_broken_utf8(bytes) {
        return Ok(text);
    }
    if is_likely_western(bytes) {
        return Ok(WINDOWS_1252
            .decode_without_bom_handling(bytes)
            .0
            .into_owned());
    }
    Err(ParseError::NotText)
}

/// Decodes UTF-8 with a few invalid sequences, as in a file truncated within a character.
fn decode_broken_utf8(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let invalid = text
        .chars()
        .filter(|&char| char == char::REPLACEMENT_CHARACTER)
        .count();
    let (all, non_ascii) = (
        text.chars().count(),
        text.chars().filter(|char| !char.is_ascii()).count(),
    );
    let is_utf8 = non_ascii > 2 * invalid && invalid * CHARS_PER_ODD <= all;
    is_utf8.then(|| text.into_owned())
}

/// Returns true if the bytes look like Western text with one byte per character, which consists
/// mostly of ASCII letters. Other scripts and other data do not.
fn is_likely_western(bytes: &[u8]) -> bool {
    let plain = bytes
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace())
        .count();
    plain * 10 >= bytes.len() * 6
}

fn is_mostly_text(text: &str) -> bool {
    let is_odd = |char: &char| {
        (char.is_control() && !matches!(char, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}' | '\u{85}'))
            || *char == char::REPLACEMENT_CHARACTER
    };
    let odd = text.chars().filter(is_odd).count();

    odd == 0 || odd * CHARS_PER_ODD <= text.chars().count()
}

fn normalize_line_endings(text: String) -> String {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text
    }
}
