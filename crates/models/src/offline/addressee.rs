//! A request that begins with the name of who is meant: "parrot: say hello", "@parrot hello", "ask the parrot to sing".
//! Whoever is called by name gets it, whatever the words behind the name are about.

/// Words before a name.
const VERBS: [&str; 2] = ["ask", "tell"];
const DETERMINERS: [&str; 2] = ["the", "our"];
/// What stands between the name and the task, and belongs to neither.
const TASK_PREFIXES: [&str; 1] = ["to"];

/// Whose name a request begins with, and what it is told.
pub fn parse_addressee<'a, 'n>(
    request: &'a str,
    names: impl Iterator<Item = &'n str>,
) -> Option<(&'n str, &'a str)> {
    let request = request.trim();
    let (rest, is_told) = match strip_any_word(request, &VERBS) {
        Some(rest) => (strip_any_word(rest, &DETERMINERS).unwrap_or(rest), true),
        None => (request, false),
    };
    let rest = strip_any_word(rest, &["please"]).unwrap_or(rest);
    let (rest, is_called) = rest
        .strip_prefix('@')
        .map_or((rest, false), |rest| (rest, true));
    // The longest, so that "night-clerk" is not taken for "night".
    let found = names
        .filter_map(|name| Some((name, strip_word(rest, name)?)))
        .max_by_key(|(name, _)| name.len());
    let (name, behind) = found?;
    let task = behind.strip_prefix([':', ',']).map(str::trim_start);
    if task.is_none() && !is_told && !is_called {
        return None;
    }
    let task = task.unwrap_or_else(|| {
        let behind = behind.trim_start();
        strip_any_word(behind, &TASK_PREFIXES).unwrap_or(behind)
    });
    (!task.is_empty()).then_some((name, task))
}

fn strip_any_word<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let rest = words.iter().find_map(|word| strip_word(text, word))?;
    rest.starts_with(char::is_whitespace)
        .then(|| rest.trim_start())
}

/// What follows a word that a text begins with; the word must end there.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text
        .get(word.len()..)
        .filter(|_| text[..word.len()].eq_ignore_ascii_case(word))?;
    let goes_on = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    (!rest.starts_with(goes_on)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::parse_addressee;

    const TEAM: [&str; 3] = ["operator", "night", "night-clerk"];

    #[test]
    fn whoever_is_called_by_name_is_meant() {
        for (request, name, task) in [
            ("operator: hello", "operator", "hello"),
            ("Operator, what is new?", "operator", "what is new?"),
            ("@operator hello there", "operator", "hello there"),
            ("ask the operator to sing", "operator", "sing"),
            ("Tell night-clerk: good night", "night-clerk", "good night"),
            ("ask night who is there", "night", "who is there"),
            (
                "tell operator: ask night: hello",
                "operator",
                "ask night: hello",
            ),
        ] {
            assert_eq!(
                parse_addressee(request, TEAM.into_iter()),
                Some((name, task)),
                "{request}"
            );
        }
    }

    #[test]
    fn a_name_somewhere_in_a_request_calls_nobody() {
        for request in [
            "operator",
            "operator:",
            "operators: a history",
            "operator overloading in Rust",
            "what does the operator do?",
            "night falls",
            "ask nobody: hello",
            "",
            "ask",
            "@",
            "é: operator",
        ] {
            assert_eq!(
                parse_addressee(request, TEAM.into_iter()),
                None,
                "{request}"
            );
        }
    }
}
