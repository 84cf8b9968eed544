//! Makes untrusted text safe to print.

/// Removes control characters (an escape sequence can rewrite a terminal) and bidirectional
/// controls, which can hide text. Line ends and tabs stay.
pub fn strip_control_chars(text: &str) -> String {
    let is_kept = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || is_bidi_control(*c));
    text.chars().filter(is_kept).collect()
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text on one line with single spaces, truncated to `max_chars` characters.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let spaced: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect();
    let plain = strip_control_chars(&spaced);
    let mut line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_control_characters_and_truncates() {
        assert_eq!(
            strip_control_chars("a\u{1b}[31mb\u{0}\tc\n\u{202e}d"),
            "a[31mb\tc\nd"
        );
        assert_eq!(one_line("  a\r\n\tb  c\u{7}", 10), "a b c");
        assert_eq!(one_line("abcdef", 3), "abc…");
        assert_eq!(one_line("äöü", 3), "äöü");
    }
}
