//! Observing without a language model: sentences of the user's own that say something to remember.

use lango_domain::memory::{MemoryKind, MemoryNote, MemoryPriority, MemorySpeaker, NewMemory};
use lango_domain::text::one_line;
use unicode_normalization::UnicodeNormalization;

use super::rule_phrases::{
    EXCLUDED_PHRASES, FILLERS, KIND_PHRASES, KIND_PHRASES_UNSPACED, REMEMBER_PREFIXES,
    split_phrases,
};
use super::transcript::Utterance;
use crate::request_detection::is_forget_request;

/// A longer sentence says more than one thing, and rules cannot tell which.
const MAX_SENTENCE_LEN: usize = 300;
/// From one message, so many at most: somebody pasted something.
const MAX_OF_ONE: usize = 8;

/// What the user said that is worth remembering, each sentence with the event that it stands in.
pub fn find_observations(heard: &[Utterance]) -> Vec<NewMemory> {
    let own = heard
        .iter()
        .filter(|utterance| utterance.spoken_by == MemorySpeaker::User);
    own.flat_map(|utterance| {
        let told = sentences(first_paragraph(&utterance.text)).filter_map(|sentence| {
            let (kind, text) = parse_statement(sentence)?;
            let (words, label) = (MemorySpeaker::User, utterance.label.clone());
            let note = MemoryNote {
                text,
                kind,
                priority: default_priority(kind),
                speaker: words,
                label,
                at: utterance.at,
            };
            Some(NewMemory {
                note,
                turn: utterance.turn.clone(),
                sources: vec![utterance.seq],
            })
        });
        told.take(MAX_OF_ONE).collect::<Vec<_>>()
    })
    .collect()
}

/// What kind of thing a sentence tells that somebody asked to remember.
pub fn detect_kind(text: &str) -> MemoryKind {
    let words = normalize_words(text);
    find_kind(&words, text).unwrap_or(MemoryKind::Fact)
}

pub fn default_priority(kind: MemoryKind) -> MemoryPriority {
    match kind {
        MemoryKind::Decision | MemoryKind::Promise | MemoryKind::Name => MemoryPriority::High,
        MemoryKind::Fact | MemoryKind::Preference | MemoryKind::Date => MemoryPriority::Medium,
        MemoryKind::Event => MemoryPriority::Low,
    }
}

/// Whether the user said these very words.
pub fn is_user_wording(text: &str, said: &str) -> bool {
    let said = normalize_words(said);
    let words = normalize_words(text);
    let own = words.iter().filter(|word| said.contains(word)).count();
    own * 10 >= words.len() * 9 && !words.is_empty()
}

/// Whether the user said this word for word, in one go and without taking it back.
pub fn is_quoted(text: &str, said: &str) -> bool {
    let (said, words) = (normalize_words(said), normalize_words(text));
    let is_refusal =
        |word: &String| ["not", "never", "dont", "no", "without"].contains(&word.as_str());
    let starts = said
        .windows(words.len().max(1))
        .enumerate()
        .filter(|(_, part)| *part == words);
    starts
        .into_iter()
        .any(|(at, _)| !said[at.saturating_sub(6)..at].iter().any(is_refusal))
}

/// Small letters without accents and apostrophes, in a row.
pub fn normalize_words(text: &str) -> Vec<String> {
    let folded: String = text
        .nfkd()
        .filter(|c| !matches!(c, '\'' | '’' | '\u{300}'..='\u{36f}'))
        .flat_map(char::to_lowercase)
        .nfc()
        .collect::<String>()
        .replace('ß', "ss");
    folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What was pasted or piped in behind the first paragraph is data, whatever it says.
fn first_paragraph(text: &str) -> &str {
    text.trim().split("\n\n").next().unwrap_or_default()
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = sentence_end(rest);
        let (sentence, behind) = rest.split_at(end);
        rest = behind;
        Some(sentence.trim())
    })
    .filter(|sentence| !sentence.is_empty())
}

/// Behind a full stop with a space behind it, an exclamation mark, a question mark or the end of a line.
fn sentence_end(text: &str) -> usize {
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let ends = match c {
            '!' | '?' | '。' | '！' | '？' | '\n' | ';' => true,
            '.' => letters.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            return at + c.len_utf8();
        }
    }
    text.len()
}

fn parse_statement(sentence: &str) -> Option<(MemoryKind, String)> {
    let is_question = sentence.ends_with(['?', '？']);
    if is_question || sentence.chars().count() > MAX_SENTENCE_LEN {
        return None;
    }
    let words = normalize_words(sentence);
    if is_forget_request(sentence) {
        return None;
    }
    let asked = split_phrases(REMEMBER_PREFIXES).find(|asked| starts_with_phrase(&words, asked));
    let kind = find_kind(&words, sentence).or_else(|| {
        asked
            .filter(|asked| *asked != "remember")
            .map(|_| MemoryKind::Fact)
    })?;
    let text = asked.map_or(sentence, |asked| {
        skip_words(sentence, asked.split(' ').count())
    });
    let text = one_line(text.trim_end_matches(['.', '。', '!', '！', ';']));
    (!text.is_empty()).then_some((kind, text))
}

fn starts_with_phrase(words: &[String], row: &str) -> bool {
    let mut words = words.iter();
    row.split(' ')
        .all(|word| words.next().is_some_and(|said| said == word))
}

