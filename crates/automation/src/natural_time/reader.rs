//! The grammar, the same for all languages.

use std::ops::Range;

use jiff::Zoned;

use super::clock::ClockTime;
use super::dates::NamedDay;
use super::repeated::RepeatedDays;
use super::tokens::Token;
use super::vocabulary::{Vocabulary, longest_match};
use super::zone::NamedZone;

/// Something that was read, and the place after it.
pub(super) type Read<T> = Option<(T, usize)>;

/// The parts of a time, as the sentence says them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TimeParts {
    Once {
        day: Option<NamedDay>,
        clock: Option<ClockTime>,
    },
    Repeated {
        days: Option<RepeatedDays>,
        clocks: Vec<ClockTime>,
    },
    /// An interval such as `2h`.
    Interval(String),
    /// In two hours.
    Later(Zoned),
}

/// A time that was found, and the words it takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FoundTime {
    pub parts: TimeParts,
    pub range: Range<usize>,
    pub zone: Option<NamedZone>,
}

impl FoundTime {
    /// Returns true if nothing is missing that another part of the sentence could say.
    pub fn is_complete(&self) -> bool {
        match &self.parts {
            TimeParts::Once { day, clock } => day.is_some() && clock.is_some(),
            TimeParts::Repeated { clocks, .. } => !clocks.is_empty(),
            TimeParts::Interval(_) | TimeParts::Later(_) => true,
        }
    }

    /// Returns true for a time of day without a day.
    pub fn is_clock_only(&self) -> bool {
        matches!(&self.parts, TimeParts::Once { day: None, .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

pub(super) struct PhraseReader<'a> {
    pub sentence: &'a str,
    pub tokens: &'a [Token],
    pub words: &'static Vocabulary,
    pub now: &'a Zoned,
}

impl PhraseReader<'_> {
    /// Returns the times of the sentence that do not overlap, the longest first.
    pub fn find_all(&self) -> Vec<FoundTime> {
        let mut all: Vec<FoundTime> = (0..self.tokens.len())
            .filter_map(|start| self.found_at(start))
            .collect();
        all.sort_by_key(|found| std::cmp::Reverse(found.range.len()));
        let mut chosen: Vec<FoundTime> = Vec::new();
        for found in all {
            let overlaps = |other: &FoundTime| {
                found.range.start < other.range.end && other.range.start < found.range.end
            };
            if !chosen.iter().any(overlaps) {
                chosen.push(found);
            }
        }
        chosen
    }

    fn found_at(&self, start: usize) -> Option<FoundTime> {
        let (parts, end) = self.phrase(start)?;
        let own = match &parts {
            TimeParts::Once { clock, .. } => clock.as_ref().and_then(|clock| clock.zone.clone()),
            TimeParts::Repeated { clocks, .. } => {
                clocks.iter().find_map(|clock| clock.zone.clone())
            }
            TimeParts::Interval(_) | TimeParts::Later(_) => None,
        };
        let (zone, end) = match self.zone(end) {
            Some((zone, end)) => (Some(own.unwrap_or(zone)), end),
            None => (own, end),
        };
        let range = start..end;
        Some(FoundTime { parts, range, zone })
    }

    pub(super) fn phrase(&self, at: usize) -> Read<TimeParts> {
        let readings = [
            self.interval(at)
                .map(|(interval, after)| (TimeParts::Interval(interval), after)),
            self.repeated(at),
            self.offset(at),
            self.instant(at),
        ];
        let longest = readings.into_iter().flatten();
        longest.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// "tomorrow at 9", "at 9 tomorrow", "on Friday", "at 17:00"
    fn instant(&self, at: usize) -> Read<TimeParts> {
        let parts = |day, clock| TimeParts::Once { day, clock };
        if let Some((day, clock, after)) = self.day_with_part(at) {
            return Some((parts(Some(day), Some(clock)), after));
        }
        if let Some((day, after)) = self.day(at) {
            return Some(match self.time_beside_day(after) {
                Some((clock, after)) => (parts(Some(day), Some(clock)), after),
                None => (parts(Some(day), None), after),
            });
        }
        if let Some((clock, after)) = self.time_beside_day(at)
            && let Some((day, after)) = self.day(after)
        {
            return Some((parts(Some(day), Some(clock)), after));
        }
        let (clock, after) = self.time_alone(at)?;
        Some((parts(None, Some(clock)), after))
    }

    /// Returns true if what is to be done starts here.
    pub(super) fn starts_text(&self, at: usize) -> bool {
        self.skip(at, self.words.connective).is_some()
    }

    pub(super) fn unit(&self, at: usize) -> Read<TimeUnit> {
        let words = self.words;
        let units = [
            (words.seconds, TimeUnit::Second),
            (words.minutes, TimeUnit::Minute),
            (words.hours, TimeUnit::Hour),
            (words.days, TimeUnit::Day),
            (words.weeks, TimeUnit::Week),
            (words.months, TimeUnit::Month),
            (words.years, TimeUnit::Year),
        ];
        units
            .into_iter()
            .find_map(|(entries, unit)| Some((unit, self.skip(at, entries)?)))
    }

    pub(super) fn number(&self, at: usize) -> Read<u32> {
        let token = self.tokens.get(at).filter(|token| !token.is_quoted)?;
        match token.word.parse() {
            Ok(0) => None,
            Ok(number) => Some((number, at + 1)),
            Err(_) => self.number_word(at),
        }
    }

    pub(super) fn number_word(&self, at: usize) -> Read<u32> {
        let known = self.words.numbers.iter();
        let found = known.filter_map(|(name, number)| Some((*number, self.skip(at, name)?)));
        found.max_by_key(|(_, after)| *after)
    }

    /// Returns the place after an entry.
    pub(super) fn skip(&self, at: usize, entries: &str) -> Option<usize> {
        Some(at + longest_match(self.tokens, at, entries)?)
    }

    /// Returns the place after an entry, or the same place.
    pub(super) fn skip_optional(&self, at: usize, entries: &str) -> usize {
        self.skip(at, entries).unwrap_or(at)
    }

    /// Returns the words of a range as the user wrote them.
    pub(super) fn text(&self, range: &Range<usize>) -> &str {
        let tokens = self.tokens.get(range.clone()).unwrap_or_default();
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => &self.sentence[first.start..last.end],
            _ => "",
        }
    }
}
