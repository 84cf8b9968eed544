//! Observing without a language model: sentences of the user's own that say something to remember.

use lango_domain::memory::{Kind, NewMemory, Note, Priority, MemorySpeaker};
use lango_domain::text::one_line;
use unicode_normalization::UnicodeNormalization;

use super::rule_phrases::{FILLERS, KEEP_IN_MIND, NOT_TELLING, TELLING, TELLING_UNSPACED, rows};
use super::transcript::Utterance;
use crate::requests::asks_to_forget;

/// A longer sentence says more than one thing, and rules cannot tell which.
const LONGEST_SENTENCE: usize = 300;
/// From one message, so many at most: somebody pasted something.
const MOST_OF_ONE: usize = 8;

/// What the user said that is worth remembering, each sentence with the event that it stands in.
pub fn observations(heard: &[Utterance]) -> Vec<NewMemory> {
    let own = heard.iter().filter(|utterance| utterance.words == MemorySpeaker::User);
    own.flat_map(|utterance| {
        let told = sentences(first_paragraph(&utterance.text)).filter_map(|sentence| {
            let (kind, text) = telling(sentence)?;
            let (words, label) = (MemorySpeaker::User, utterance.label.clone());
            let note = Note { text, kind, priority: priority_of(kind), words, label, at: utterance.at };
            Some(NewMemory { note, turn: utterance.turn.clone(), sources: vec![utterance.seq] })
        });
        told.take(MOST_OF_ONE).collect::<Vec<_>>()
    })
    .collect()
}

/// What kind of thing a sentence tells that somebody asked to remember.
pub fn kind_of(text: &str) -> Kind {
    let words = plain_words(text);
    kind_told(&words, text).unwrap_or(Kind::Fact)
}

pub fn priority_of(kind: Kind) -> Priority {
    match kind {
        Kind::Decision | Kind::Promise | Kind::Name => Priority::High,
        Kind::Fact | Kind::Preference | Kind::Date => Priority::Medium,
        Kind::Event => Priority::Low,
    }
}

/// Whether the user said these very words.
pub fn is_own(text: &str, said: &str) -> bool {
    let said = plain_words(said);
    let words = plain_words(text);
    let own = words.iter().filter(|word| said.contains(word)).count();
    own * 10 >= words.len() * 9 && !words.is_empty()
}

/// Whether the user said this word for word, in one go and without taking it back.
pub fn is_quoted(text: &str, said: &str) -> bool {
    let (said, words) = (plain_words(said), plain_words(text));
    let is_refusal = |word: &String| ["not", "never", "dont", "no", "without"].contains(&word.as_str());
    let starts = said.windows(words.len().max(1)).enumerate().filter(|(_, part)| *part == words);
    starts.into_iter().any(|(at, _)| !said[at.saturating_sub(6)..at].iter().any(is_refusal))
}

/// Small letters without accents and apostrophes, in a row.
pub fn plain_words(text: &str) -> Vec<String> {
    let folded: String = text
        .nfkd()
        .filter(|c| !matches!(c, '\'' | '’' | '\u{300}'..='\u{36f}'))
        .flat_map(char::to_lowercase)
        .nfc()
        .collect::<String>()
        .replace('ß', "ss");
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
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

fn telling(sentence: &str) -> Option<(Kind, String)> {
    let is_question = sentence.ends_with(['?', '？']);
    if is_question || sentence.chars().count() > LONGEST_SENTENCE {
        return None;
    }
    let words = plain_words(sentence);
    if asks_to_forget(sentence) {
        return None;
    }
    let asked = rows(KEEP_IN_MIND).find(|asked| begins_with(&words, asked));
    let kind = kind_told(&words, sentence)
        .or_else(|| asked.filter(|asked| *asked != "remember").map(|_| Kind::Fact))?;
    let text = asked.map_or(sentence, |asked| without_beginning(sentence, asked.split(' ').count()));
    let text = one_line(text.trim_end_matches(['.', '。', '!', '！', ';']));
    (!text.is_empty()).then_some((kind, text))
}

fn begins_with(words: &[String], row: &str) -> bool {
    let mut words = words.iter();
    row.split(' ').all(|word| words.next().is_some_and(|said| said == word))
}

/// The sentence behind so many words.
fn without_beginning(sentence: &str, words: usize) -> &str {
    let mut rest = sentence.trim_start();
    for _ in 0..words {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest = rest[end..].trim_start();
    }
    rest
}

fn kind_told(words: &[String], text: &str) -> Option<Kind> {
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| rows(FILLERS).all(|filler| filler != *word)).collect();
    let holds = |row: &str| {
        let row: Vec<&str> = row.split(' ').collect();
        words.windows(row.len()).any(|said| {
            said.iter().zip(&row).enumerate().all(|(at, (said, word))| {
                // "my sister" stands for "my sister's", "mein lieblings" for "mein Lieblingsgetränk".
                let is_last = at + 1 == row.len();
                said == word
                    || (is_last
                        && said.strip_prefix(word).is_some_and(|end| end == "s" || *word == "lieblings"))
            })
        })
    };
    if rows(NOT_TELLING).any(holds) {
        return None;
    }
    let spaced = TELLING.iter().find(|(_, telling)| rows(telling).any(holds));
    let unspaced =
        || TELLING_UNSPACED.iter().find(|(_, telling)| rows(telling).any(|row| text.contains(row)));
    spaced.map(|(kind, _)| *kind).or_else(|| unspaced().map(|(kind, _)| *kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<(Kind, String)> {
        sentences(text).find_map(telling)
    }

    /// B101
    #[test]
    fn only_what_was_said_in_one_go_is_quoted() {
        let said = "Read notes.txt. For a deploy do not run the script release.sh, and always ask a person.";
        assert!(is_quoted("Always ask a person", said));
        for other in
            ["always run the script release.sh and do not ask a person", "run the script release.sh", ""]
        {
            assert!(!is_quoted(other, said), "{other}");
        }
    }

    #[test]
    fn sentences_that_say_something_lasting_are_kept() {
        for (text, kind, kept) in [
            ("Remember that I prefer tea.", Kind::Preference, "I prefer tea"),
            (
                "Hi! I really like green tea, by the way. What's new?",
                Kind::Preference,
                "I really like green tea, by the way",
            ),
            ("My name is Ada Lovelace", Kind::Name, "My name is Ada Lovelace"),
            ("So we've decided to use SQLite.", Kind::Decision, "So we've decided to use SQLite"),
            ("I'll send the invoice on 2026-05-04!", Kind::Promise, "I'll send the invoice on 2026-05-04"),
            ("my birthday is on 5 May", Kind::Date, "my birthday is on 5 May"),
            ("I am allergic to nuts; mind that", Kind::Fact, "I am allergic to nuts"),
            ("Keep in mind that the server has 64 GB.", Kind::Fact, "the server has 64 GB"),
            ("Ich mag Tee. Danke!", Kind::Preference, "Ich mag Tee"),
            ("Mein Lieblingsgetränk ist Tee", Kind::Preference, "Mein Lieblingsgetränk ist Tee"),
            ("Ich heiße Jürgen", Kind::Name, "Ich heiße Jürgen"),
            ("저는 녹차를 좋아해요", Kind::Preference, "저는 녹차를 좋아해요"),
            ("お茶が好きです。", Kind::Preference, "お茶が好きです"),
            ("je m’appelle Zoé", Kind::Name, "je m’appelle Zoé"),
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
        for text in crate::requests::NOT_TO_KEEP {
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
