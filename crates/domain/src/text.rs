//! Text from files and from outside, made fit to be shown.

/// Without characters that move the cursor, change colours or turn the reading direction; line ends and tabs stay.
pub fn visible(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !commands_a_terminal(*c)).collect()
}

/// Whether a terminal obeys the character instead of showing it.
pub fn commands_a_terminal(c: char) -> bool {
    c.is_control() || turns_direction(c)
}

/// The same on one line.
pub fn one_line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_lose_their_power() {
        assert_eq!(visible("a\u{1b}]0;x\u{7}b\u{202e}c\nd\te\0"), "a]0;xbc\nd\te");
        assert_eq!(one_line(" a\r\n b\u{1b}[2J "), "a b[2J");
    }
}
