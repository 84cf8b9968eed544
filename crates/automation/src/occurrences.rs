//! Decides which occurrences of a job run. Pure: everything it needs is passed in.

use jiff::{SignedDuration, Timestamp};
use lango_domain::Label;
use lango_domain::automation::{
    CatchUp, DeliveryMessage, DeliveryOccasion, Job, JobAction, NewDelivery, NewOccurrence,
    OccurrenceDecision, OverlapRule, Run, RunId, RunState,
};

use crate::run_report::failure_targets;
use crate::schedule::Timetable;

/// An occurrence that is at most this late counts as on time: it was due while the scheduler was busy or
/// the machine woke up.
const ON_TIME: SignedDuration = SignedDuration::from_mins(2);
/// Occurrences that one decision covers. The rest follows in the next one.
const MAX_OCCURRENCES: usize = 10_000;
/// Occurrences of one decision that do not run and have a row each. Earlier ones share one row.
const MAX_IDLE_ROWS: usize = 50;
/// Most runs of a job that are not over.
pub(crate) const MAX_QUEUED: usize = 100;

/// Decides about the occurrences of a job through `now`. `open` are its runs that are not over.
pub(crate) fn decide(
    job: &Job,
    timetable: &Timetable,
    open: &[Run],
    now: Timestamp,
) -> OccurrenceDecision {
    let dues: Vec<Timestamp> = timetable
        .occurrences_after(job.decided_until)
        .take_while(|due| *due <= now)
        .take(MAX_OCCURRENCES)
        .collect();
    let decided_until = dues.last().copied().unwrap_or(job.decided_until);
    let mut occurrences = catch_up(job, &dues, now);
    let deliveries = missed_notices(job, &occurrences, now);
    let replaced = apply_overlap(job, &mut occurrences, open);
    OccurrenceDecision {
        job: job.id,
        job_version: job.version,
        decided_until,
        next_due: timetable.next_after(decided_until),
        occurrences: with_one_row_for_many(occurrences),
        replaced,
        deliveries,
        at: now,
    }
}

fn catch_up(job: &Job, dues: &[Timestamp], now: Timestamp) -> Vec<NewOccurrence> {
    let is_complete = dues.len() < MAX_OCCURRENCES;
    let age = |due: Timestamp| now.duration_since(due);
    // Of several that are on time, the scheduler was too late for all but the last one.
    let last = dues.last().copied();
    let is_on_time = |due: Timestamp| {
        age(due) <= ON_TIME && (last == Some(due) || job.overlap == OverlapRule::Queue)
    };
    let in_grace = |due: Timestamp| age(due) <= job.grace;
    // With `once`, the last occurrence stands for all before it. If this decision does not reach the
    // present, the last one is still to come.
    let stand_in = last.filter(|last| in_grace(*last));
    let is_caught_up = stand_in.is_some() || !is_complete;
    let decide_one = |due: Timestamp| {
        let (state, reason) = match job.catch_up {
            _ if is_on_time(due) => (RunState::Queued, None),
            CatchUp::All if in_grace(due) => (RunState::Queued, None),
            CatchUp::Once if is_complete && stand_in == Some(due) => (RunState::Queued, None),
            CatchUp::Once if is_caught_up => (RunState::Missed, Some(STOOD_IN.to_owned())),
            CatchUp::Skip => (RunState::Skipped, Some(NOT_CAUGHT_UP.to_owned())),
            CatchUp::Once | CatchUp::All => (RunState::Missed, Some(too_late(job))),
        };
        NewOccurrence { due, state, reason }
    };
    dues.iter().copied().map(decide_one).collect()
}

const STOOD_IN: &str = "due while no scheduler ran; a later occurrence stands in for it";
const NOT_CAUGHT_UP: &str = "due while no scheduler ran, and catch_up is skip";

fn too_late(job: &Job) -> String {
    format!(
        "due while no scheduler ran, and too late to catch up (grace {:#})",
        job.grace
    )
}