/// The sentence behind so many words.
fn skip_words(sentence: &str, words: usize) -> &str {
    let mut rest = sentence.trim_start();
    for _ in 0..words {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest = rest[end..].trim_start();
    }
    rest
}

fn find_kind(words: &[String], text: &str) -> Option<MemoryKind> {
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| split_phrases(FILLERS).all(|filler| filler != *word))
        .collect();
    let holds = |row: &str| {
        let row: Vec<&str> = row.split(' ').collect();
        words.windows(row.len()).any(|said| {
            said.iter().zip(&row).enumerate().all(|(at, (said, word))| {
                // "my sister" stands for "my sister's", "mein lieblings" for "mein Lieblingsgetränk".
                let is_last = at + 1 == row.len();
                said == word
                    || (is_last
                        && said
                            .strip_prefix(word)
                            .is_some_and(|end| end == "s" || *word == "lieblings"))
            })
        })
    };
    if split_phrases(EXCLUDED_PHRASES).any(holds) {
        return None;
    }
    let spaced = KIND_PHRASES
        .iter()
        .find(|(_, telling)| split_phrases(telling).any(holds));
    let unspaced = || {
        KIND_PHRASES_UNSPACED
            .iter()
            .find(|(_, telling)| split_phrases(telling).any(|row| text.contains(row)))
    };
    spaced
        .map(|(kind, _)| *kind)
        .or_else(|| unspaced().map(|(kind, _)| *kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<(MemoryKind, String)> {
        sentences(text).find_map(parse_statement)
    }

    /// B101
    #[test]
    fn only_what_was_said_in_one_go_is_quoted() {
        let said = "Read notes.txt. For a deploy do not run the script release.sh, and always ask a person.";
        assert!(is_quoted("Always ask a person", said));
        for other in [
            "always run the script release.sh and do not ask a person",
            "run the script release.sh",
            "",
        ] {
            assert!(!is_quoted(other, said), "{other}");
        }
    }

    #[test]
    fn sentences_that_say_something_lasting_are_kept() {
        for (text, kind, kept) in [
            (
                "Remember that I prefer tea.",
                MemoryKind::Preference,
                "I prefer tea",
            ),
            (
                "Hi! I really like green tea, by the way. What's new?",
                MemoryKind::Preference,
                "I really like green tea, by the way",
            ),
            (
                "My name is Ada Lovelace",
                MemoryKind::Name,
                "My name is Ada Lovelace",
            ),
            (
                "So we've decided to use SQLite.",
                MemoryKind::Decision,
                "So we've decided to use SQLite",
            ),
            (
                "I'll send the invoice on 2026-05-04!",
                MemoryKind::Promise,
                "I'll send the invoice on 2026-05-04",
            ),
            (
                "my birthday is on 5 May",
                MemoryKind::Date,
                "my birthday is on 5 May",
            ),
            (
                "I am allergic to nuts; mind that",
                MemoryKind::Fact,
                "I am allergic to nuts",
            ),
            (
                "Keep in mind that the server has 64 GB.",
                MemoryKind::Fact,
                "the server has 64 GB",
            ),
            ("Ich mag Tee. Danke!", MemoryKind::Preference, "Ich mag Tee"),
            (
                "Mein Lieblingsgetränk ist Tee",
                MemoryKind::Preference,
                "Mein Lieblingsgetränk ist Tee",
            ),
            ("Ich heiße Jürgen", MemoryKind::Name, "Ich heiße Jürgen"),
            (
                "저는 녹차를 좋아해요",
                MemoryKind::Preference,
                "저는 녹차를 좋아해요",
            ),
            ("お茶が好きです。", MemoryKind::Preference, "お茶が好きです"),
            ("je m’appelle Zoé", MemoryKind::Name, "je m’appelle Zoé"),
        ] {
            assert_eq!(told(text), Some((kind, kept.to_owned())), "{text}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for text in [
            "",
            "   ",
            "\u{0}\u{7}",
            "hello",
            "read notes.txt",
            "do I like tea?",
            "What do I prefer?",
            "I like it!",
            "I'd like you to run the tests",
            "I would like a summary",
            "if I prefer tea, say so",
            "forget that I prefer tea",
            "please forget that I prefer tea",
            "could you forget that I prefer tea",
            "remember to buy milk",
            "the build is broken",
            "my code is red",
            "مرحبا كيف حالك",
            "🙂🙂",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
        let long = format!("I like {}", "tea ".repeat(200));
        assert_eq!(told(&long), None);
    }

    /// B106
    #[test]
    fn what_is_not_to_be_kept_is_not_learned() {
        for text in crate::request_detection::FORGET_REQUESTS {
            assert_eq!(told(text), None, "{text}");
        }
        let kept = told("I love tea. Don't forget that my cat is called Xylo.");
        assert_eq!(kept.map(|(_, text)| text).as_deref(), Some("I love tea"));
    }

    #[test]
    fn a_full_stop_within_a_word_ends_nothing() {
        let all: Vec<&str> = sentences("I live in St.Gallen at v1.2. Really!\nYes").collect();
        assert_eq!(all, ["I live in St.Gallen at v1.2.", "Really!", "Yes"]);
    }
}
