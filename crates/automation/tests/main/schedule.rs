//! Schedules, and what they do when the clocks change.

use jiff::civil::date;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use lango_automation::schedule::{ScheduleError, Timetable};
use lango_domain::automation::{Schedule, ScheduleKind};
use proptest::prelude::*;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

fn schedule(kind: ScheduleKind, text: &str, zone: &str) -> Schedule {
    Schedule {
        kind,
        text: text.to_owned(),
        time_zone: zone.to_owned(),
        anchor: "2026-01-01T00:00:00Z".parse().unwrap(),
    }
}

fn cron(text: &str, zone: &str) -> Timetable {
    Timetable::read(&schedule(ScheduleKind::Cron, text, zone)).unwrap()
}

fn check(kind: ScheduleKind, text: &str, now: &str) -> Result<Vec<String>, ScheduleError> {
    let schedule = schedule(kind, text, "Europe/Berlin");
    let next = Timetable::read(&schedule)?.check(&schedule, now.parse().unwrap(), MINUTE)?;
    Ok(next.iter().map(local).collect())
}

/// Formats the local time of the clock, with the offset.
fn local(at: &Zoned) -> String {
    at.strftime("%m-%d %H:%M%:z").to_string()
}

/// Returns the occurrences of a civil day.
fn on_day(text: &str, zone: &str, day: (i16, i8, i8)) -> Vec<String> {
    let start = date(day.0, day.1, day.2).in_tz(zone).unwrap();
    let end = start.checked_add(1.day()).unwrap();
    let before = start.timestamp() - SignedDuration::from_nanos(1);
    cron(text, zone)
        .occurrences_after(before)
        .take_while(|at| *at < end.timestamp())
        .map(|at| local(&at.to_zoned(start.time_zone().clone())))
        .collect()
}

#[test]
fn clocks_that_change_follow_the_documented_rules() {
    let berlin = "Europe/Berlin";
    let (spring, autumn) = ((2026, 3, 29), (2026, 10, 25));
    for (text, day, expected) in [
        // In the gap, a fixed time runs at its end; a list leaves the time out.
        ("30 2 * * *", spring, vec!["03-29 03:00+02:00"]),
        ("*/15 2 * * *", spring, vec![]),
        // In the fold, a fixed time runs once, the first time; a list at both.
        ("30 2 * * *", autumn, vec!["10-25 02:30+02:00"]),
        (
            "*/30 2 * * *",
            autumn,
            vec![
                "10-25 02:00+02:00",
                "10-25 02:30+02:00",
                "10-25 02:00+01:00",
                "10-25 02:30+01:00",
            ],
        ),
        ("0 2,14 * * *", spring, vec!["03-29 14:00+02:00"]),
        ("0 0 L * *", (2026, 2, 28), vec!["02-28 00:00+01:00"]),
        ("0 12 * * FRI#2", (2026, 3, 13), vec!["03-13 12:00+01:00"]),
        ("@daily", spring, vec!["03-29 00:00+01:00"]),
    ] {
        assert_eq!(on_day(text, berlin, day), expected, "{text} on {day:?}");
    }
}

#[test]
fn day_of_month_or_day_of_week_is_enough() {
    let now = "2026-02-01T00:00:00Z".parse().unwrap();
    let days: Vec<String> = cron("0 12 13 * FRI", "UTC")
        .occurrences_after(now)
        .take(5)
        .map(|at| at.strftime("%m-%d").to_string())
        .collect();
    assert_eq!(days, ["02-06", "02-13", "02-20", "02-27", "03-06"]);
}

