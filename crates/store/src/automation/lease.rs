//! The scheduler's lease.

use futures::future::FutureExt;
use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::automation::{LeaseClaim, LeaseNumber, LeaseOutcome, LeaseStore, SchedulerLease};
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, OptionalExtension, params};

use super::rows;
use crate::event_rows::sortable_time;
use crate::store::SqliteStore;
use crate::writer::WriteError;

/// Fails unless this is the number of the newest lease. Called first in every write of the scheduler, in
/// the same transaction.
pub(super) fn check(connection: &Connection, lease: LeaseNumber) -> Result<(), WriteError> {
    let sql = "SELECT 1 FROM scheduler_lease WHERE number = ?1";
    let mut query = connection.prepare_cached(sql)?;
    match query.exists([lease.get() as i64])? {
        true => Ok(()),
        false => Err(StoreError::LeaseLost.into()),
    }
}

impl LeaseStore for SqliteStore {
    fn acquire_lease(&self, claim: LeaseClaim) -> StoreFuture<'_, LeaseOutcome> {
        async move {
            // Only a process that has ended loses its lock, whatever the clocks say.
            let lock = self.scheduler_lock().try_take();
            let ended = lock.as_ref().and_then(|lock| lock.lease);
            let outcome = self
                .batch(move |connection| acquire(connection, claim, ended))
                .await?;
            if let LeaseOutcome::Acquired(lease) = &outcome {
                self.scheduler_lock().keep(lease.number, lock);
            }
            Ok(outcome)
        }
        .boxed()
    }

    fn renew_lease(&self, lease: LeaseNumber, until: Timestamp) -> StoreFuture<'_, ()> {
        async move {
            let renewed = self.batch(move |connection| {
                check(connection, lease)?;
                let sql = "UPDATE scheduler_lease SET until = ?1";
                connection.execute(sql, [sortable_time(until)])?;
                Ok(())
            });
            let renewed = renewed.await;
            match &renewed {
                Ok(()) => self.scheduler_lock().keep_trying(lease),
                Err(StoreError::LeaseLost) => self.scheduler_lock().release(lease),
                Err(_) => {}
            }
            renewed
        }
        .boxed()
    }

    fn release_lease(&self, lease: LeaseNumber) -> StoreFuture<'_, ()> {
        async move {
            self.batch(move |connection| {
                // Free for every clock, even one that goes back.
                let released = sortable_time(Timestamp::UNIX_EPOCH);
                let sql = "UPDATE scheduler_lease SET until = ?2 WHERE number = ?1";
                connection.execute(sql, params![lease.get() as i64, released])?;
                Ok(())
            })
            .await?;
            self.scheduler_lock().release(lease);
            Ok(())
        }
        .boxed()
    }

    fn lease(&self) -> StoreFuture<'_, Option<SchedulerLease>> {
        async move {
            let ended = self.scheduler_lock().ended_lease();
            let last = self.read(|connection| find(connection)).await?;
            // The lease of a process that was killed is over, though it has not expired.
            Ok(last.map(|last| match ended == Some(last.number) {
                true => SchedulerLease {
                    until: Timestamp::UNIX_EPOCH.min(last.until),
                    ..last
                },
                false => last,
            }))
        }
        .boxed()
    }
}

/// `ended` is the lease of a process that has ended for certain.
fn acquire(
    connection: &Connection,
    claim: LeaseClaim,
    ended: Option<LeaseNumber>,
) -> Result<LeaseOutcome, WriteError> {
    let last = find(connection)?;
    let is_abandoned = |last: &SchedulerLease| {
        ended == Some(last.number) || claim.abandoned.as_ref() == Some(last)
    };
    let is_held = last
        .as_ref()
        .is_some_and(|last| last.until > claim.at && !is_abandoned(last));
    match last {
        Some(last) if is_held => Ok(LeaseOutcome::HeldBy(last)),
        last => {
            let number = last.map_or(0, |last| last.number.get()) + 1;
            let (acquired, until) = (sortable_time(claim.at), sortable_time(claim.until));
            let sql = "INSERT OR REPLACE INTO scheduler_lease (id, number, owner, acquired, until)
                VALUES (1, ?1, ?2, ?3, ?4)";
            connection.execute(sql, params![number as i64, claim.owner, acquired, until])?;
            Ok(LeaseOutcome::Acquired(SchedulerLease {
                number: LeaseNumber::new(number),
                owner: claim.owner,
                acquired: claim.at,
                until: claim.until,
            }))
        }
    }
}

fn find(connection: &Connection) -> rusqlite::Result<Option<SchedulerLease>> {
    let sql = "SELECT number, owner, acquired, until FROM scheduler_lease";
    connection.query_row(sql, [], rows::lease).optional()
}
