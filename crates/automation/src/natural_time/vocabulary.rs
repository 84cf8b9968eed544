//! The words of a language that tell times. All are in lower case and without accents. Entries are separated
//! by `|`, and may have several words. A word with an apostrophe inside, such as `un'ora`, is two words:
//! `un' ora`.

use super::message::Messages;
use super::tokens::Token;

/// Entries, separated by `|`.
pub(super) type Words = &'static str;

pub(super) struct Vocabulary {
    /// "in two hours"
    pub within: Words,
    /// "two hours from now"
    pub from_now: Words,
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
    /// Between a day and a month, and after an ordinal: "the 24th of December".
    pub of: Words,
    pub articles: Words,
    pub today: Words,
    pub tomorrow: Words,
    pub day_after_tomorrow: Words,
    pub past_days: Words,
    /// Monday first.
    pub weekdays: [Words; 7],
    /// Understood only next to other words of time. Monday first.
    pub weekday_abbreviations: [Words; 7],
    /// "on Mondays": every one. Monday first.
    pub all_weekdays: [Words; 7],
    /// Of a weekday: "lundi prochain".
    pub after_weekday: Words,
    pub workday: Words,
    /// "on weekdays"
    pub all_workdays: Words,
    pub weekend: Words,
    /// "on weekends"
    pub all_weekends: Words,
    pub month_names: [Words; 12],
    /// "next week": Monday.
    pub next_week: Words,
    /// "next month": the first day.
    pub next_month: Words,
    pub daily: Words,
    pub twice_daily: Words,
    pub hourly: Words,
    /// Needs a weekday.
    pub weekly: Words,
    /// Needs a day of the month.
    pub monthly: Words,
    /// "of every month"
    pub of_month: Words,
    /// Needs a date.
    pub yearly: Words,
    pub seconds: Words,
    pub minutes: Words,
    pub hours: Words,
    pub days: Words,
    pub weeks: Words,
    pub months: Words,
    pub years: Words,
    pub numbers: &'static [(&'static str, u32)],
    /// "first" is 1, and "last" is [`LAST`].
    pub ordinals: &'static [(&'static str, u8)],
    /// Whole spans with their minutes: "half an hour".
    pub spans: &'static [(&'static str, i64)],
    /// "and a half", after hours
    pub and_half: Words,
    /// "one and a half", before hours
    pub one_and_half: Words,
    /// Before the hour: "half past".
    pub half_past: Words,
    /// Before the hour that comes: "halb".
    pub half_to: Words,
    pub quarter_past: Words,
    pub quarter_to: Words,
    /// Between minutes and an hour: "ten past nine".
    pub past: Words,
    pub to: Words,
    /// After the hour: "et demie".
    pub hour_and_half: Words,
    pub hour_and_quarter: Words,
    pub hour_minus_quarter: Words,
    /// "o'clock"
    pub oclock: Words,
    /// True if "9 o'clock" can mean the evening.
    pub has_half_days: bool,
    /// True if 3/4 can be a day of March.
    pub has_month_first: bool,
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
    pub this_morning: Words,
    pub this_afternoon: Words,
    /// "tonight": today at 20:00.
    pub tonight: Words,
    /// After the name of a city: "Tokyo time".
    pub zone_after: Words,
    /// Before the name of a city: "heure de Tokyo".
    pub zone_before: Words,
    /// "remind me"
    pub remind: Words,
    /// "wake me up"
    pub wake: Words,
    /// The text of a reminder that wakes.
    pub wake_text: &'static str,
    /// "to", between "remind me" and what.
    pub connective: Words,
    pub polite: Words,
    /// Words that start a time or a place, and no work: "on my birthday".
    pub prepositions: Words,
    /// Words that join the parts of a time, besides those above.
    pub joints: Words,
    /// Words of time that are not understood.
    pub unread: Words,
    pub messages: Messages,
}

/// The number of the ordinal "last".
pub(super) const LAST: u8 = 99;

/// Returns the number of tokens of the longest entry that matches at a place.
pub(super) fn longest_match(tokens: &[Token], at: usize, words: &str) -> Option<usize> {
    let entries = words.split('|').filter(|entry| !entry.is_empty());
    let lengths = entries.filter_map(|entry| {
        let mut count = 0;
        for word in entry.split(' ') {
            let token = tokens.get(at + count)?;
            if token.is_quoted || token.word != word {
                return None;
            }
            count += 1;
        }
        Some(count)
    });
    lengths.max()
}
