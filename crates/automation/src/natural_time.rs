//! Times in plain sentences: "tomorrow at 9", "in two hours", "every Monday at 8", in six languages.
//!
//! Each language has a table of words ([`Vocabulary`]); the grammar is the same for all. The language that
//! explains most words of the sentence wins. A sentence with words of time that were not read is refused:
//! a job at a wrong time does more harm than a question.

mod clock;
mod dates;
mod english;
mod french;
mod german;
mod italian;
mod leftover;
mod message;
mod offset;
mod portuguese;
mod reader;
mod repeated;
mod resolve;
mod sentence;
mod spanish;
mod tokens;
mod vocabulary;
mod work;
mod written_time;
mod zone;

use jiff::Zoned;
use lango_domain::automation::ScheduleKind;

pub use message::{TimeError, TimeProblem};
pub use work::SentenceWork;

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
#[derive(Clone)]
pub struct TimePhrase {
    pub kind: ScheduleKind,
    /// The text of the schedule: five cron fields, an interval, or an instant with its offset.
    pub text: String,
    /// The IANA name of the zone that the sentence names.
    pub time_zone: Option<String>,
    /// The sentence without the time.
    pub rest: String,
    words: &'static Vocabulary,
}

/// Finds the time in a sentence, as seen at `now` in the user's zone.
pub fn read_time(sentence: &str, now: &Zoned) -> Result<TimePhrase, TimeError> {
    sentence::read(sentence, now)
}
