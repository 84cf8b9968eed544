//! Replies to greetings, thanks and questions about Lango. All other requests without a tool get
//! the reply that they need a language model.

use std::sync::LazyLock;

use super::reply::OfflineReply;
use super::words::{RequestWord, is_unspaced, normalize, split_words, stem, truncate};

/// Maximum number of further words in a greeting, and of further characters in scripts without
/// spaces.
const MAX_EXTRA_WORDS: usize = 2;
const MAX_EXTRA_CHARS: usize = 6;
/// Maximum number of words in a request that starts with thanks.
const MAX_THANKS_LEN: usize = 9;
/// The category of all other requests.
const OTHER: &str = "other";

struct SmallTalkLine {
    category: &'static str,
    language: &'static str,
    triggers: Vec<Vec<String>>,
    reply: &'static str,
}

static LINES: LazyLock<Vec<SmallTalkLine>> = LazyLock::new(|| {
    include_str!("small_talk.tsv")
        .lines()
        .filter_map(parse_line)
        .collect()
});

fn parse_line(text: &'static str) -> Option<SmallTalkLine> {
    let mut fields = text.split('\t');
    let (category, language, triggers, reply) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    let triggers = triggers.split(", ").filter(|trigger| !trigger.is_empty());
    let triggers = triggers.map(|trigger| {
        trigger
            .split_whitespace()
            .map(|word| stem(&normalize(word)))
            .collect()
    });
    Some(SmallTalkLine {
        category,
        language,
        triggers: triggers.collect(),
        reply,
    })
}

/// Returns the answer to a request that needs no tool, in its language.
pub fn answer(request: &str, agents: &str) -> OfflineReply {
    let words = split_words(&truncate(request));
    let known = LINES.iter().find(|line| {
        line.category != OTHER
            && line
                .triggers
                .iter()
                .any(|trigger| line.matches_trigger(&words, trigger))
    });
    let line = known.or_else(|| {
        let language = detect_language(&words);
        LINES
            .iter()
            .find(|line| line.category == OTHER && line.language == language)
    });
    let text = line.map_or(String::new(), |line| line.reply.replace("{agents}", agents));
    match known {
        Some(_) => OfflineReply::Text(text),
        None => OfflineReply::NotDone(text),
    }
}

impl SmallTalkLine {
    /// Returns true if the trigger is the main content of the request, not just one of its words.
    fn matches_trigger(&self, words: &[RequestWord], trigger: &[String]) -> bool {
        if trigger.iter().any(|word| word.chars().any(is_unspaced)) {
            let all: String = words.iter().map(|word| word.normalized.as_str()).collect();
            let trigger = trigger.concat();
            return all.contains(&trigger)
                && all.chars().count() <= trigger.chars().count() + MAX_EXTRA_CHARS;
        }
        let at = words.windows(trigger.len()).position(|window| {
            window
                .iter()
                .zip(trigger)
                .all(|(word, known)| word.stem == *known)
        });
        let is_thanks = at == Some(0) && self.category == "thanks" && words.len() <= MAX_THANKS_LEN;
        at.is_some() && (is_thanks || words.len() <= trigger.len() + MAX_EXTRA_WORDS)
    }
}

/// Detects the language by script, else by common words.
fn detect_language(words: &[RequestWord]) -> &'static str {
    let mut chars = words.iter().flat_map(|word| word.normalized.chars());
    if chars
        .clone()
        .any(|c| ('\u{ac00}'..='\u{d7af}').contains(&c))
    {
        return "ko";
    }
    if chars.any(is_unspaced) {
        return "ja";
    }
    let count = |line: &&SmallTalkLine| {
        words
            .iter()
            .filter(|word| {
                line.triggers
                    .iter()
                    .any(|trigger| *trigger == [word.stem.clone()])
            })
            .count()
    };
    let best = LINES
        .iter()
        .filter(|line| line.category == OTHER)
        .max_by_key(count);
    best.filter(|line| count(line) * 4 > words.len())
        .map_or("en", |line| line.language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_talk_is_answered_in_its_language() {
        for (request, prefix) in [
            ("hello", "Hello!"),
            ("thanks!", "You are welcome."),
            ("Danke, das wars!", "Gern geschehen."),
            ("안녕하세요", "안녕하세요!"),
            ("ありがとうございます", "どういたしまして"),
            ("Bonjour", "Bonjour !"),
            ("who are you?", "I am Lango"),
        ] {
            let OfflineReply::Text(answer) = answer(request, "planner") else {
                panic!("{request}");
            };
            assert!(answer.starts_with(prefix), "{request}: {answer}");
        }
    }

    #[test]
    fn a_request_that_needs_a_language_model_is_not_done() {
        for (request, prefix) in [
            ("warum ist der Himmel blau", "Dafür braucht es"),
            ("pourquoi le ciel est bleu", "Cela ne demande pas"),
            ("why is the sky blue", "That needs no tool"),
            ("空はなぜ青いの", "道具は"),
        ] {
            let OfflineReply::NotDone(answer) = answer(request, "planner") else {
                panic!("{request}");
            };
            assert!(answer.starts_with(prefix), "{request}: {answer}");
        }
    }
}