/// Applies the overlap rule to the occurrences that would run. Returns the runs that are replaced.
fn apply_overlap(job: &Job, occurrences: &mut [NewOccurrence], open: &[Run]) -> Vec<RunId> {
    let is_queued = |occurrence: &NewOccurrence| occurrence.state == RunState::Queued;
    let mut open_count = open.len();
    let last_queued = occurrences.iter().rposition(is_queued);
    for (at, occurrence) in occurrences.iter_mut().enumerate() {
        if !is_queued(occurrence) {
            continue;
        }
        let reason = match job.overlap {
            OverlapRule::Replace if Some(at) != last_queued => {
                Some("a later occurrence replaced it".to_owned())
            }
            OverlapRule::Queue if open_count >= MAX_QUEUED => {
                Some(format!("{open_count} runs of the job were not over"))
            }
            OverlapRule::Skip if open_count > 0 && job.catch_up != CatchUp::All => {
                let earlier = open.first().map(|run| format!("run {}", run.id));
                let earlier = earlier.unwrap_or_else(|| "the occurrence before it".to_owned());
                Some(format!("{earlier} was not over"))
            }
            OverlapRule::Skip if open_count >= MAX_QUEUED => {
                Some(format!("{open_count} runs of the job were not over"))
            }
            _ => None,
        };
        match reason {
            Some(reason) => {
                (occurrence.state, occurrence.reason) = (RunState::Skipped, Some(reason));
            }
            None => open_count += 1,
        }
    }
    match job.overlap {
        OverlapRule::Replace if last_queued.is_some() => open.iter().map(|run| run.id).collect(),
        _ => Vec::new(),
    }
}

/// Leaves single rows to the newest occurrences that do not run, and one row to all before them.
fn with_one_row_for_many(occurrences: Vec<NewOccurrence>) -> Vec<NewOccurrence> {
    let is_idle = |occurrence: &NewOccurrence| occurrence.state != RunState::Queued;
    let idle_count = occurrences
        .iter()
        .filter(|occurrence| is_idle(occurrence))
        .count();
    let Some(surplus) = idle_count
        .checked_sub(MAX_IDLE_ROWS)
        .filter(|surplus| *surplus > 1)
    else {
        return occurrences;
    };
    let (mut merged, mut kept): (Option<(NewOccurrence, usize, Timestamp)>, _) = (None, Vec::new());
    for occurrence in occurrences {
        let count = merged.as_ref().map_or(0, |(_, count, _)| *count);
        if !is_idle(&occurrence) || count == surplus {
            kept.push(occurrence);
        } else {
            let due = occurrence.due;
            let (first, count, last) = merged.get_or_insert((occurrence, 0, due));
            (*count, *last) = (*count + 1, due);
            debug_assert!(first.due <= due);
        }
    }
    let merged = merged.map(|(first, count, last)| NewOccurrence {
        reason: first
            .reason
            .map(|reason| format!("{count} occurrences through {last}: {reason}")),
        ..first
    });
    merged.into_iter().chain(kept).collect()
}

/// Tells the user about occurrences for which nothing runs at all.
fn missed_notices(job: &Job, occurrences: &[NewOccurrence], now: Timestamp) -> Vec<NewDelivery> {
    let is_missed = |occurrence: &&NewOccurrence| {
        occurrence.state == RunState::Missed && occurrence.reason.as_deref() != Some(STOOD_IN)
    };
    let missed: Vec<&NewOccurrence> = occurrences.iter().filter(is_missed).collect();
    let Some(last) = missed.last() else {
        return Vec::new();
    };
    let count = match missed.len() {
        1 => "It was".to_owned(),
        count => format!("{count} runs were, the last one"),
    };
    let what = match &job.spec.action {
        JobAction::Reminder { text } => format!("\n\n{text}"),
        JobAction::Prompt { .. } | JobAction::Workflow { .. } => String::new(),
    };
    let text = format!("{count} due at {}: {}.{what}", last.due, too_late(job));
    let notice = |target: String| NewDelivery {
        run: None,
        principal: job.principal.clone(),
        occasion: DeliveryOccasion::Failure,
        target,
        message: DeliveryMessage {
            from: job.name.clone(),
            title: format!("Missed: {}", job.name),
            text: text.clone(),
            session: None,
            label: Label::default().joined(&job.spec.label),
            workspace: job.spec.workspace.clone(),
        },
        created: now,
    };
    failure_targets(&job.spec).into_iter().map(notice).collect()
}