#[test]
fn good_schedules_show_the_next_three_occurrences() {
    let now = "2026-03-27T06:59:30Z";
    for (kind, text, expected) in [
        (
            ScheduleKind::Cron,
            "0 8 * * MON-FRI",
            vec![
                "03-27 08:00+01:00",
                "03-30 08:00+02:00",
                "03-31 08:00+02:00",
            ],
        ),
        (
            ScheduleKind::Every,
            "12h",
            vec![
                "03-27 13:00+01:00",
                "03-28 01:00+01:00",
                "03-28 13:00+01:00",
            ],
        ),
        (
            ScheduleKind::At,
            "2026-03-29T09:00:00+02:00",
            vec!["03-29 09:00+02:00"],
        ),
        (
            ScheduleKind::At,
            "2026-03-29 09:00",
            vec!["03-29 09:00+02:00"],
        ),
        // Without an offset, a time that does not exist is moved forward.
        (
            ScheduleKind::At,
            "2026-03-29T02:30",
            vec!["03-29 03:30+02:00"],
        ),
        (
            ScheduleKind::At,
            "2026-10-25T02:30",
            vec!["10-25 02:30+02:00"],
        ),
        (
            ScheduleKind::At,
            "2026-03-29T09:00-05:00[America/New_York]",
            vec![],
        ),
    ] {
        let shown = check(kind, text, now);
        if expected.is_empty() {
            assert!(shown.is_err(), "{text}: the offset does not fit the zone");
        } else {
            assert_eq!(shown.unwrap(), expected, "{text}");
        }
    }
}

#[test]
fn bad_schedules_are_refused_with_a_reason() {
    use ScheduleKind::{At, Cron, Every};
    for (kind, text, reason) in [
        (Cron, "", "empty"),
        (Cron, "* * * *", "five fields"),
        (Cron, "0 0 8 * * MON", "five fields"),
        (Cron, "0 0 8 * * MON 2026", "five fields"),
        (Cron, "TZ=UTC 0 8 * * *", "`timezone`"),
        (Cron, "CRON_TZ=UTC 0 8 * * *", "`timezone`"),
        (Cron, "61 * * * *", "not a cron schedule"),
        (Cron, "0 25 * * *", "not a cron schedule"),
        (Cron, "0 8 * * FUNDAY", "not a cron schedule"),
        (Cron, "@reboot", "not a cron schedule"),
        (Cron, "0 0 30 2 *", "never happens"),
        (Cron, "0 0 31 4,6,9,11 *", "never happens"),
        (Every, "30s", "too often"),
        (Every, "0m", "not an interval"),
        (Every, "-1h", "not an interval"),
        (Every, "soon", "not an interval"),
        (Every, "1 month", "not an interval"),
        (Every, "99999999999999999999h", "not an interval"),
        (At, "yesterday", "not a time"),
        (At, "2026-03-29", "not a time"),
        (At, "2026-02-30 10:00", "not a time"),
        (At, "2026-03-01T09:00:00Z", "in the past"),
    ] {
        let error = check(kind, text, "2026-03-27T06:59:30Z").unwrap_err();
        assert!(error.to_string().contains(reason), "{text}: {error}");
    }
    let long = "1,".repeat(400) + "1 * * * *";
    assert!(check(Cron, &long, "2026-03-27T06:59:30Z").is_err());
}

#[test]
fn a_wrong_zone_is_refused_with_a_suggestion() {
    let wrong = schedule(ScheduleKind::Cron, "0 8 * * *", "Europe/Berlim");
    let error = Timetable::read(&wrong).unwrap_err().to_string();
    assert!(error.contains("did you mean `Europe/Berlin`"), "{error}");
}

#[test]
fn the_shortest_interval_is_a_setting() {
    let often = schedule(ScheduleKind::Cron, "*/5 * * * *", "UTC");
    let table = Timetable::read(&often).unwrap();
    let now = Timestamp::UNIX_EPOCH;
    assert!(
        table
            .check(&often, now, SignedDuration::from_mins(5))
            .is_ok()
    );
    let error = table
        .check(&often, now, SignedDuration::from_mins(10))
        .unwrap_err();
    assert!(error.to_string().contains("every 5m"), "{error}");
}

#[test]
fn intervals_count_from_their_anchor() {
    let every = schedule(ScheduleKind::Every, "1 day", "Europe/Berlin");
    let table = Timetable::read(&every).unwrap();
    let before = "2020-01-01T00:00:00Z".parse().unwrap();
    let first: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
    assert_eq!(table.next_after(before), Some(first));
    assert_eq!(
        table.next_after(first),
        Some(first + SignedDuration::from_hours(24))
    );
    assert_eq!(table.next_after(Timestamp::MAX), None);
}

