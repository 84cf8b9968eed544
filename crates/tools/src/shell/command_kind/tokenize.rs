//! Splits a simple command line into words as the shell does.

use lango_text::sanitize::is_hidden;

/// Characters that start another command or an expansion.
const SHELL_METACHARACTERS: [char; 13] = [
    ';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '\\', '!',
];
const GLOB_CHARACTERS: [char; 3] = ['*', '?', '['];

/// Returns the words of a line, or `None` if it has other syntax. A word must not start with a
/// glob, because a file name can look like an option.
pub fn tokenize(line: &str) -> Option<Vec<String>> {
    if line.contains(SHELL_METACHARACTERS) || line.contains('\n') || line.chars().any(is_hidden) {
        return None;
    }
    let mut words = Vec::new();
    let mut rest = line.trim_start_matches([' ', '\t']);
    while !rest.is_empty() {
        let (word, after) = next_word(rest)?;
        words.push(word);
        rest = after.trim_start_matches([' ', '\t']);
    }
    Some(words)
}

fn next_word(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, ' ' | '\t') => return Some((word, &text[at..])),
            // A comment: the rest is not part of the command.
            (None, '#') if word.is_empty() => return None,
            (None, '\'' | '"') => quote = Some(c),
            (None, c)
                if GLOB_CHARACTERS.contains(&c) && (word.is_empty() || word.starts_with('-')) =>
            {
                return None;
            }
            (Some(open), c) if c == open => quote = None,
            (_, c) => word.push(c),
        }
    }
    quote.is_none().then_some((word, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_lines_as_the_shell_does() {
        for (line, expected) in [
            ("a  b\tc", Some(vec!["a", "b", "c"])),
            ("a 'b c' \"d e\"f", Some(vec!["a", "b c", "d ef"])),
            ("a '' b", Some(vec!["a", "", "b"])),
            ("a src/*.rs '*'", Some(vec!["a", "src/*.rs", "*"])),
            ("a *", None),
            ("a ''*", None),
            ("a [-]x", None),
            ("a -*", None),
            ("a 'b", None),
            ("a # b", None),
            ("a $b", None),
        ] {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(tokenize(line), expected, "{line}");
        }
    }
}
