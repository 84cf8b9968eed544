//! Other people's text, put so that whoever reads it sees all of it and where it ends.

use std::fmt::Write as _;

use lango_domain::text;

const MAX_LINE_LEN: usize = 400;

/// Whether a reader would not see the character, though a program or a model does.
pub(super) fn is_hidden(c: char) -> bool {
    let control = text::is_terminal_control(c) && !matches!(c, '\n' | '\t' | '\r');
    control
        || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// With every hidden character written out.
pub(super) fn escape_hidden(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut shown, c| {
            if is_hidden(c) {
                // Writing into a string cannot fail.
                let _ = write!(shown, "<U+{:04X}>", u32::from(c));
            } else if c != '\r' {
                shown.push(c);
            }
            shown
        })
}

/// For a model: without what people would not see. Joiners stay, since some scripts and emoji need them.
pub(super) fn strip_hidden(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\u{200c}' | '\u{200d}') || !is_hidden(*c))
        .collect()
}

/// The first lines, each behind a bar, so that no line can pass for one of ours. Says what it leaves out.
pub(super) fn block(text: &str, most_lines: usize) -> String {
    let text = escape_hidden(text);
    let mut shown = String::new();
    for line in text.lines().take(most_lines) {
        let begin: String = line.chars().take(MAX_LINE_LEN).collect();
        let rest = line.chars().count().saturating_sub(MAX_LINE_LEN);
        let note = if rest == 0 {
            String::new()
        } else {
            format!(" … ({rest} more characters in this line)")
        };
        let _ = writeln!(shown, "  | {begin}{note}");
    }
    let left = text.lines().count().saturating_sub(most_lines);
    if left > 0 {
        let _ = writeln!(shown, "  … ({left} more lines are not shown)");
    }
    shown
}

/// All of it, each line behind a bar.
pub(super) fn whole_block(text: &str) -> String {
    escape_hidden(text)
        .lines()
        .map(|line| format!("  | {line}\n"))
        .collect()
}

/// Text or, if it is none, what it is instead.
pub(super) fn content_block(content: &[u8], most_lines: usize) -> String {
    match std::str::from_utf8(content) {
        Ok(text) if !content.contains(&0) => block(text, most_lines),
        _ => format!("  ({} bytes that are not text)\n", content.len()),
    }
}

/// Words as a shell would be given them.
pub(super) fn shell_line(words: &[String]) -> String {
    words
        .iter()
        .map(|word| shell_word(word))
        .collect::<Vec<_>>()
        .join(" ")
}

fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Words on one line, for people: what would break the line or hide in it is written out.
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

/// The beginning of a text, with a note if that is not all.
pub(super) fn truncate(text: &str, most_bytes: usize) -> String {
    if text.len() <= most_bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most_bytes);
    format!(
        "{}\n\n[cut here: {} of {} bytes are shown]",
        &text[..end],
        end,
        text.len()
    )
}

/// The beginning of one line.
pub(super) fn truncate_line(line: &str, most_chars: usize) -> String {
    if line.chars().count() <= most_chars {
        return line.to_owned();
    }
    line.chars()
        .take(most_chars.saturating_sub(1))
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides_in_what_is_shown() {
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
    fn a_model_reads_what_people_see() {
        assert_eq!(
            strip_hidden("a\u{e0041}\u{200b}b\u{1b}c\n\u{200d}d"),
            "abc\n\u{200d}d"
        );
    }

    #[test]
    fn words_keep_their_borders() {
        let words = ["a b", "it's", "", "$(x)", "plain-1.txt"].map(str::to_owned);
        assert_eq!(shell_line(&words), r"'a b' 'it'\''s' '' '$(x)' plain-1.txt");
        assert_eq!(
            display_line(&["a\nAllowed by the user".to_owned()]),
            r#""a\nAllowed by the user""#
        );
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(
            truncate("äöü", 3),
            "ä\n\n[cut here: 2 of 6 bytes are shown]"
        );
        assert_eq!(truncate_line("abcdef", 4), "abc…");
        assert_eq!(truncate_line("abcd", 4), "abcd");
    }
}
