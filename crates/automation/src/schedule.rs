//! Schedules: when a job is due.
//!
//! | kind | text | meaning |
//! |---|---|---|
//! | `cron` | five fields, or `@daily` and the like | times of the clock in the job's zone |
//! | `every` | `15m`, `2h`, `1 day` | elapsed time since the anchor; a day has 24 hours |
//! | `at` | `2026-03-01T09:00:00+01:00`, `2026-03-01 09:00` | one instant; without an offset, in the job's zone |
//!
//! When the clocks change, a cron schedule with one fixed time of day (`30 2 * * *`) runs exactly once on
//! each day: at the end of the gap if its time does not exist, and at the first of two equal times. A
//! schedule with several times (`*/15 2 * * *`, `0 2,14 * * *`) leaves out times that do not exist, and runs
//! at both of two equal times. If day of month and day of week are both restricted, either is enough.
//! croniter agrees, but runs a fixed time twice when the clocks go back; cron-parser agrees, but moves a fixed
//! time that does not exist by the length of the gap.
//! An `at` without an offset that does not exist is moved forward by the length of the gap; of two equal
//! times the first is meant.

mod cron_time;
mod parse;

use croner::Cron;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use lango_domain::automation::{Schedule, ScheduleKind};

use crate::time_text::absolute_time;

pub(crate) use parse::{interval as parse_interval, zone as parse_zone};

/// Occurrences that are compared to find the shortest distance of a schedule.
const COMPARED_OCCURRENCES: usize = 400;
/// Occurrences that are shown for a schedule.
const SHOWN_OCCURRENCES: usize = 3;

/// A schedule that was read.
#[derive(Clone, Debug)]
pub struct Timetable {
    zone: TimeZone,
    rule: TimetableRule,
}

#[derive(Clone, Debug)]
enum TimetableRule {
    Cron(Box<Cron>),
    Every {
        interval: SignedDuration,
        anchor: Timestamp,
    },
    At(Timestamp),
}

/// The reason why a schedule is refused, for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("the schedule is empty")]
    Empty,
    #[error(
        "a cron schedule has five fields (minute hour day month weekday), not {0}; seconds and years are not supported"
    )]
    FieldCount(usize),
    #[error("a cron schedule has no time zone of its own; set `timezone` instead of `{0}`")]
    ZoneInCron(String),
    #[error("`{text}` is not a cron schedule: {reason}")]
    InvalidCron { text: String, reason: String },
    #[error("`{0}` never happens")]
    Impossible(String),
    #[error(
        "`{0}` is not an interval; write for example 15m, 2h or \"1 day\"; use a cron schedule for months"
    )]
    InvalidInterval(String),
    #[error(
        "`{0}` is not a time; write for example 2026-03-01T09:00:00+01:00, or 2026-03-01 09:00 in the time zone of the job; \
         words such as \"tomorrow at 9\" belong into `when`"
    )]
    InvalidInstant(String),
    #[error("{0} is in the past")]
    Past(String),
    #[error(
        "it would run every {shortest:#}, which is too often; the shortest interval is {allowed:#}"
    )]
    TooFrequent {
        shortest: SignedDuration,
        allowed: SignedDuration,
    },
    #[error(
        "`{name}` is not a known time zone{suggestion}; write for example Europe/Berlin or UTC"
    )]
    UnknownZone { name: String, suggestion: String },
}

impl Timetable {
    /// Reads a schedule. An occurrence to come is not required; see [`Timetable::check`].
    pub fn read(schedule: &Schedule) -> Result<Self, ScheduleError> {
        let zone = parse::zone(&schedule.time_zone)?;
        let text = schedule.text.trim();
        if text.is_empty() {
            return Err(ScheduleError::Empty);
        }
        let rule = match schedule.kind {
            ScheduleKind::Cron => TimetableRule::Cron(Box::new(parse::cron(text)?)),
            ScheduleKind::Every => TimetableRule::Every {
                interval: parse::interval(text)?,
                anchor: schedule.anchor,
            },
            ScheduleKind::At => TimetableRule::At(parse::instant(text, &zone)?),
        };
        Ok(Self { zone, rule })
    }

    /// Checks that the schedule has an occurrence after `now`, and none that follow each other faster than
    /// `shortest`. Returns the next three.
    pub fn check(
        &self,
        schedule: &Schedule,
        now: Timestamp,
        shortest: SignedDuration,
    ) -> Result<Vec<Zoned>, ScheduleError> {
        let next: Vec<Timestamp> = self
            .occurrences_after(now)
            .take(COMPARED_OCCURRENCES)
            .collect();
        if let (TimetableRule::At(at), true) = (&self.rule, next.is_empty()) {
            let at = at.to_zoned(self.zone.clone());
            return Err(ScheduleError::Past(absolute_time(&at)));
        }
        if next.is_empty() {
            return Err(ScheduleError::Impossible(schedule.text.clone()));
        }
        let distances = next.windows(2).map(|pair| pair[1].duration_since(pair[0]));
        match distances.min() {
            Some(distance) if distance < shortest => Err(ScheduleError::TooFrequent {
                shortest: distance,
                allowed: shortest,
            }),
            _ => Ok(self.in_zone(next.into_iter().take(SHOWN_OCCURRENCES))),
        }
    }

    /// Returns the next three occurrences after a time, in the schedule's zone.
    pub fn upcoming(&self, after: Timestamp) -> Vec<Zoned> {
        self.in_zone(self.occurrences_after(after).take(SHOWN_OCCURRENCES))
    }

    fn in_zone(&self, times: impl Iterator<Item = Timestamp>) -> Vec<Zoned> {
        times.map(|at| at.to_zoned(self.zone.clone())).collect()
    }

    /// Returns the occurrences after a time, each later than the one before.
    pub fn occurrences_after(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.next_after(after), |last| self.next_after(*last))
    }

    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            TimetableRule::Cron(cron) => cron_time::next_after(cron, &self.zone, after),
            TimetableRule::Every { interval, anchor } => next_multiple(*anchor, *interval, after),
            TimetableRule::At(at) => (*at > after).then_some(*at),
        }
    }
}

/// Returns the first `anchor + n * interval` after a time, with `n` at least 1.
fn next_multiple(
    anchor: Timestamp,
    interval: SignedDuration,
    after: Timestamp,
) -> Option<Timestamp> {
    let elapsed = after.duration_since(anchor).as_nanos().max(0);
    let interval = interval.as_nanos();
    let number = elapsed.checked_div(interval)?.checked_add(1)?;
    let nanoseconds = anchor
        .as_nanosecond()
        .checked_add(number.checked_mul(interval)?)?;
    Timestamp::from_nanosecond(nanoseconds).ok()
}
