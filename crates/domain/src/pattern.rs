//! Patterns of rules and permissions: text with `*` in it.

/// What a `*` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wildcard {
    Anything,
    /// Not for what turns one allowed command into another, or leaves a folder.
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

/// The pieces between the stars in order: the first at the beginning, the last at the end, each other at the first place
/// where it stands.
pub fn matches(pattern: &str, text: &str, star: Wildcard) -> bool {
    // `git *` is also `git` alone.
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
        let Some((taken, behind)) = text.split_once(piece) else {
            return false;
        };
        if !star.accepts(taken) {
            return false;
        }
        text = behind;
    }
    text.strip_suffix(tail)
        .is_some_and(|taken| star.accepts(taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_that_allows_does_not_stand_for_another_command_or_another_folder() {
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
    fn stars_stand_anywhere() {
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
