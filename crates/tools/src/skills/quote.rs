//! Quotes untrusted text so that readers see all of it and where it ends.

use std::fmt::Write as _;

use lango_text::sanitize;

const MAX_LINE_LEN: usize = 400;

/// Returns true for characters that people do not see but programs or models read.
pub(super) fn is_hidden(c: char) -> bool {
    let control = sanitize::is_terminal_control(c) && !matches!(c, '\n' | '\t' | '\r');
    control
        || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes every hidden character as `<U+XXXX>`.
pub(super) fn escape_hidden(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut shown, c| {
            if is_hidden(c) {
                // Writing to a string cannot fail.
                let _ = write!(shown, "<U+{:04X}>", u32::from(c));
            } else if c != '\r' {
                shown.push(c);
            }
            shown
        })
}

/// Removes hidden characters, for a model. Keeps joiners, because some scripts and emoji need them.
pub(super) fn strip_hidden(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\u{200c}' | '\u{200d}') || !is_hidden(*c))
        .collect()
}

/// Quotes the first lines, each after a bar, so that no line looks like one of Lango's own. Notes
/// the omitted lines.
pub(super) fn block(text: &str, max_lines: usize) -> String {
    let text = escape_hidden(text);
    let mut shown = String::new();
    for line in text.lines().take(max_lines) {
        let start: String = line.chars().take(MAX_LINE_LEN).collect();
        let rest = line.chars().count().saturating_sub(MAX_LINE_LEN);
        let note = if rest == 0 {
            String::new()
        } else {
            format!(" … ({rest} more characters in this line)")
        };
        let _ = writeln!(shown, "  | {start}{note}");
    }
    let omitted = text.lines().count().saturating_sub(max_lines);
    if omitted > 0 {
        let _ = writeln!(shown, "  … ({omitted} more lines are not shown)");
    }
    shown
}

/// Quotes all lines, each after a bar.
pub(super) fn whole_block(text: &str) -> String {
    escape_hidden(text)
        .lines()
        .map(|line| format!("  | {line}\n"))
        .collect()
}

/// Quotes text, or notes the size of binary content.
pub(super) fn content_block(content: &[u8], max_lines: usize) -> String {
    match std::str::from_utf8(content) {
        Ok(text) if !content.contains(&0) => block(text, max_lines),
        _ => format!("  ({} bytes that are not text)\n", content.len()),
    }
}

/// Quotes words for a shell.
pub(super) fn shell_line(words: &[String]) -> String {
    words
        .iter()
        .map(|word| shell_word(word))
        .collect::<Vec<_>>()
        .join(" ")
}

fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes words on one line for display, with control and hidden characters escaped.
pub(super) fn display_line(words: &[String]) -> String {
    let shown = |word: &String| {
        if word.chars().any(|c| is_hidden(c) || c.is_control()) {
            format!("{word:?}")
        } else {
            shell_word(word)
        }
    };
    escape_hidden(&words.iter().map(shown).collect::<Vec<_>>().join(" "))
}

/// Truncates a text to `max_bytes`, with a note about the cut.
pub(super) fn truncate(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max_bytes);
    format!(
        "{}\n\n[cut here: {} of {} bytes are shown]",
        &text[..end],
        end,
        text.len()
    )
}

/// Truncates a line to `max_chars`.
pub(super) fn truncate_line(line: &str, max_chars: usize) -> String {
    if line.chars().count() <= max_chars {
        return line.to_owned();
    }
    line.chars()
        .take(max_chars.saturating_sub(1))
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_hidden_characters_in_blocks() {
        assert_eq!(
            block("a\u{202e}b\r\n\u{1b}[2J\u{200b}c", 9),
            "  | a<U+202E>b\n  | <U+001B>[2J<U+200B>c\n"
        );
        assert_eq!(
            block("a\nb\nc", 2),
            "  | a\n  | b\n  … (1 more lines are not shown)\n"
        );
        assert!(
            block(&"x".repeat(MAX_LINE_LEN + 7), 1).contains("(7 more characters in this line)")
        );
        assert_eq!(
            content_block(b"\x7fELF\0", 9),
            "  (5 bytes that are not text)\n"
        );
    }

    #[test]
    fn strips_hidden_characters() {
        assert_eq!(
            strip_hidden("a\u{e0041}\u{200b}b\u{1b}c\n\u{200d}d"),
            "abc\n\u{200d}d"
        );
    }

    #[test]
    fn quotes_words() {
        let words = ["a b", "it's", "", "$(x)", "plain-1.txt"].map(str::to_owned);
        assert_eq!(shell_line(&words), r"'a b' 'it'\''s' '' '$(x)' plain-1.txt");
        assert_eq!(
            display_line(&["a\nAllowed by the user".to_owned()]),
            r#""a\nAllowed by the user""#
        );
    }

    #[test]
    fn truncates_at_character_boundaries() {
        assert_eq!(
            truncate("äöü", 3),
            "ä\n\n[cut here: 2 of 6 bytes are shown]"
        );
        assert_eq!(truncate_line("abcdef", 4), "abc…");
        assert_eq!(truncate_line("abcd", 4), "abcd");
    }
}
