//! The part of the grammar that reads times of day.

use super::reader::{PhraseReader, Read};
use super::written_time::{DayHalf, WrittenTime};
use super::zone::NamedZone;

/// The time of day if a sentence names only a day.
pub(super) const DEFAULT_HOUR: i8 = 9;
const AFTERNOON_HOUR: i8 = 15;
const EVENING_HOUR: i8 = 19;
/// Minutes in "ten past nine".
const SPOKEN_MINUTES: [u32; 6] = [5, 10, 15, 20, 25, 30];

/// A time of day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClockTime {
    pub hour: i8,
    pub minute: i8,
    /// True for "9" and "half past 9", which may be in the morning or in the evening.
    pub is_half_day: bool,
    pub zone: Option<NamedZone>,
}

impl ClockTime {
    pub const fn new(hour: i8, minute: i8) -> Self {
        Self {
            hour,
            minute,
            is_half_day: false,
            zone: None,
        }
    }
}

/// A time of day, with false if its words can be something else.
type Certain = (ClockTime, bool);

impl PhraseReader<'_> {
    /// Reads a time next to a day, where a plain number is a time.
    pub(super) fn time_beside_day(&self, at: usize) -> Read<ClockTime> {
        let (place, is_marked) = self.skip_time_mark(at);
        if let Some(((clock, is_certain), after)) = self.clock(place)
            && (is_marked || is_certain)
        {
            return Some((clock, after));
        }
        self.day_part(at)
    }

    /// Reads a time without a day, which has to be recognizable as one.
    pub(super) fn time_alone(&self, at: usize) -> Read<ClockTime> {
        if let Some(place) = self.skip(at, self.words.at)
            && let Some(((clock, _), after)) = self.clock(place)
        {
            return Some((clock, after));
        }
        let (place, is_marked) = self.skip_time_mark(at);
        let ((clock, is_certain), after) = self.clock(place)?;
        let is_named = self.fixed_hour(place).is_some();
        (is_certain && (is_marked || is_named)).then_some((clock, after))
    }

    fn skip_time_mark(&self, at: usize) -> (usize, bool) {
        let after = self
            .skip(at, self.words.at)
            .or_else(|| self.skip(at, self.words.weak_at));
        (after.unwrap_or(at), after.is_some())
    }

    /// Reads the times of a repeated job: "at 9 and at 18:00".
    pub(super) fn times_beside_day(&self, at: usize) -> Read<Vec<ClockTime>> {
        let (first, mut at) = self.time_beside_day(at)?;
        let mut clocks = vec![first];
        while let Some(next) = self.skip(at, self.words.and) {
            let (place, is_marked) = self.skip_time_mark(next);
            let Some(((clock, is_certain), after)) = self.clock(place) else {
                break;
            };
            let is_end = after == self.tokens.len() || self.starts_text(after);
            if !is_marked && !is_certain && !is_end {
                break;
            }
            clocks.push(clock);
            at = after;
        }
        Some((clocks, at))
    }

    fn fixed_hour(&self, at: usize) -> Read<ClockTime> {
        let words = self.words;
        let fixed = [(words.noon, 12), (words.midnight, 0)];
        fixed
            .into_iter()
            .find_map(|(entries, hour)| Some((ClockTime::new(hour, 0), self.skip(at, entries)?)))
    }

    /// Reads a time of the clock with its zone.
    pub(super) fn clock(&self, at: usize) -> Read<Certain> {
        let ((mut clock, is_certain), after) = self.clock_without_zone(at)?;
        let (zone, after) = match self.zone(after) {
            Some((zone, after)) => (Some(zone), after),
            None => (None, after),
        };
        let is_certain = is_certain || zone.is_some();
        clock.zone = zone;
        Some(((clock, is_certain), after))
    }

    fn clock_without_zone(&self, at: usize) -> Read<Certain> {
        if let Some((clock, after)) = self.fixed_hour(at) {
            return Some(((clock, true), after));
        }
        let (mut written, mut after) = match self.spoken(at) {
            Some(spoken) => spoken,
            None => self.hour_with_minutes(at)?,
        };
        let words = self.words;
        let halves = [
            (words.am, DayHalf::Am),
            (words.morning, DayHalf::Am),
            (words.pm, DayHalf::Pm),
            (words.afternoon, DayHalf::Pm),
            (words.evening, DayHalf::Pm),
        ];
        let half = halves
            .into_iter()
            .find_map(|(entries, half)| Some((half, self.skip(after, entries)?)));
        let half = half.map(|(half, next)| {
            (written.is_explicit, written.is_half_day, after) = (true, false, next);
            half
        });
        let half = half.filter(|_| written.hour <= 12);
        // "12 at night"
        let time = match (half, written.hour) {
            (Some(DayHalf::Pm), 12) if self.is_night(after) => (0, written.minute),
            _ => {
                let time = written.resolve(half)?;
                (time.hour(), time.minute())
            }
        };
        let is_half_day = written.is_half_day && written.half.is_none();
        let clock = ClockTime {
            is_half_day,
            ..ClockTime::new(time.0, time.1)
        };
        Some(((clock, written.is_explicit), after))
    }

    fn is_night(&self, end: usize) -> bool {
        let last = end.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.is_some_and(|token| ["night", "nachts", "noche", "notte"].contains(&&*token.word))
    }

    /// "9", "9:30", "nine", "9 Uhr 30", "9 heures et demie"
    fn hour_with_minutes(&self, at: usize) -> Read<WrittenTime> {
        let words = self.words;
        let (mut written, mut after) = self.hour(at)?;
        if let Some(next) = self.skip(after, words.oclock) {
            (written.is_explicit, after) = (true, next);
            let minute = self.tokens.get(after).map(|token| token.word.as_str());
            let minute = minute.filter(|minute| minute.len() == 2);
            if let Some(minute) = minute.and_then(|minute| minute.parse().ok())
                && (0..60).contains(&minute)
            {
                (written.minute, after) = (minute, after + 1);
            }
        }
        if written.is_explicit {
            written.is_half_day &= words.has_half_days;
        }
        for (entries, minute) in [
            (words.hour_and_half, 30),
            (words.hour_and_quarter, 15),
            (words.hour_minus_quarter, -15),
        ] {
            if let Some(next) = self.skip(after, entries).filter(|_| written.minute == 0) {
                return Some((shifted(written, minute), next));
            }
        }
        Some((written, after))
    }

    /// "half past 9", "halb zehn", "ten past nine"
    fn spoken(&self, at: usize) -> Read<WrittenTime> {
        let words = self.words;
        for (entries, minutes) in [
            (words.half_past, 30),
            (words.half_to, -30),
            (words.quarter_past, 15),
            (words.quarter_to, -15),
        ] {
            if let Some(place) = self.skip(at, entries)
                && let Some((hour, after)) = self.hour(place)
                && !hour.is_explicit
            {
                let after = self.skip(after, words.oclock).unwrap_or(after);
                return Some((shifted(hour, minutes), after));
            }
        }
        let (minutes, place) = self.number(at)?;
        if !SPOKEN_MINUTES.contains(&minutes) {
            return None;
        }
        let minutes = i8::try_from(minutes).ok()?;
        for (entries, sign) in [(words.past, 1), (words.to, -1)] {
            if let Some(place) = self.skip(place, entries)
                && let Some((hour, after)) = self.hour(place)
                && !hour.is_explicit
            {
                let after = self.skip(after, words.oclock).unwrap_or(after);
                return Some((shifted(hour, sign * minutes), after));
            }
        }
        None
    }

    fn hour(&self, at: usize) -> Read<WrittenTime> {
        let token = self.tokens.get(at).filter(|token| !token.is_quoted)?;
        if let Some(written) = WrittenTime::parse(&token.word) {
            return Some((written, at + 1));
        }
        let (hour, after) = self.number_word(at)?;
        Some((WrittenTime::parse(&hour.to_string())?, after))
    }

    /// "in the morning"
    pub(super) fn day_part(&self, at: usize) -> Read<ClockTime> {
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
        let (place, is_marked) = self.skip_time_mark(after);
        let clock = self.clock(place).filter(|_| is_marked);
        let Some(((mut clock, _), end)) = clock else {
            return Some((ClockTime::new(hour, 0), after));
        };
        if hour > 12 && clock.hour < 12 {
            clock.hour += 12;
        }
        clock.is_half_day = false;
        Some((clock, end))
    }
}

/// Moves an hour by minutes: "quarter to 8".
fn shifted(hour: WrittenTime, minutes: i8) -> WrittenTime {
    let is_before = minutes < 0;
    let shifted_hour = match hour.hour {
        full if !is_before => full,
        1 if hour.is_half_day => 12,
        full => (full + 23) % 24,
    };
    WrittenTime {
        hour: shifted_hour,
        minute: if is_before { 60 + minutes } else { minutes },
        is_explicit: true,
        ..hour
    }
}
