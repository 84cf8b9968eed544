//! The part of the grammar that reads days that repeat: "every Monday", "on weekends", "the 1st of every month".

use super::clock::ClockTime;
use super::reader::{PhraseReader, Read, TimeParts, TimeUnit};
use super::vocabulary::LAST;

const DAY_NAMES: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const WORKDAYS: &str = "MON-FRI";
const WEEKEND: &str = "SAT,SUN";
/// The hours of "twice a day".
const TWICE: [i8; 2] = [9, 18];

/// The last three fields of a cron schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepeatedDays {
    pub day: String,
    pub month: String,
    pub weekday: String,
}

impl RepeatedDays {
    fn weekdays(weekday: impl Into<String>) -> Self {
        Self {
            day: "*".to_owned(),
            month: "*".to_owned(),
            weekday: weekday.into(),
        }
    }

    fn day(day: impl ToString) -> Self {
        Self {
            day: day.to_string(),
            ..Self::weekdays("*")
        }
    }
}

impl PhraseReader<'_> {
    /// "every Monday at 8", "at 8 every Monday", "twice a day"
    pub(super) fn repeated(&self, at: usize) -> Read<TimeParts> {
        let repeated = |days, clocks| TimeParts::Repeated {
            days: Some(days),
            clocks,
        };
        if let Some(after) = self.skip(at, self.words.twice_daily) {
            let days = RepeatedDays::weekdays("*");
            let (clocks, after) = self.times_beside_day(after).unwrap_or_else(|| {
                let clocks = TWICE.map(|hour| ClockTime::new(hour, 0));
                (clocks.to_vec(), after)
            });
            return Some((repeated(days, clocks), after));
        }
        if let Some((days, after)) = self.repeated_days(at) {
            return Some(match self.times_beside_day(after) {
                Some((clocks, after)) => (repeated(days, clocks), after),
                None => (repeated(days, Vec::new()), after),
            });
        }
        let (clocks, after) = self.times_beside_day(at)?;
        let (days, after) = self.repeated_days(after)?;
        Some((repeated(days, clocks), after))
    }

    fn repeated_days(&self, at: usize) -> Read<RepeatedDays> {
        let readings = [self.week_days(at), self.month_days(at), self.year_days(at)];
        let longest = readings.into_iter().flatten();
        longest.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// Reads days of the week.
    fn week_days(&self, at: usize) -> Read<RepeatedDays> {
        let words = self.words;
        let week = |days: &str, after| Some((RepeatedDays::weekdays(days), after));
        if let Some(after) = self.skip(at, words.daily) {
            return week("*", after);
        }
        for place in [at, self.skip_optional(at, words.on)] {
            for (entries, days) in [
                (words.all_workdays, WORKDAYS),
                (words.all_weekends, WEEKEND),
            ] {
                if let Some(after) = self.skip(place, entries) {
                    return week(days, after);
                }
            }
            if let Some((days, after)) = self.day_list(place, &words.all_weekdays) {
                return week(&days, after);
            }
        }
        if let Some(after) = self.skip(at, words.weekly) {
            let place = self.skip_optional(after, words.on);
            let (days, after) = self.day_list(place, &words.weekdays)?;
            return week(&days, after);
        }
        let at = self.skip(at, words.every)?;
        for (entries, days) in [(words.workday, WORKDAYS), (words.weekend, WEEKEND)] {
            if let Some(after) = self.skip(at, entries) {
                return week(days, after);
            }
        }
        if let Some((TimeUnit::Day, after)) = self.unit(at) {
            return week("*", after);
        }
        if self.day_part(at).is_some() {
            return week("*", at);
        }
        let full = self.day_list(at, &words.weekdays);
        let (days, after) = full.or_else(|| self.day_list(at, &words.weekday_abbreviations))?;
        week(&days, after)
    }

    /// Reads a day of every month: "the 1st of every month", "monthly on the 1st", "every first Monday of the month".
    fn month_days(&self, at: usize) -> Read<RepeatedDays> {
        let words = self.words;
        if let Some(after) = self.skip(at, words.monthly)
            && let Some((days, after)) = self.month_day(after)
        {
            let after = self.skip_optional(after, words.of_month);
            return Some((days, after));
        }
        let place = self.skip_optional(at, words.every);
        let (days, after) = self.month_day(place)?;
        match self.skip(after, words.of_month) {
            Some(after) => Some((days, after)),
            // "every 15th"; but a weekday after a number is no day of the month.
            None if place > at && self.is_ordinal_number(place) && days.weekday == "*" => {
                let is_month = self.year_days(at).is_some();
                (!is_month).then_some((days, after))
            }
            None => None,
        }
    }

    /// "on the 1st", "the first Monday", "the last day"
    fn month_day(&self, at: usize) -> Read<RepeatedDays> {
        let words = self.words;
        let place = self.skip_optional(at, words.on);
        let place = self.skip_optional(place, words.articles);
        if let Some((ordinal, after)) = self.month_ordinal(place) {
            if let Some((weekday, after)) = self.weekday(after, &words.weekdays) {
                let number = match ordinal {
                    LAST => "L".to_owned(),
                    ordinal if ordinal <= 5 => ordinal.to_string(),
                    _ => return None,
                };
                let days = format!("{}#{number}", DAY_NAMES[weekday]);
                return Some((RepeatedDays::weekdays(days), after));
            }
            if let Some((TimeUnit::Day, after)) = self.unit(after) {
                return Some(match ordinal {
                    LAST => (RepeatedDays::day("L"), after),
                    ordinal => (RepeatedDays::day(ordinal), after),
                });
            }
        }
        let (day, after) = self.day_number(place)?;
        Some((RepeatedDays::day(day), after))
    }

    fn month_ordinal(&self, at: usize) -> Read<u8> {
        if self.is_ordinal_number(at) {
            let (day, after) = self.day_number(at)?;
            return Some((u8::try_from(day).ok()?, after));
        }
        self.ordinal(at)
    }

    /// "every year on 24 December", "every 24 December"
    fn year_days(&self, at: usize) -> Read<RepeatedDays> {
        let words = self.words;
        let yearly = self.skip(at, words.yearly);
        let place = match yearly {
            Some(after) => self.skip_optional(after, words.on),
            None => self.skip(at, words.every)?,
        };
        let place = self.skip_optional(place, words.articles);
        let ((day, month), after) = self.day_and_month(place)?;
        let days = RepeatedDays {
            day: day.to_string(),
            month: month.to_string(),
            weekday: "*".to_owned(),
        };
        let is_date = self.next_date(day, month).is_some();
        is_date.then_some((days, after))
    }

    /// "Monday, Wednesday and Friday", "Monday to Friday"
    fn day_list(&self, at: usize, weekdays: &[&'static str; 7]) -> Read<String> {
        let (first, mut at) = self.weekday(at, weekdays)?;
        let through = self.skip(at, self.words.through);
        let last = through.and_then(|at| self.weekday(at, weekdays));
        if let Some((last, after)) = last {
            return Some((format!("{}-{}", DAY_NAMES[first], DAY_NAMES[last]), after));
        }
        let mut days = vec![DAY_NAMES[first]];
        loop {
            let next = self.skip_optional(at, self.words.and);
            let Some((day, after)) = self.weekday(next, weekdays) else {
                return Some((days.join(","), at));
            };
            if !days.contains(&DAY_NAMES[day]) {
                days.push(DAY_NAMES[day]);
            }
            at = after;
        }
    }
}
