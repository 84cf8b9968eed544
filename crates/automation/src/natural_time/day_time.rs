//! The part of the grammar that reads times of day.

use jiff::civil::Time;

use super::clock_time::{DayHalf, WrittenTime};
use super::reader::{DEFAULT_HOUR, PhraseReader, Read};

const AFTERNOON_HOUR: i8 = 15;
const EVENING_HOUR: i8 = 19;

impl PhraseReader<'_> {
    /// Reads a time next to a day, where a plain number is a time.
    pub(super) fn time_beside_day(&self, at: usize) -> Read<Time> {
        let words = self.words;
        let marked = self
            .skip(at, words.at)
            .or_else(|| self.skip(at, words.weak_at));
        let (marked, place) = (marked.is_some(), marked.unwrap_or(at));
        if let Some((time, is_explicit, after)) = self.clock(place)
            && (marked || is_explicit)
        {
            return Some((time, after));
        }
        self.day_part(at)
    }

    /// Reads a time without a day, which has to be recognizable as one.
    pub(super) fn time_alone(&self, at: usize) -> Read<Time> {
        let words = self.words;
        if let Some(place) = self.skip(at, words.at)
            && let Some((time, _, after)) = self.clock(place)
        {
            return Some((time, after));
        }
        let place = self.skip(at, words.weak_at)?;
        let (time, is_explicit, after) = self.clock(place)?;
        is_explicit.then_some((time, after))
    }

    /// Reads a time of the clock, whether it can be nothing else, and the place after it.
    fn clock(&self, at: usize) -> Option<(Time, bool, usize)> {
        let words = self.words;
        for (entries, hour) in [(words.noon, 12), (words.midnight, 0)] {
            if let Some(after) = self.skip(at, entries) {
                return Some((Time::constant(hour, 0, 0, 0), true, after));
            }
        }
        let (mut written, mut after) = match WrittenTime::parse(&self.tokens.get(at)?.word) {
            Some(written) => (written, at + 1),
            None => {
                let (hour, after) = self.number_word(at)?;
                let written = WrittenTime::parse(&hour.to_string())?;
                (written, after)
            }
        };
        if let Some(next) = self.skip(after, words.oclock) {
            (written.is_explicit, after) = (true, next);
            // "9 Uhr 30"
            let minute = self.tokens.get(after).map(|token| token.word.as_str());
            let minute = minute.filter(|minute| minute.len() == 2);
            if let Some(minute) = minute.and_then(|minute| minute.parse().ok())
                && (0..60).contains(&minute)
            {
                (written.minute, after) = (minute, after + 1);
            }
        }
        let mut half = None;
        for (entries, named) in [
            (words.am, DayHalf::Am),
            (words.morning, DayHalf::Am),
            (words.pm, DayHalf::Pm),
            (words.afternoon, DayHalf::Pm),
            (words.evening, DayHalf::Pm),
        ] {
            if half.is_none()
                && let Some(next) = self.skip(after, entries)
            {
                (half, written.is_explicit, after) = (Some(named), true, next);
            }
        }
        let half = half.filter(|_| written.hour <= 12);
        Some((written.resolve(half)?, written.is_explicit, after))
    }

    /// "in the morning"
    pub(super) fn day_part(&self, at: usize) -> Read<Time> {
        let words = self.words;
        let parts = [
            (words.morning, DEFAULT_HOUR),
            (words.afternoon, AFTERNOON_HOUR),
            (words.evening, EVENING_HOUR),
            (words.noon, 12),
            (words.midnight, 0),
        ];
        let (hour, after) = parts
            .into_iter()
            .find_map(|(entries, hour)| Some((hour, self.skip(at, entries)?)))?;
        // "in the evening at 8"
        let place = self
            .skip(after, words.at)
            .or_else(|| self.skip(after, words.weak_at));
        if let Some((time, _, end)) = place.and_then(|place| self.clock(place)) {
            let is_late = hour > 12 && time.hour() < 12;
            let hour = if is_late {
                time.hour() + 12
            } else {
                time.hour()
            };
            return Some((Time::constant(hour, time.minute(), 0, 0), end));
        }
        Some((Time::constant(hour, 0, 0, 0), after))
    }
}
