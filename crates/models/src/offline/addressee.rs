//! Requests that start with an agent's name: "parrot: say hello", "@parrot hello", "ask the parrot
//! to sing". The named agent gets the request, whatever the rest is about.

/// Verbs that may precede a name.
const VERBS: [&str; 2] = ["ask", "tell"];
const DETERMINERS: [&str; 2] = ["the", "our"];
/// Words between the name and the task that belong to neither.
const TASK_PREFIXES: [&str; 1] = ["to"];

/// Returns the name that a request starts with, and the task for that agent.
pub fn parse_addressee<'a, 'n>(
    request: &'a str,
    names: impl Iterator<Item = &'n str>,
) -> Option<(&'n str, &'a str)> {
    let request = request.trim();
    let (rest, has_verb) = match strip_any_word(request, &VERBS) {
        Some(rest) => (strip_any_word(rest, &DETERMINERS).unwrap_or(rest), true),
        None => (request, false),
    };
    let rest = strip_any_word(rest, &["please"]).unwrap_or(rest);
    let (rest, has_at_sign) = rest
        .strip_prefix('@')
        .map_or((rest, false), |rest| (rest, true));
    // The longest name wins, so that "night-clerk" is not mistaken for "night".
    let found = names
        .filter_map(|name| Some((name, strip_word(rest, name)?)))
        .max_by_key(|(name, _)| name.len());
    let (name, after_name) = found?;
    let task = after_name.strip_prefix([':', ',']).map(str::trim_start);
    if task.is_none() && !has_verb && !has_at_sign {
        return None;
    }
    let task = task.unwrap_or_else(|| {
        let after_name = after_name.trim_start();
        strip_any_word(after_name, &TASK_PREFIXES).unwrap_or(after_name)
    });
    (!task.is_empty()).then_some((name, task))
}

fn strip_any_word<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let rest = words.iter().find_map(|word| strip_word(text, word))?;
    rest.starts_with(char::is_whitespace)
        .then(|| rest.trim_start())
}

/// Returns the text after `word`, if `text` starts with that whole word.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text
        .get(word.len()..)
        .filter(|_| text[..word.len()].eq_ignore_ascii_case(word))?;
    let is_word_char = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    (!rest.starts_with(is_word_char)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::parse_addressee;

    const TEAM: [&str; 3] = ["operator", "night", "night-clerk"];

    #[test]
    fn named_agents_get_the_request() {
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
    fn names_inside_a_request_are_not_an_address() {
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
