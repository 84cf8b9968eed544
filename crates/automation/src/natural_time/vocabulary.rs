//! The words of a language that tell times. All are in lower case and without accents; an entry may have
//! several words.

use super::tokens::Token;

type Words = &'static [&'static str];

pub(super) struct Vocabulary {
    /// "in two hours"
    pub within: Words,
    /// "at 9"
    pub at: Words,
    /// Like `at`, but also used for other things: a plain number after it is a time only next to a day.
    pub weak_at: Words,
    /// "on Friday"
    pub on: Words,
    pub every: Words,
    /// Between items of a list.
    pub and: Words,
    /// "Monday to Friday"
    pub through: Words,
    pub today: Words,
    pub tomorrow: Words,
    pub day_after_tomorrow: Words,
    /// Monday first.
    pub weekdays: [Words; 7],
    /// "on Mondays": every one. Monday first; may be empty.
    pub all_weekdays: [Words; 7],
    pub workday: Words,
    pub weekend: Words,
    /// "daily"
    pub daily: Words,
    pub hourly: Words,
    pub seconds: Words,
    pub minutes: Words,
    pub hours: Words,
    pub days: Words,
    pub weeks: Words,
    pub months: Words,
    pub numbers: &'static [(&'static str, u32)],
    /// "half an hour"
    pub half_hour: Words,
    /// "o'clock"
    pub oclock: Words,
    /// "a.m."
    pub am: Words,
    pub pm: Words,
    pub noon: Words,
    pub midnight: Words,
    /// "in the morning": 9:00, or the time before it.
    pub morning: Words,
    /// 15:00, or the time before it in the afternoon.
    pub afternoon: Words,
    /// 19:00, or the time before it in the evening.
    pub evening: Words,
    /// "tonight": today at 20:00.
    pub tonight: Words,
    /// "remind me"
    pub remind: Words,
    /// "to", between "remind me" and what.
    pub connective: Words,
}

/// Returns the number of tokens of the longest entry that matches at a place.
pub(super) fn longest_match(tokens: &[Token], at: usize, entries: &[&str]) -> Option<usize> {
    let lengths = entries.iter().filter_map(|entry| {
        let mut count = 0;
        for word in entry.split(' ') {
            let token = tokens.get(at + count)?;
            if token.word != word {
                return None;
            }
            count += 1;
        }
        Some(count)
    });
    lengths.max()
}
