//! Patterns of rules and grants: text with `*` wildcards.

/// The text that a `*` matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wildcard {
    Anything,
    /// Anything but characters that chain commands and `..`, which leaves a folder.
    Plain,
}

impl Wildcard {
    fn accepts(self, text: &str) -> bool {
        const CHAINING_CHARS: [char; 14] = [
            ';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '\\', '\n', '\r',
        ];
        self == Self::Anything || !(text.contains(CHAINING_CHARS) || text.contains(".."))
    }
}

/// Returns true if the pattern matches the whole text. Each piece between two wildcards matches at its
/// first occurrence.
pub fn matches(pattern: &str, text: &str, wildcard: Wildcard) -> bool {
    // `git *` also matches `git` alone.
    if pattern.strip_suffix(" *") == Some(text) {
        return true;
    }
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let tail = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some((skipped, rest)) = text.split_once(piece) else {
            return false;
        };
        if !wildcard.accepts(skipped) {
            return false;
        }
        text = rest;
    }
    text.strip_suffix(tail)
        .is_some_and(|skipped| wildcard.accepts(skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_wildcard_matches_no_chained_command_and_no_other_folder() {
        for chained in [
            "git a;b",
            "git a&&b",
            "git a|b",
            "git $(b)",
            "git `b`",
            "git a\nb",
            "git a > b",
            "git ../x",
        ] {
            assert!(!matches("git *", chained, Wildcard::Plain), "{chained}");
            assert!(matches("git *", chained, Wildcard::Anything), "{chained}");
        }
    }

    #[test]
    fn wildcards_match_anywhere() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a*a", "a", false),
            ("**", "x", true),
            ("git *", "git", true),
            ("git *", "gitk", false),
        ] {
            assert_eq!(
                matches(pattern, text, Wildcard::Plain),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
