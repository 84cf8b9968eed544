//! Conversions between rows and values.

use jiff::{SignedDuration, Timestamp};
use lango_domain::Label;
use lango_domain::automation::{
    Delivery, DeliveryId, DeliveryMessage, DeliveryState, InboxEntry, InboxId, Job, JobId,
    LeaseNumber, Run, RunId, RunStep, SchedulerLease,
};
use lango_domain::event::{Principal, SessionId};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::damage::display_column;

pub(super) const JOB_COLUMNS: &str =
    "id, principal, name, schedule, catch_up, grace_seconds, overlap,
    enabled, spec, created, version, decided_until, next_due";

/// The last column is the worst state of the run's deliveries.
pub(super) const RUN_COLUMNS: &str =
    "id, kind, job, principal, name, due, state, reason, attempt, lease, session, created, started,
    ended, resume_at, is_cancel_requested, spec, result, error, label, active_ms,
    (SELECT min(CASE d.state WHEN 'failed' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END)
        FROM deliveries d WHERE d.run = runs.id)";

pub(super) const STEP_COLUMNS: &str =
    "run, step, state, reason, attempt, started, ended, session, result,
    error, label, is_repeated, decision, question, deadline";

pub(super) const DELIVERY_COLUMNS: &str =
    "id, run, principal, occasion, target, message, state, attempts,
    created, next_try, last_error";

pub(super) const INBOX_COLUMNS: &str = "id, at, principal, message, session, is_read";

pub(super) fn job(row: &Row<'_>) -> rusqlite::Result<Job> {
    Ok(Job {
        id: JobId::new(number(row, 0)?),
        principal: Principal::new(row.get::<_, String>(1)?),
        name: row.get(2)?,
        schedule: json(row, 3)?,
        catch_up: word(row, 4)?,
        grace: SignedDuration::from_secs(row.get(5)?),
        overlap: word(row, 6)?,
        enabled: row.get(7)?,
        spec: json(row, 8)?,
        created: time(row, 9)?,
        version: number(row, 10)?,
        decided_until: time(row, 11)?,
        next_due: optional_time(row, 12)?,
    })
}

pub(super) fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let delivery = match row.get::<_, Option<i64>>(21)? {
        None => None,
        Some(0) => Some(DeliveryState::Failed),
        Some(1) => Some(DeliveryState::Pending),
        Some(_) => Some(DeliveryState::Delivered),
    };
    Ok(Run {
        id: RunId::new(number(row, 0)?),
        kind: word(row, 1)?,
        job: optional_number(row, 2)?.map(JobId::new),
        principal: Principal::new(row.get::<_, String>(3)?),
        name: row.get(4)?,
        due: time(row, 5)?,
        state: word(row, 6)?,
        reason: row.get(7)?,
        attempt: row.get(8)?,
        lease: optional_number(row, 9)?.map(LeaseNumber::new),
        session: session(row, 10)?,
        created: time(row, 11)?,
        started: optional_time(row, 12)?,
        ended: optional_time(row, 13)?,
        resume_at: optional_time(row, 14)?,
        is_cancel_requested: row.get(15)?,
        spec: json(row, 16)?,
        result: row.get(17)?,
        error: row.get(18)?,
        label: label(row, 19)?,
        active: SignedDuration::from_millis(row.get(20)?),
        delivery,
    })
}

pub(super) fn step(row: &Row<'_>) -> rusqlite::Result<RunStep> {
    let decision = match row.get_ref(12)? {
        ValueRef::Null => None,
        _ => Some(word(row, 12)?),
    };
    Ok(RunStep {
        run: RunId::new(number(row, 0)?),
        step: row.get(1)?,
        state: word(row, 2)?,
        reason: row.get(3)?,
        attempt: row.get(4)?,
        started: optional_time(row, 5)?,
        ended: optional_time(row, 6)?,
        session: session(row, 7)?,
        result: row.get(8)?,
        error: row.get(9)?,
        label: label(row, 10)?,
        is_repeated: row.get(11)?,
        decision,
        question: row.get(13)?,
        deadline: optional_time(row, 14)?,
    })
}

pub(super) fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        id: DeliveryId::new(number(row, 0)?),
        run: optional_number(row, 1)?.map(RunId::new),
        principal: Principal::new(row.get::<_, String>(2)?),
        occasion: word(row, 3)?,
        target: row.get(4)?,
        message: json(row, 5)?,
        state: word(row, 6)?,
        attempts: row.get(7)?,
        created: time(row, 8)?,
        next_try: time(row, 9)?,
        last_error: row.get(10)?,
    })
}

pub(super) fn inbox_entry(row: &Row<'_>) -> rusqlite::Result<InboxEntry> {
    let message: DeliveryMessage = json(row, 3)?;
    Ok(InboxEntry {
        id: InboxId::new(number(row, 0)?),
        at: time(row, 1)?,
        principal: Principal::new(row.get::<_, String>(2)?),
        from: message.from,
        title: message.title,
        text: message.text,
        session: session(row, 4)?,
        is_read: row.get(5)?,
        label: message.label,
    })
}

pub(super) fn lease(row: &Row<'_>) -> rusqlite::Result<SchedulerLease> {
    Ok(SchedulerLease {
        number: LeaseNumber::new(number(row, 0)?),
        owner: row.get(1)?,
        acquired: time(row, 2)?,
        until: time(row, 3)?,
    })
}

/// Returns a function that names a row of a table for reports of damage.
pub(super) fn row_name(kind: &'static str) -> impl Fn(&Row<'_>) -> String {
    move |row| format!("{kind} {}", display_column(row, 0))
}

/// Returns the name under which a value of a plain enum is stored.
pub(super) fn to_word(value: impl Serialize) -> rusqlite::Result<String> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Ok(word),
        Ok(_) => Err(rusqlite::Error::ToSqlConversionFailure(
            "not a plain name".into(),
        )),
        Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(error.into())),
    }
}

pub(super) fn to_json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Plain labels are stored as NULL.
pub(super) fn label_column(label: &Label) -> rusqlite::Result<Option<String>> {
    (!label.is_plain()).then(|| to_json(label)).transpose()
}

fn word<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let word = Value::String(row.get(at)?);
    serde_json::from_value(word).map_err(|error| unreadable(at, error))
}

fn json<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    serde_json::from_str(row.get_ref(at)?.as_str()?).map_err(|error| unreadable(at, error))
}

fn label(row: &Row<'_>, at: usize) -> rusqlite::Result<Label> {
    match row.get_ref(at)? {
        ValueRef::Null => Ok(Label::default()),
        _ => json(row, at),
    }
}

fn session(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<SessionId>> {
    Ok(row.get::<_, Option<String>>(at)?.map(SessionId::new))
}

pub(super) fn time(row: &Row<'_>, at: usize) -> rusqlite::Result<Timestamp> {
    let text = row.get_ref(at)?.as_str()?;
    text.parse().map_err(|error| unreadable(at, error))
}

pub(super) fn optional_time(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Timestamp>> {
    match row.get_ref(at)? {
        ValueRef::Null => Ok(None),
        _ => time(row, at).map(Some),
    }
}

pub(super) fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map_err(|error| unreadable(at, error))
}

fn optional_number(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
    match row.get_ref(at)? {
        ValueRef::Null => Ok(None),
        _ => number(row, at).map(Some),
    }
}

fn unreadable(at: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error))
}
