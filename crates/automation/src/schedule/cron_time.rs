//! The next time of a cron schedule in a zone.
//!
//! The library searches times of the clock only; the changes of the clocks are handled here, one stretch of
//! equal offset after the other. Its own search in a zone with gaps (4.0.2) runs `0 1 * * *` a second time
//! at the end of a gap from 2 to 3.

use croner::{Cron, JobType};
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// Most stretches to search. A zone has two a year, and no schedule is rarer than once in some decades.
const MAX_STRETCHES: usize = 400;
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// Returns the first occurrence after a time; see [`super`] for the rules.
pub(super) fn next_after(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let is_fixed = cron.determine_job_type() == JobType::FixedTime;
    // The start of the search, and whether it may be found itself.
    let (mut from, mut inclusive) = (after, false);
    for _ in 0..MAX_STRETCHES {
        let offset = zone.to_offset(from);
        let mut start = (offset.to_datetime(from), inclusive);
        if let Some(end) = repeated_until(zone, from, offset)
            && is_fixed
            && start.0 < end
        {
            start = (end, true);
        }
        let found = search(cron, start)?;
        let Some(change) = zone.following(from).next() else {
            return offset.to_timestamp(found).ok();
        };
        match offset.to_timestamp(found) {
            Ok(at) if at < change.timestamp() => return Some(at),
            _ => {}
        }
        let gap_end = change.offset().to_datetime(change.timestamp());
        let gap_start = offset.to_datetime(change.timestamp());
        if is_fixed && (gap_start..gap_end).contains(&found) {
            return Some(change.timestamp());
        }
        (from, inclusive) = (change.timestamp(), true);
    }
    None
}

/// Returns the time of the clock until which times are repeated, if the clocks went back at the start of
/// the stretch with this instant.
fn repeated_until(zone: &TimeZone, at: Timestamp, offset: Offset) -> Option<DateTime> {
    let change = zone.preceding(at.checked_add(INSTANT).ok()?).next()?;
    let earlier = zone.to_offset(change.timestamp().checked_sub(INSTANT).ok()?);
    (earlier > offset).then(|| earlier.to_datetime(change.timestamp()))
}

/// Returns the next time of the clock that fits.
fn search(cron: &Cron, (start, inclusive): (DateTime, bool)) -> Option<DateTime> {
    let start = start.to_zoned(TimeZone::UTC).ok()?;
    let found = cron.find_next_occurrence(&start, inclusive).ok()?;
    // Guards against a loop, should the library ever stand still.
    (found > start || (inclusive && found == start)).then(|| found.datetime())
}
