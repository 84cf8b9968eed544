//! Times for people: absolute with their zone, and relative to now.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Describes a time, as in `tomorrow, Thu 19 Nov 2026 09:00 Europe/Berlin, in 7 h 32 min`.
pub fn describe_time(at: &Zoned, now: Timestamp) -> String {
    let today = now.to_zoned(at.time_zone().clone()).date();
    let day = match today.until(at.date()).map(|span| span.get_days()) {
        Ok(0) => "today, ",
        Ok(1) => "tomorrow, ",
        Ok(-1) => "yesterday, ",
        _ => "",
    };
    format!(
        "{day}{}, {}",
        absolute_time(at),
        relative_time(at.timestamp(), now)
    )
}

/// Formats a time with its day and zone, as in `Thu 19 Nov 2026 09:00 Europe/Berlin`. Seconds are shown if
/// there are any.
pub fn absolute_time(at: &Zoned) -> String {
    let format = match at.second() {
        0 => "%a %-d %b %Y %H:%M",
        _ => "%a %-d %b %Y %H:%M:%S",
    };
    format!("{} {}", at.strftime(format), zone_name(at))
}

fn zone_name(at: &Zoned) -> String {
    match at.time_zone().iana_name() {
        Some(name) => name.to_owned(),
        None => format!("UTC{}", at.strftime("%:z")),
    }
}

/// Formats the distance of a time from now: `in 7 h 32 min`, `3 days ago`, `now`.
pub fn relative_time(at: Timestamp, now: Timestamp) -> String {
    let distance = at.duration_since(now);
    match distance.as_secs() {
        0 => "now".to_owned(),
        1.. => format!("in {}", format_span(distance)),
        _ => format!("{} ago", format_span(distance)),
    }
}

/// Formats a duration with its two largest units, rounded to the smaller one.
pub fn format_span(duration: SignedDuration) -> String {
    let exact = duration.as_secs_f64().abs().round() as i64;
    let unit = match exact {
        DAY.. => HOUR,
        HOUR.. => MINUTE,
        _ => 1,
    };
    let seconds = (exact + unit / 2) / unit * unit;
    let (days, hours) = (seconds / DAY, seconds % DAY / HOUR);
    let (minutes, rest) = (seconds % HOUR / MINUTE, seconds % MINUTE);
    let day_unit = if days == 1 { "day" } else { "days" };
    let parts = if days > 0 {
        [(days, day_unit), (hours, "h")]
    } else if hours > 0 {
        [(hours, "h"), (minutes, "min")]
    } else if minutes > 0 {
        [(minutes, "min"), (rest, "s")]
    } else {
        [(rest, "s"), (0, "")]
    };
    let [first, second] = parts.map(|(count, unit)| format!("{count} {unit}"));
    match parts[1].0 {
        0 => first,
        _ => format!("{first} {second}"),
    }
}

/// Returns a time in a zone by its IANA name, or in UTC if the zone is unknown.
pub fn in_zone(at: Timestamp, zone: &str) -> Zoned {
    at.to_zoned(TimeZone::get(zone).unwrap_or(TimeZone::UTC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_and_relative() {
        let now: Timestamp = "2026-11-18T00:28:00Z".parse().unwrap();
        for (at, expected) in [
            (
                "2026-11-19T08:00:00Z",
                "tomorrow, Thu 19 Nov 2026 09:00 Europe/Berlin, in 1 day 8 h",
            ),
            (
                "2026-11-18T08:00:00Z",
                "today, Wed 18 Nov 2026 09:00 Europe/Berlin, in 7 h 32 min",
            ),
            (
                "2026-11-18T00:29:05Z",
                "today, Wed 18 Nov 2026 01:29:05 Europe/Berlin, in 1 min 5 s",
            ),
            (
                "2026-11-17T00:28:00Z",
                "yesterday, Tue 17 Nov 2026 01:28 Europe/Berlin, 1 day ago",
            ),
            (
                "2027-03-01T08:00:00Z",
                "Mon 1 Mar 2027 09:00 Europe/Berlin, in 103 days 8 h",
            ),
        ] {
            let at = in_zone(at.parse().unwrap(), "Europe/Berlin");
            assert_eq!(describe_time(&at, now), expected);
        }
        assert_eq!(relative_time(now, now), "now");
        for (millis, expected) in [
            (59_990, "1 min"),
            (7_199_950, "2 h"),
            (604_799_000, "7 days"),
            (3_599_000, "59 min 59 s"),
        ] {
            assert_eq!(format_span(SignedDuration::from_millis(millis)), expected);
        }
    }
}
