//! What needs no tool and no understanding: greetings, thanks, who I am. Everything else is said to need a language model.

use std::sync::LazyLock;

use super::words::{RequestWord, is_unspaced, normalize, split_words, stem, truncate};

/// So many words may stand beside a greeting, and so many characters in scripts without spaces.
const MAX_EXTRA_WORDS: usize = 2;
const MAX_EXTRA_CHARS: usize = 6;
/// Thanks may go on for a while.
const MAX_THANKS_LEN: usize = 9;
/// The category of whatever is in no other.
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

/// The answer to a request that needs no tool, in its language.
pub fn answer(request: &str, agents: &str) -> String {
    let said = split_words(&truncate(request));
    let known = LINES.iter().find(|line| {
        line.category != OTHER
            && line
                .triggers
                .iter()
                .any(|trigger| line.matches_trigger(&said, trigger))
    });
    let line = known.or_else(|| {
        let language = detect_language(&said);
        LINES
            .iter()
            .find(|line| line.category == OTHER && line.language == language)
    });
    line.map_or(String::new(), |line| line.reply.replace("{agents}", agents))
}

impl SmallTalkLine {
    /// Whether the trigger is what the request says, and not a word of it.
    fn matches_trigger(&self, said: &[RequestWord], trigger: &[String]) -> bool {
        if trigger.iter().any(|word| word.chars().any(is_unspaced)) {
            let all: String = said.iter().map(|word| word.normalized.as_str()).collect();
            let trigger = trigger.concat();
            return all.contains(&trigger)
                && all.chars().count() <= trigger.chars().count() + MAX_EXTRA_CHARS;
        }
        let at = said.windows(trigger.len()).position(|window| {
            window
                .iter()
                .zip(trigger)
                .all(|(word, known)| word.stem == *known)
        });
        let begins = at == Some(0) && self.category == "thanks" && said.len() <= MAX_THANKS_LEN;
        at.is_some() && (begins || said.len() <= trigger.len() + MAX_EXTRA_WORDS)
    }
}

/// By script, else by the commonest words.
fn detect_language(said: &[RequestWord]) -> &'static str {
    let mut chars = said.iter().flat_map(|word| word.normalized.chars());
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
        said.iter()
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
    best.filter(|line| count(line) * 4 > said.len())
        .map_or("en", |line| line.language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_talk_is_answered_in_its_language() {
        for (request, beginning) in [
            ("hello", "Hello!"),
            ("thanks!", "You are welcome."),
            ("Danke, das wars!", "Gern geschehen."),
            ("안녕하세요", "안녕하세요!"),
            ("ありがとうございます", "どういたしまして"),
            ("Bonjour", "Bonjour !"),
            ("who are you?", "I am Lango"),
            ("warum ist der Himmel blau", "Dafür braucht es"),
            ("pourquoi le ciel est bleu", "Cela ne demande pas"),
            ("why is the sky blue", "That needs no tool"),
            ("空はなぜ青いの", "道具は"),
        ] {
            let answer = answer(request, "planner");
            assert!(answer.starts_with(beginning), "{request}: {answer}");
        }
    }
}
