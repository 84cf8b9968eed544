//! Sanitizes text from files and from outside for display.

/// Strips characters that move the cursor, change colors or change the reading direction. Keeps line
/// ends and tabs.
pub fn strip_control_chars(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !is_terminal_control(*c))
        .collect()
}

/// Returns true if a terminal interprets the character instead of displaying it.
pub fn is_terminal_control(c: char) -> bool {
    c.is_control() || is_bidi_control(c)
}

/// Strips control characters and joins all lines into one.
pub fn one_line(text: &str) -> String {
    let spaced: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect();
    strip_control_chars(&spaced)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the text on one line, truncated to `max_chars` characters.
pub fn truncated_line(text: &str, max_chars: usize) -> String {
    let mut line = one_line(text);
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Escapes every character that is invisible, looks like a space, or changes how others are read, as in
/// `\u{202e}`, so that an approval question hides nothing. Keeps line ends, tabs, and variation
/// selectors of emoji.
pub fn escape_hidden_chars(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut previous = None;
    for c in text.replace("\r\n", "\n").chars() {
        let is_selector =
            matches!(c, '\u{fe0e}' | '\u{fe0f}') && previous.is_some_and(has_emoji_variant);
        if (is_hidden(c) && !is_selector) || is_space_lookalike(c) {
            escaped.extend(c.escape_unicode());
        } else {
            escaped.push(c);
        }
        previous = Some(c);
    }
    escaped
}

/// Returns true if the character is invisible to a reader, but not to a program or a model. Line ends
/// and tabs count as visible.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Soft hyphen, joiners, fillers, direction marks, separators, operators, selectors, annotations, notes, tags.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

/// Returns true if the character looks like a space, but is part of a word for a shell. The wide space
/// of East Asian text is recognizable by its width.
fn is_space_lookalike(c: char) -> bool {
    (c.is_whitespace() && !matches!(c, ' ' | '\n' | '\t' | '\u{3000}')) || c == '\u{2800}'
}

/// Returns true for symbols that can be displayed as text or as a picture.
fn has_emoji_variant(c: char) -> bool {
    matches!(c, '©' | '®' | '\u{203c}'..='\u{27bf}' | '\u{2900}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B102
    #[test]
    fn hidden_characters_are_escaped() {
        for (text, expected) in [
            ("rm \u{202e}txt.exe", r"rm \u{202e}txt.exe"),
            (
                "a\u{200b}b\u{2060}c\u{feff}d\u{ad}e",
                r"a\u{200b}b\u{2060}c\u{feff}d\u{ad}e",
            ),
            ("\u{1b}[2J\u{9b}1m\0\u{7f}", r"\u{1b}[2J\u{9b}1m\u{0}\u{7f}"),
            ("shown\roverwritten", r"shown\u{d}overwritten"),
            (
                "x\u{e0041}\u{e007f}\u{e0100}",
                r"x\u{e0041}\u{e007f}\u{e0100}",
            ),
            ("a\u{fe0f}b", r"a\u{fe0f}b"),
            ("\u{2764}\u{fe0f}\u{fe0f}", "\u{2764}\u{fe0f}\\u{fe0f}"),
            (
                "rm -rf\u{a0}/\u{2800}\u{2003}x",
                r"rm -rf\u{a0}/\u{2800}\u{2003}x",
            ),
            ("one\u{2028}two\u{85}three", r"one\u{2028}two\u{85}three"),
            ("👩\u{200d}🚀", r"👩\u{200d}🚀"),
        ] {
            assert_eq!(escape_hidden_chars(text), expected);
        }
        let unchanged = "grüße\tשלום مرحبا\r\n日本語\u{3000}हिन्दी ❤\u{fe0f} e\u{301}\n";
        assert_eq!(escape_hidden_chars(unchanged), unchanged.replace('\r', ""));
    }

    #[test]
    fn control_characters_are_stripped() {
        assert_eq!(
            strip_control_chars("a\u{1b}]0;x\u{7}b\u{202e}c\nd\te\0"),
            "a]0;xbc\nd\te"
        );
        assert_eq!(one_line(" a\r\n b\u{1b}[2J "), "a b[2J");
        assert_eq!(truncated_line("  a\r\n\tb  c\u{7}", 10), "a b c");
        assert_eq!(truncated_line("abcdef", 3), "abc…");
        assert_eq!(truncated_line("äöü", 3), "äöü");
    }
}
