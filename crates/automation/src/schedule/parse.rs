//! Reading the texts of schedules.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Zoned};
use lango_text::suggest::did_you_mean;

use super::ScheduleError;

/// The longest cron text. No one writes a longer one, and its lists are expanded.
const MAX_CRON_CHARS: usize = 500;

pub(crate) fn zone(name: &str) -> Result<TimeZone, ScheduleError> {
    let name = name.trim();
    TimeZone::get(name).map_err(|_| {
        let known: Vec<String> = jiff::tz::db()
            .available()
            .map(|name| name.to_string())
            .collect();
        let suggestion = did_you_mean(name, known.iter().map(String::as_str));
        ScheduleError::UnknownZone {
            name: name.to_owned(),
            suggestion: suggestion.map_or_else(String::new, |suggestion| format!("; {suggestion}")),
        }
    })
}

pub(super) fn cron(text: &str) -> Result<Cron, ScheduleError> {
    let invalid = |reason: String| ScheduleError::InvalidCron {
        text: lango_text::sanitize::truncated_line(text, 80),
        reason,
    };
    if text.chars().count() > MAX_CRON_CHARS {
        return Err(invalid("it is too long".to_owned()));
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if let Some(zone) = fields.iter().find(|field| field.contains('=')) {
        return Err(ScheduleError::ZoneInCron((*zone).to_owned()));
    }
    let is_nickname = fields.len() == 1 && text.starts_with('@');
    if is_nickname && !NICKNAMES.contains(&text.to_lowercase().as_str()) {
        let near = did_you_mean(&text.to_lowercase(), NICKNAMES);
        let known = || format!("known ones are {}", NICKNAMES.join(", "));
        return Err(invalid(near.unwrap_or_else(known)));
    }
    if fields.len() != 5 && !is_nickname {
        return Err(ScheduleError::FieldCount(fields.len()));
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    parser
        .parse(&fields.join(" "))
        .map_err(|error| invalid(wrong_field(&fields).unwrap_or_else(|| error.to_string())))
}

const NICKNAMES: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// A field of a cron schedule: its name, its numbers, and names for them.
struct CronField {
    name: &'static str,
    min: u32,
    max: u32,
    words: &'static [&'static str],
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const CRON_FIELDS: [CronField; 5] = [
    CronField {
        name: "minute",
        min: 0,
        max: 59,
        words: &[],
    },
    CronField {
        name: "hour",
        min: 0,
        max: 23,
        words: &[],
    },
    CronField {
        name: "day of the month",
        min: 1,
        max: 31,
        words: &["L", "W", "LW"],
    },
    CronField {
        name: "month",
        min: 1,
        max: 12,
        words: &MONTHS,
    },
    CronField {
        name: "day of the week",
        min: 0,
        max: 7,
        words: &WEEKDAYS,
    },
];

/// Explains the first part of a field that has no meaning there.
fn wrong_field(fields: &[&str]) -> Option<String> {
    CRON_FIELDS.iter().zip(fields).find_map(|(field, text)| {
        let is_part = |part: &&str| !part.is_empty() && !matches!(*part, "*" | "?");
        let values = text.split(',').flat_map(|item| {
            // The step after a slash is a count, not a value.
            let (range, _) = item.split_once('/').unwrap_or((item, ""));
            range.split('-')
        });
        values
            .filter(is_part)
            .find_map(|value| field.explain(value))
    })
}

impl CronField {
    /// Returns the reason why the field cannot have this value.
    fn explain(&self, value: &str) -> Option<String> {
        let Self {
            name,
            min,
            max,
            words,
        } = self;
        if let Ok(number) = value.parse::<u32>() {
            let is_wrong = !(*min..=*max).contains(&number);
            return is_wrong.then(|| format!("the {name} is {min} to {max}, not {value}"));
        }
        if !value.chars().all(|c| c.is_ascii_alphabetic()) {
            return None;
        }
        let upper = value.to_uppercase();
        if words.contains(&upper.as_str()) {
            return None;
        }
        let short = words.iter().find(|word| upper.starts_with(**word));
        Some(match short {
            Some(short) => format!("the {name} is written `{short}`, not `{value}`"),
            None if words.is_empty() => format!("the {name} is {min} to {max}, not `{value}`"),
            None => format!("`{value}` is no {name}; write {}", words.join(", ")),
        })
    }
}

pub(crate) fn interval(text: &str) -> Result<SignedDuration, ScheduleError> {
    let invalid = || ScheduleError::InvalidInterval(text.to_owned());
    let span: Span = text.parse().map_err(|_| invalid())?;
    let relative = SpanRelativeTo::days_are_24_hours();
    let interval = span.to_duration(relative).map_err(|_| invalid())?;
    match interval.is_positive() {
        true => Ok(interval),
        false => Err(invalid()),
    }
}

pub(super) fn instant(text: &str, zone: &TimeZone) -> Result<Timestamp, ScheduleError> {
    let invalid = || ScheduleError::InvalidInstant(text.to_owned());
    // A zone in the text must fit its offset.
    if text.contains('[') {
        return text
            .parse::<Zoned>()
            .map(|at| at.timestamp())
            .map_err(|_| invalid());
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let civil: DateTime = text.parse().map_err(|_| invalid())?;
    // A date alone would mean midnight, which no one means.
    if !text.contains(':') {
        return Err(invalid());
    }
    let zoned = civil.to_zoned(zone.clone()).map_err(|_| invalid())?;
    Ok(zoned.timestamp())
}
