//! Turns the parts of a time into a schedule.
//!
//! A reminder at a plain hour is meant in waking hours, from 6:00 to 21:59: "at 5" is in the afternoon. Work
//! without "remind me" is at the hour that the sentence says.

use jiff::Zoned;
use jiff::civil::{Date, Time, Weekday};
use lango_domain::automation::ScheduleKind;

use super::clock::{ClockTime, DEFAULT_HOUR};
use super::dates::NamedDay;
use super::message::TimeProblem;
use super::reader::TimeParts;

const WAKING_HOURS: std::ops::Range<i8> = 6..22;

/// The text of a schedule.
pub(super) type ScheduleText = (ScheduleKind, String);

/// The circumstances in which a time is resolved.
pub(super) struct Resolver<'a> {
    /// In the zone of the time.
    pub now: &'a Zoned,
    /// True if the time of a reminder is looked for.
    pub is_reminder: bool,
}

impl Resolver<'_> {
    pub fn resolve(&self, parts: TimeParts) -> Result<ScheduleText, TimeProblem> {
        match parts {
            TimeParts::Interval(text) => Ok((ScheduleKind::Every, text)),
            TimeParts::Later(at) => Ok(instant_text(&at)),
            TimeParts::Repeated { days, clocks } => {
                let days = days.ok_or(TimeProblem::NotUnderstood)?;
                let (minute, hours) = self.cron_times(clocks)?;
                let (day, month, weekday) = (days.day, days.month, days.weekday);
                let text = format!("{minute} {hours} {day} {month} {weekday}");
                Ok((ScheduleKind::Cron, text))
            }
            TimeParts::Once { day: None, clock } => {
                let clock = clock.ok_or(TimeProblem::NoTime)?;
                let at = self.next_time(&clock).ok_or(TimeProblem::NotUnderstood)?;
                Ok(instant_text(&at))
            }
            TimeParts::Once {
                day: Some(day),
                clock,
            } => self.on_day(day, clock).map(|at| instant_text(&at)),
        }
    }

    /// Returns the first two fields of a cron schedule.
    fn cron_times(&self, mut clocks: Vec<ClockTime>) -> Result<(i8, String), TimeProblem> {
        if clocks.is_empty() {
            clocks.push(ClockTime::new(DEFAULT_HOUR, 0));
        }
        let minute = clocks[0].minute;
        if clocks.iter().any(|clock| clock.minute != minute) {
            return Err(TimeProblem::NotUnderstood);
        }
        let mut hours: Vec<i8> = clocks.iter().map(|clock| self.hour(clock)).collect();
        hours.sort_unstable();
        hours.dedup();
        let hours: Vec<String> = hours.iter().map(i8::to_string).collect();
        Ok((minute, hours.join(",")))
    }

    /// Returns the hour that is meant, if a day is named.
    fn hour(&self, clock: &ClockTime) -> i8 {
        let is_early = clock.hour < WAKING_HOURS.start;
        match self.is_reminder && clock.is_half_day && is_early {
            true => clock.hour + 12,
            false => clock.hour,
        }
    }

    /// Returns the next time at which the clock shows this.
    fn next_time(&self, clock: &ClockTime) -> Option<Zoned> {
        let is_free = self.is_reminder && clock.is_half_day;
        let hours = match is_free {
            true => vec![clock.hour % 12, clock.hour % 12 + 12],
            false => vec![clock.hour],
        };
        let today = self.now.date();
        for date in [today, today.tomorrow().ok()?] {
            for hour in &hours {
                let at = self.at(date, *hour, clock.minute)?;
                if at > *self.now && (!is_free || WAKING_HOURS.contains(hour)) {
                    return Some(at);
                }
            }
        }
        None
    }

    fn on_day(&self, day: NamedDay, clock: Option<ClockTime>) -> Result<Zoned, TimeProblem> {
        let today = self.now.date();
        let date = match day {
            NamedDay::Unclear(..) => return Err(TimeProblem::TwoDates),
            NamedDay::WrongWeekday => return Err(TimeProblem::WrongWeekday),
            // "today" alone says nothing about when.
            NamedDay::Date(date) if date == today && clock.is_none() => {
                return Err(TimeProblem::NoTime);
            }
            NamedDay::Date(date) => Some(date),
            NamedDay::Weekday { weekday, is_next } => self.weekday(weekday, is_next, &clock),
        };
        let date = date.ok_or(TimeProblem::NotUnderstood)?;
        let clock = clock.unwrap_or(ClockTime::new(DEFAULT_HOUR, 0));
        let at = |hour| self.at(date, hour, clock.minute);
        let hour = self.hour(&clock);
        let first = at(hour).ok_or(TimeProblem::NotUnderstood)?;
        if first > *self.now {
            return Ok(first);
        }
        // "today at 9", said at 10
        let later = (self.is_reminder && clock.is_half_day && hour < 10)
            .then(|| at(hour + 12))
            .flatten();
        later
            .filter(|later| *later > *self.now)
            .ok_or(TimeProblem::Past)
    }

    fn weekday(&self, weekday: Weekday, is_next: bool, clock: &Option<ClockTime>) -> Option<Date> {
        let today = self.now.date();
        if today.weekday() == weekday && !is_next {
            let default = ClockTime::new(DEFAULT_HOUR, 0);
            let clock = clock.as_ref().unwrap_or(&default);
            if self.at(today, self.hour(clock), clock.minute)? > *self.now {
                return Some(today);
            }
        }
        today.nth_weekday(1, weekday).ok()
    }

    fn at(&self, date: Date, hour: i8, minute: i8) -> Option<Zoned> {
        let time = Time::new(hour, minute, 0, 0).ok()?;
        date.to_datetime(time)
            .to_zoned(self.now.time_zone().clone())
            .ok()
    }
}

fn instant_text(at: &Zoned) -> ScheduleText {
    let text = at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    (ScheduleKind::At, text)
}