/// The occurrences over 400 days in four zones are those of croniter and cron-parser, except where the
/// documented rules differ; see `tests/cron_oracle.py` and `tests/cron_oracle.mjs`.
#[test]
fn occurrences_equal_those_of_other_libraries() {
    let start = Timestamp::from_second(1_767_225_600).unwrap();
    let end = start + SignedDuration::from_hours(400 * 24);
    let modulus = (1_i128 << 61) - 1;
    for line in include_str!("../cron_oracle.txt").lines() {
        let [library, zone, text, count, checksum] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let times: Vec<i128> = cron(text, zone)
            .occurrences_after(start)
            .take_while(|at| *at <= end)
            .map(|at| i128::from(at.as_second()))
            .collect();
        let sum: i128 = (1..).zip(&times).map(|(number, time)| number * time).sum();
        let found = (times.len().to_string(), (sum % modulus).to_string());
        let expected = (count.to_owned(), checksum.to_owned());
        assert_eq!(found, expected, "{text} in {zone}, as {library}");
    }
}

const ZONES: [&str; 4] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
];

fn field(low: u32, high: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (low..=high).prop_map(|value| value.to_string()),
        1 => Just("*".to_owned()),
        1 => (2u32..=20).prop_map(|step| format!("*/{step}")),
        1 => (low..=high, low..=high).prop_map(|(a, b)| format!("{},{}", a.min(b), a.max(b))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Over 400 days in four zones: later and later, and always at a time of the clock that fits, except at
    /// the end of a gap.
    #[test]
    fn occurrences_are_monotonic_unique_and_fit_the_clock(
        minute in field(0, 59), hour in field(0, 23), weekday in prop_oneof![3 => Just("*".to_owned()), 1 => field(0, 6)],
        zone in 0..4usize, start in 0i64..365,
    ) {
        let zone = ZONES[zone];
        let table = cron(&format!("{minute} {hour} * * {weekday}"), zone);
        let start = Timestamp::from_second(1_767_225_600 + start * 86_400).unwrap();
        let end = start + SignedDuration::from_hours(400 * 24);
        let mut last = start;
        for at in table.occurrences_after(start).take_while(|at| *at < end).take(5_000) {
            prop_assert!(at > last, "{at} after {last}");
            last = at;
            let local = at.in_tz(zone).unwrap();
            let fits = |field: &str, value: i8| fits(field, value as u32);
            let is_gap_end = {
                let before = (at - SignedDuration::from_secs(1)).in_tz(zone).unwrap();
                before.offset() != local.offset()
            };
            prop_assert!(local.second() == 0);
            prop_assert!(
                is_gap_end || (fits(&minute, local.minute()) && fits(&hour, local.hour())),
                "{local} for {minute} {hour}"
            );
            prop_assert!(fits(&weekday, local.weekday().to_sunday_zero_offset()));
            // Asking again from in between finds the same occurrence.
            let between = at - SignedDuration::from_secs(30);
            prop_assert_eq!(table.next_after(between), Some(at));
        }
    }

    /// A fixed time of day runs exactly once on each day of 400.
    #[test]
    fn a_daily_time_runs_once_a_day(minute in 0i8..60, hour in 0i8..24, zone in 0..4usize) {
        let zone = ZONES[zone];
        let table = cron(&format!("{minute} {hour} * * *"), zone);
        let start = date(2026, 1, 1).in_tz(zone).unwrap();
        let before = start.timestamp() - SignedDuration::from_nanos(1);
        let days: Vec<_> = table
            .occurrences_after(before)
            .take(400)
            .map(|at| at.in_tz(zone).unwrap().date())
            .collect();
        let expected: Vec<_> = start.date().series(1.day()).take(400).collect();
        let wrong = days.iter().zip(&expected).find(|(day, expected)| day != expected);
        prop_assert_eq!(wrong, None);
    }
}

fn fits(field: &str, value: u32) -> bool {
    match field.split_once('/') {
        Some((_, step)) => value.is_multiple_of(step.parse().unwrap()),
        None => field == "*" || field.split(',').any(|part| part.parse() == Ok(value)),
    }
}
