//! The grammar, the same for all languages.

use std::ops::Range;

use jiff::civil::{Date, Time, Weekday};
use jiff::{Span, ToSpan, Zoned};
use lango_domain::automation::ScheduleKind;

use super::tokens::Token;
use super::vocabulary::{Vocabulary, longest_match};

/// The time of day if a sentence names only a day.
pub(super) const DEFAULT_HOUR: i8 = 9;
const TONIGHT_HOUR: i8 = 20;

const DAY_NAMES: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const WORKDAYS: &str = "MON-FRI";
const WEEKEND: &str = "SAT,SUN";

/// A time that was found, and the words it takes.
pub(super) struct FoundTime {
    pub kind: ScheduleKind,
    pub text: String,
    pub range: Range<usize>,
}

impl FoundTime {
    pub fn word_count(&self) -> usize {
        self.range.len()
    }
}

pub(super) struct PhraseReader<'a> {
    pub tokens: &'a [Token],
    pub words: &'a Vocabulary,
    pub now: &'a Zoned,
}

/// Something that was read, and the place after it.
pub(super) type Read<T> = Option<(T, usize)>;

#[derive(Clone, Copy)]
enum TimeUnit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
}

impl PhraseReader<'_> {
    /// Returns the longest phrase of the sentence.
    pub fn find(&self) -> Option<FoundTime> {
        let found = (0..self.tokens.len()).filter_map(|start| {
            let ((kind, text), end) = self.phrase(start)?;
            let range = start..end;
            Some(FoundTime { kind, text, range })
        });
        found.reduce(|best, next| match next.word_count() > best.word_count() {
            true => next,
            false => best,
        })
    }

    fn phrase(&self, at: usize) -> Read<(ScheduleKind, String)> {
        let recurring = self.recurring(at);
        recurring.or_else(|| {
            let (instant, at) = self.offset(at).or_else(|| self.instant(at))?;
            let text = instant.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
            Some(((ScheduleKind::At, text), at))
        })
    }

    /// "every two hours", "every Monday at 8", "at 8 every Monday"
    fn recurring(&self, at: usize) -> Read<(ScheduleKind, String)> {
        if let Some((interval, after)) = self.interval(at) {
            return Some(((ScheduleKind::Every, interval), after));
        }
        let (time, days, after) = match self.recurring_days(at) {
            Some((days, after)) => {
                let (time, after) = self.time_beside_day(after).unzip_or(after);
                (time, days, after)
            }
            None => {
                let (time, after) = self.time_beside_day(at)?;
                let (days, after) = self.recurring_days(after)?;
                (Some(time), days, after)
            }
        };
        let time = time.unwrap_or(Time::constant(DEFAULT_HOUR, 0, 0, 0));
        let cron = format!("{} {} * * {days}", time.minute(), time.hour());
        Some(((ScheduleKind::Cron, cron), after))
    }

    /// Reads an interval that is no time of the clock. "every day at 8" is one.
    fn interval(&self, at: usize) -> Read<String> {
        if let Some(after) = self.skip(at, self.words.hourly) {
            return Some(("1h".to_owned(), after));
        }
        let at = self.skip(at, self.words.every)?;
        if let Some(after) = self.skip(at, self.words.half_hour) {
            return Some(("30m".to_owned(), after));
        }
        let (count, at) = self.number(at).unwrap_or((1, at));
        let (unit, at) = self.unit(at)?;
        let is_clock = matches!(unit, TimeUnit::Day | TimeUnit::Week | TimeUnit::Month);
        if is_clock && (count == 1 || self.time_beside_day(at).is_some()) {
            return None;
        }
        let unit = match unit {
            TimeUnit::Second => "s",
            TimeUnit::Minute => "m",
            TimeUnit::Hour => "h",
            TimeUnit::Day => "d",
            TimeUnit::Week => "w",
            TimeUnit::Month => return None,
        };
        Some((format!("{count}{unit}"), at))
    }

    /// Reads which days of the week a recurring phrase means, as the last field of a cron schedule.
    fn recurring_days(&self, at: usize) -> Read<String> {
        let words = self.words;
        if let Some(after) = self.skip(at, words.daily) {
            return Some(("*".to_owned(), after));
        }
        let after_on = self.skip(at, words.on).unwrap_or(at);
        if let Some((days, after)) = self.day_list(after_on, &words.all_weekdays) {
            return Some((days, after));
        }
        let at = self.skip(at, words.every)?;
        for (entries, days) in [(words.workday, WORKDAYS), (words.weekend, WEEKEND)] {
            if let Some(after) = self.skip(at, entries) {
                return Some((days.to_owned(), after));
            }
        }
        if let Some((TimeUnit::Day, after)) = self.unit(at) {
            return Some(("*".to_owned(), after));
        }
        if self.day_part(at).is_some() {
            return Some(("*".to_owned(), at));
        }
        self.day_list(at, &words.weekdays)
    }

    /// "Monday, Wednesday and Friday", "Monday to Friday"
    fn day_list(&self, at: usize, weekdays: &[&'static [&'static str]; 7]) -> Read<String> {
        let (first, mut at) = self.weekday(at, weekdays)?;
        let through = self.skip(at, self.words.through);
        let last = through.and_then(|at| self.weekday(at, weekdays));
        if let Some((last, after)) = last {
            return Some((format!("{}-{}", DAY_NAMES[first], DAY_NAMES[last]), after));
        }
        let mut days = vec![DAY_NAMES[first]];
        loop {
            let next = self.skip(at, self.words.and).unwrap_or(at);
            let Some((day, after)) = self.weekday(next, weekdays) else {
                return Some((days.join(","), at));
            };
            days.push(DAY_NAMES[day]);
            at = after;
        }
    }

    /// "in two hours"
    fn offset(&self, at: usize) -> Read<Zoned> {
        let at = self.skip(at, self.words.within)?;
        if let Some(after) = self.skip(at, self.words.half_hour) {
            return self.later(30.minutes(), after);
        }
        let (count, at) = self.number(at)?;
        let (unit, after) = self.unit(at)?;
        let count = i64::from(count);
        let span = match unit {
            TimeUnit::Second => Span::new().try_seconds(count),
            TimeUnit::Minute => Span::new().try_minutes(count),
            TimeUnit::Hour => Span::new().try_hours(count),
            TimeUnit::Day => Span::new().try_days(count),
            TimeUnit::Week => Span::new().try_weeks(count),
            TimeUnit::Month => Span::new().try_months(count),
        };
        self.later(span.ok()?, after)
    }

    fn later(&self, span: Span, after: usize) -> Read<Zoned> {
        let at = self.now.checked_add(span).ok()?;
        Some((at, after))
    }

    /// "tomorrow at 9", "at 9 tomorrow", "on Friday", "at 17:00"
    fn instant(&self, at: usize) -> Read<Zoned> {
        if let Some((day, after)) = self.day(at) {
            let (time, after) = self.time_beside_day(after).unzip_or(after);
            return Some((self.resolve(day, time)?, after));
        }
        let (time, after) = self.time_beside_day(at)?;
        if let Some((day, after)) = self.day(after) {
            return Some((self.resolve(day, Some(time))?, after));
        }
        let (time, after) = self.time_alone(at)?;
        let today = self.at(self.now.date(), time)?;
        let next = match today > *self.now {
            true => today,
            false => self.at(self.now.date().tomorrow().ok()?, time)?,
        };
        Some((next, after))
    }

    fn resolve(&self, day: NamedDay, time: Option<Time>) -> Option<Zoned> {
        let today = self.now.date();
        let default = Time::constant(DEFAULT_HOUR, 0, 0, 0);
        match day {
            // "today" alone says nothing about when.
            NamedDay::Date(date) if date == today => self.at(date, time?),
            NamedDay::Date(date) => self.at(date, time.unwrap_or(default)),
            NamedDay::Tonight => {
                let default = Time::constant(TONIGHT_HOUR, 0, 0, 0);
                self.at(today, time.unwrap_or(default))
            }
            NamedDay::Weekday(weekday) => {
                let time = time.unwrap_or(default);
                let this_week = self.at(today, time)?;
                if today.weekday() == weekday && this_week > *self.now {
                    return Some(this_week);
                }
                self.at(today.nth_weekday(1, weekday).ok()?, time)
            }
        }
    }

    fn at(&self, date: Date, time: Time) -> Option<Zoned> {
        date.to_datetime(time)
            .to_zoned(self.now.time_zone().clone())
            .ok()
    }

    fn day(&self, at: usize) -> Read<NamedDay> {
        let (words, today) = (self.words, self.now.date());
        if let Some(after) = self.skip(at, words.tonight) {
            return Some((NamedDay::Tonight, after));
        }
        for (entries, days) in [
            (words.day_after_tomorrow, 2),
            (words.tomorrow, 1),
            (words.today, 0),
        ] {
            if let Some(after) = self.skip(at, entries) {
                let date = today.checked_add(days.days()).ok()?;
                return Some((NamedDay::Date(date), after));
            }
        }
        let at = self.skip(at, words.on).unwrap_or(at);
        if let Some((weekday, after)) = self.weekday(at, &words.weekdays) {
            let offset = i8::try_from(weekday).ok()?;
            let weekday = Weekday::from_monday_zero_offset(offset).ok()?;
            return Some((NamedDay::Weekday(weekday), after));
        }
        let date = self.tokens.get(at)?.word.parse::<Date>().ok()?;
        Some((NamedDay::Date(date), at + 1))
    }

    fn weekday(&self, at: usize, weekdays: &[&'static [&'static str]; 7]) -> Read<usize> {
        let found = weekdays.iter().enumerate();
        found
            .filter_map(|(day, names)| Some((day, self.skip(at, names)?)))
            .max_by_key(|(_, after)| *after)
    }

    fn unit(&self, at: usize) -> Read<TimeUnit> {
        let words = self.words;
        let units = [
            (words.seconds, TimeUnit::Second),
            (words.minutes, TimeUnit::Minute),
            (words.hours, TimeUnit::Hour),
            (words.days, TimeUnit::Day),
            (words.weeks, TimeUnit::Week),
            (words.months, TimeUnit::Month),
        ];
        units
            .into_iter()
            .find_map(|(entries, unit)| Some((unit, self.skip(at, entries)?)))
    }

    fn number(&self, at: usize) -> Read<u32> {
        let word = &self.tokens.get(at)?.word;
        match word.parse() {
            Ok(0) => None,
            Ok(number) => Some((number, at + 1)),
            Err(_) => self.number_word(at),
        }
    }

    pub(super) fn number_word(&self, at: usize) -> Read<u32> {
        let word = &self.tokens.get(at)?.word;
        let known = self.words.numbers.iter().find(|(name, _)| name == word);
        known.map(|(_, number)| (*number, at + 1))
    }

    /// Returns the place after an entry.
    pub(super) fn skip(&self, at: usize, entries: &[&str]) -> Option<usize> {
        Some(at + longest_match(self.tokens, at, entries)?)
    }
}

enum NamedDay {
    Date(Date),
    Weekday(Weekday),
    Tonight,
}

/// Turns something optional into a value and the place after it.
trait UnzipOr<T> {
    fn unzip_or(self, at: usize) -> (Option<T>, usize);
}

impl<T> UnzipOr<T> for Read<T> {
    fn unzip_or(self, at: usize) -> (Option<T>, usize) {
        match self {
            Some((value, after)) => (Some(value), after),
            None => (None, at),
        }
    }
}
