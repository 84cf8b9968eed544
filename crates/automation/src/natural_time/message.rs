//! Answers about times that were not understood, in the language of the request.

use super::vocabulary::Vocabulary;

/// Sentences with `{}` for the words of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Messages {
    pub no_time: &'static str,
    pub not_understood: &'static str,
    /// The date and its two readings.
    pub two_dates: &'static str,
    pub wrong_weekday: &'static str,
    pub past: &'static str,
    /// Two times of one sentence.
    pub apart: &'static str,
    pub unknown_zone: &'static str,
    /// A reminder without a text.
    pub no_work: &'static str,
    /// A time without work.
    pub no_task: &'static str,
}

/// The reason why no time was read from a sentence, for the person who wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeProblem {
    NoTime,
    /// A part of the sentence that looks like a time has no known meaning.
    NotUnderstood,
    /// A date such as 3/4 has two readings.
    TwoDates,
    /// The date is not the weekday next to it.
    WrongWeekday,
    Past,
    /// Two times may belong together.
    Apart,
    UnknownZone,
    /// The sentence says when, but not what.
    NoWork,
    NoTask,
}

/// A sentence whose time was not understood, or not completely. Nothing may be planned from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct TimeError {
    pub problem: TimeProblem,
    /// The explanation in the language of the sentence.
    text: String,
}

impl TimeError {
    pub(super) fn new(words: &Vocabulary, problem: TimeProblem, parts: &[&str]) -> Self {
        let messages = &words.messages;
        let template = match problem {
            TimeProblem::NoTime => messages.no_time,
            TimeProblem::NotUnderstood => messages.not_understood,
            TimeProblem::TwoDates => messages.two_dates,
            TimeProblem::WrongWeekday => messages.wrong_weekday,
            TimeProblem::Past => messages.past,
            TimeProblem::Apart => messages.apart,
            TimeProblem::UnknownZone => messages.unknown_zone,
            TimeProblem::NoWork => messages.no_work,
            TimeProblem::NoTask => messages.no_task,
        };
        let mut parts = parts.iter();
        let mut text = String::new();
        for (number, piece) in template.split("{}").enumerate() {
            if number > 0 {
                text.push_str(parts.next().copied().unwrap_or_default());
            }
            text.push_str(piece);
        }
        Self { problem, text }
    }
}
