//! Times in plain sentences: "tomorrow at 9", "in two hours", "every Monday at 8", in six languages.
//!
//! Each language has a table of words ([`Vocabulary`]); the grammar is the same for all. The language that
//! explains most words of the sentence wins.

mod clock_time;
mod day_time;
mod english;
mod french;
mod german;
mod italian;
mod portuguese;
mod reader;
mod spanish;
mod tokens;
mod vocabulary;

use jiff::Zoned;
use lango_domain::automation::ScheduleKind;

use reader::PhraseReader;
use tokens::tokenize;
use vocabulary::Vocabulary;

const LANGUAGES: [&Vocabulary; 6] = [
    &english::WORDS,
    &german::WORDS,
    &spanish::WORDS,
    &french::WORDS,
    &italian::WORDS,
    &portuguese::WORDS,
];

/// A time found in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimePhrase {
    pub kind: ScheduleKind,
    /// The text of the schedule: five cron fields, an interval, or an instant with its offset.
    pub text: String,
    /// The sentence without the time.
    pub rest: String,
}

/// Finds the time in a sentence, as seen at `now` in the user's zone. Returns `None` if there is none.
pub fn read_time(sentence: &str, now: &Zoned) -> Option<TimePhrase> {
    let tokens = tokenize(sentence);
    let found = LANGUAGES.iter().filter_map(|words| {
        let reader = PhraseReader {
            tokens: &tokens,
            words,
            now,
        };
        reader.find()
    });
    // The first of equals, so that languages come in their order.
    let best = found.reduce(|best, next| match next.word_count() > best.word_count() {
        true => next,
        false => best,
    })?;
    Some(TimePhrase {
        kind: best.kind,
        rest: tokens::without(sentence, &tokens, &best.range),
        text: best.text,
    })
}

/// Returns what a sentence such as "remind me to call Ann" asks to be reminded of.
pub fn reminder_text(sentence: &str) -> Option<&str> {
    let tokens = tokenize(sentence);
    let matched = LANGUAGES.iter().filter_map(|words| {
        let count = vocabulary::longest_match(&tokens, 0, words.remind)?;
        let connective = vocabulary::longest_match(&tokens, count, words.connective);
        Some(count + connective.unwrap_or(0))
    });
    let start = tokens.get(matched.max()?)?.start;
    let text = sentence[start..].trim().trim_end_matches(['.', '!']).trim();
    (!text.is_empty()).then_some(text)
}

/// Verbs that only say that something is scheduled.
const SCHEDULING_VERBS: [&str; 9] = [
    "schedule",
    "programa",
    "planifica",
    "planifie",
    "programme",
    "pianifica",
    "programma",
    "agende",
    "programe",
];

/// Returns a sentence such as "schedule a backup" without its first verb: what is to be done.
pub fn scheduled_work(sentence: &str) -> &str {
    let tokens = tokenize(sentence);
    let is_verb = |word: &str| SCHEDULING_VERBS.contains(&word);
    match tokens.as_slice() {
        [first, second, ..] if is_verb(&first.word) => sentence[second.start..].trim(),
        _ => sentence.trim(),
    }
}
