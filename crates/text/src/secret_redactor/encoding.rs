//! The forms in which programs print a value.

use std::collections::BTreeSet;
use std::fmt::Write;

use secrecy::zeroize::{Zeroize, Zeroizing};

use super::MIN_REDACTED_BYTES;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Lines of a longer value, such as a PEM file, are redacted alone from this length.
const MIN_LINE_BYTES: usize = 24;

/// Returns every form of a value, without line breaks.
pub(super) fn forms(value: &str) -> Vec<Zeroizing<String>> {
    let trimmed = value.trim();
    let mut forms = BTreeSet::new();
    add_text_forms(&mut forms, trimmed);
    add_byte_forms(&mut forms, trimmed.as_bytes());
    if value != trimmed {
        // `echo` and editors add a line break before a program encodes the value.
        add_byte_forms(&mut forms, value.as_bytes());
    }
    for line in secret_lines(trimmed) {
        add_text_forms(&mut forms, line);
    }
    forms
        .into_iter()
        .map(|mut form| {
            let joined = Zeroizing::new(without_line_breaks(&form));
            form.zeroize();
            joined
        })
        .filter(|form| form.len() >= MIN_REDACTED_BYTES)
        .collect()
}

pub(super) fn without_line_breaks(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect()
}

/// Returns the lines of a value with several lines that are secrets in themselves.
fn secret_lines(value: &str) -> impl Iterator<Item = &str> {
    let is_secret =
        |line: &&str| line.len() >= MIN_LINE_BYTES && !line.contains(char::is_whitespace);
    let lines = value.lines().map(str::trim).filter(is_secret);
    lines.filter(|_| value.contains('\n'))
}

fn add_text_forms(forms: &mut BTreeSet<String>, value: &str) {
    forms.insert(value.to_owned());
    for escaped in [
        json_escaped(value, JsonEscapes::Required),
        json_escaped(value, JsonEscapes::Slashes),
        json_escaped(value, JsonEscapes::NonAscii),
    ] {
        // Twice: JSON inside a text of JSON.
        forms.insert(json_escaped(&escaped, JsonEscapes::Required));
        forms.insert(escaped);
    }
    forms.insert(html_escaped(value));
    forms.insert(value.replace('\'', r"'\''"));
    // What is left unescaped differs: RFC 3986, JavaScript, forms, paths, whole addresses.
    for kept in ["-_.~", "-_.!~*'()", "*-._", "-_.~/", "-_.!~*'();,/?:@&=+$#"] {
        let escaped = url_escaped(value, kept);
        forms.insert(escaped.replace("%20", "+"));
        forms.insert(lower_case_escapes(&escaped).replace("%20", "+"));
        forms.insert(lower_case_escapes(&escaped));
        forms.insert(escaped);
    }
}

fn add_byte_forms(forms: &mut BTreeSet<String>, value: &[u8]) {
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    forms.insert(hex.to_uppercase());
    forms.insert(hex);
    for alphabet in [STANDARD, URL_SAFE] {
        for offset in 0..3 {
            add_base64_forms(forms, alphabet, offset, value);
        }
    }
}

/// Adds the base64 text of a value that begins `offset` bytes after a group of three: the characters
/// that depend on the value alone, and the ends that it has when nothing follows.
fn add_base64_forms(
    forms: &mut BTreeSet<String>,
    alphabet: &[u8; 64],
    offset: usize,
    value: &[u8],
) {
    let bit = |position: usize| match position.checked_sub(offset * 8) {
        Some(position) => value
            .get(position / 8)
            .map_or(0, |byte| byte >> (7 - position % 8) & 1),
        None => 0,
    };
    let character = |index: usize| {
        let sextet = (0..6).fold(0, |bits, place| bits << 1 | bit(index * 6 + place));
        char::from(alphabet[usize::from(sextet)])
    };
    let bits = (offset + value.len()) * 8;
    let mut form: String = ((offset * 8).div_ceil(6)..bits / 6)
        .map(character)
        .collect();
    forms.insert(form.clone());
    if bits.is_multiple_of(6) {
        return;
    }
    form.push(character(bits / 6));
    forms.insert(form.clone());
    form.push_str(if bits % 6 == 2 { "==" } else { "=" });
    forms.insert(form);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonEscapes {
    Required,
    Slashes,
    NonAscii,
}

fn json_escaped(value: &str, escapes: JsonEscapes) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{8}' => escaped.push_str("\\b"),
            '\u{c}' => escaped.push_str("\\f"),
            '/' if escapes == JsonEscapes::Slashes => escaped.push_str("\\/"),
            c if c < ' ' || escapes == JsonEscapes::NonAscii && !c.is_ascii() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a text cannot fail.
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
            }
            c => escaped.push(c),
        }
    }
    escaped
}

fn html_escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn url_escaped(value: &str, kept: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

fn lower_case_escapes(escaped: &str) -> String {
    let mut rest = escaped.chars();
    let mut lower = String::with_capacity(escaped.len());
    while let Some(c) = rest.next() {
        lower.push(c);
        if c == '%' {
            lower.extend(
                rest.by_ref()
                    .take(2)
                    .map(|digit| digit.to_ascii_lowercase()),
            );
        }
    }
    lower
}
