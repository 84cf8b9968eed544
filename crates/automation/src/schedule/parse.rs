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
    if fields.len() != 5 && !is_nickname {
        return Err(ScheduleError::FieldCount(fields.len()));
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    parser
        .parse(&fields.join(" "))
        .map_err(|error| invalid(error.to_string()))
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
