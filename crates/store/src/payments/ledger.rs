//! The ledger: payments, their states, and the limits.

use futures::future::FutureExt;
use jiff::{Timestamp, ToSpan};
use lango_domain::event::Principal;
use lango_domain::payments::{
    AccountAddress, AccountNonceClaim, LimitKind, LimitUse, NewPayment, Payment, PaymentChange,
    PaymentId, PaymentLimits, PaymentQuery, PaymentState, Reservation, UsdcAmount,
};
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{COLUMNS, amount, integer, parsed, payment, purpose_column};
use crate::damage::display_column;
use crate::event_rows::sortable_time;
use crate::store::SqliteStore;
use crate::writer::WriteError;

/// Payments that are paid or can still be paid. A question that was not answered in time reserves nothing,
/// and an authorization that is void can no longer be used. The chain's time decides about the latter, so a
/// signed payment counts until the driver has asked the chain.
const COUNTS: &str = "(state IN ('approved', 'signed', 'sent', 'confirmed')
    OR (state = 'intended' AND answer_by > ?2)
    OR (state = 'reverted' AND valid_before + 120 > ?4))";

impl SqliteStore {
    pub(super) async fn insert_payment(
        &self,
        new: NewPayment,
        limits: PaymentLimits,
    ) -> Result<Reservation, lango_domain::StoreError> {
        self.batch(move |connection| reserve(connection, new, limits))
            .await
    }

    pub(super) async fn apply_change(
        &self,
        change: PaymentChange,
    ) -> Result<Option<Payment>, lango_domain::StoreError> {
        self.batch(move |connection| apply(connection, &change))
            .await
    }

    pub(super) async fn claim_nonce(
        &self,
        claim: AccountNonceClaim,
    ) -> Result<u64, lango_domain::StoreError> {
        self.batch(move |connection| claim_nonce(connection, &claim))
            .await
    }

    pub(super) fn find_payment<'a>(
        &'a self,
        principal: &'a Principal,
        column: &'static str,
        value: &'a str,
    ) -> StoreFuture<'a, Option<Payment>> {
        let (principal, value) = (principal.to_string(), value.to_owned());
        async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT {COLUMNS} FROM payments WHERE principal = ?1 AND {column} = ?2"
                );
                let found = connection.query_rows(&sql, [principal, value], row_name, payment)?;
                Ok(found.into_iter().next())
            })
            .await
        }
        .boxed()
    }

    pub(super) async fn query_payments(
        &self,
        query: PaymentQuery,
    ) -> Result<Vec<Payment>, lango_domain::StoreError> {
        self.read(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM payments WHERE principal = ?1 AND (?2 IS NULL OR state = ?2)
                ORDER BY created DESC, id DESC LIMIT ?3"
            );
            let values = params![
                query.principal.as_str(),
                query.state.map(PaymentState::name),
                integer(query.limit as u64)
            ];
            connection.query_rows(&sql, values, row_name, payment)
        })
        .await
    }

    pub(super) async fn query_undecided(
        &self,
        chain: u64,
        since: Timestamp,
    ) -> Result<Vec<Payment>, lango_domain::StoreError> {
        self.read(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM payments WHERE chain = ?1
                AND (state NOT IN ('confirmed', 'expired') OR updated > ?2) ORDER BY created, id"
            );
            let values = params![integer(chain), sortable_time(since)];
            connection.query_rows(&sql, values, row_name, payment)
        })
        .await
    }

    pub(super) fn query_limit_use<'a>(
        &'a self,
        principal: &'a Principal,
        to: Option<AccountAddress>,
        now: Timestamp,
    ) -> StoreFuture<'a, LimitUse> {
        let principal = principal.clone();
        async move {
            self.read(move |connection| limit_use(connection, &principal, to, now))
                .await
        }
        .boxed()
    }

    pub(super) fn query_paid_addresses<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<AccountAddress>> {
        let principal = principal.to_string();
        async move {
            self.read(move |connection| {
                let sql = "SELECT DISTINCT recipient FROM payments
                    WHERE principal = ?1 AND state = 'confirmed' ORDER BY recipient";
                connection.query_rows(sql, [principal], row_name, |row| parsed(row, 0))
            })
            .await
        }
        .boxed()
    }
}

fn row_name(row: &rusqlite::Row<'_>) -> String {
    format!("payment {}", display_column(row, 0))
}

fn reserve(
    connection: &Connection,
    new: NewPayment,
    limits: PaymentLimits,
) -> Result<Reservation, WriteError> {
    let sql = format!("SELECT {COLUMNS} FROM payments WHERE principal = ?1 AND request = ?2");
    let existing = connection
        .prepare_cached(&sql)?
        .query_row(params![new.principal.as_str(), new.request], payment)
        .optional()?;
    match existing {
        Some(existing) if existing.was_given_up() => {
            let sql = "UPDATE payments SET request = request || ' given up ' || id WHERE id = ?1";
            connection.execute(sql, [existing.terms.id.as_str()])?;
        }
        Some(existing) => return Ok(Reservation::Exists(Box::new(existing))),
        None => {}
    }
    let used = limit_use(connection, &new.principal, Some(new.to), new.created)?;
    if let Some((kind, left)) = exceeded(new.amount, limits, used) {
        return Ok(Reservation::OverLimit { kind, left });
    }
    insert(connection, &new)?;
    Ok(Reservation::Reserved(Box::new(Payment {
        state: PaymentState::Intended,
        updated: new.created,
        bytes: None,
        account_nonce: None,
        transaction: None,
        block: None,
        reason: None,
        is_delivered: false,
        terms: new,
    })))
}

/// Returns the first limit that the amount exceeds, and what is left of it.
fn exceeded(
    amount: UsdcAmount,
    limits: PaymentLimits,
    used: LimitUse,
) -> Option<(LimitKind, UsdcAmount)> {
    let left = [
        (LimitKind::PerPayment, limits.per_payment),
        (LimitKind::PerDay, limits.per_day.saturating_sub(used.day)),
        (
            LimitKind::PerPayee,
            limits.per_payee.saturating_sub(used.payee),
        ),
    ];
    left.into_iter().find(|(_, left)| amount > *left)
}

fn insert(connection: &Connection, new: &NewPayment) -> rusqlite::Result<()> {
    let sql = "INSERT INTO payments (id, principal, request, created, chain, sender, recipient, payee,
        amount, purpose, origin, valid_before, digest, fee_limit, answer_by, start_block, state, updated)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 'intended', ?4)";
    connection.prepare_cached(sql)?.execute(params![
        new.id.as_str(),
        new.principal.as_str(),
        new.request,
        sortable_time(new.created),
        integer(new.chain),
        new.from.to_string(),
        new.to.to_string(),
        new.payee,
        integer(new.amount.units()),
        purpose_column(&new.purpose)?,
        new.origin,
        integer(new.valid_before),
        new.digest.to_string(),
        integer(new.fee_limit),
        sortable_time(new.answer_by),
        integer(new.start_block),
    ])?;
    Ok(())
}

fn limit_use(
    connection: &Connection,
    principal: &Principal,
    to: Option<AccountAddress>,
    now: Timestamp,
) -> rusqlite::Result<LimitUse> {
    let sql = format!(
        "SELECT coalesce(sum(amount), 0), coalesce(sum(CASE WHEN recipient = ?5 THEN amount END), 0)
        FROM payments WHERE principal = ?1 AND created > ?3 AND {COUNTS}"
    );
    let day_ago = now.checked_sub(24.hours()).unwrap_or(Timestamp::MIN);
    let values = params![
        principal.as_str(),
        sortable_time(now),
        sortable_time(day_ago),
        now.as_second(),
        to.map(|address| address.to_string()),
    ];
    connection.prepare_cached(&sql)?.query_row(values, |row| {
        Ok(LimitUse {
            day: amount(row, 0)?,
            payee: amount(row, 1)?,
        })
    })
}

fn apply(connection: &Connection, change: &PaymentChange) -> Result<Option<Payment>, WriteError> {
    let sql = "UPDATE payments SET state = ?3, updated = ?4, signature = coalesce(?5, signature),
        message = coalesce(?6, message), account_nonce = coalesce(?7, account_nonce),
        transaction_hash = coalesce(?8, transaction_hash), block = coalesce(?9, block),
        reason = coalesce(?10, reason), is_delivered = coalesce(?11, is_delivered)
        WHERE id = ?1 AND state = ?2";
    let bytes = change.bytes.as_ref();
    let changed = connection.prepare_cached(sql)?.execute(params![
        change.id.as_str(),
        change.from.name(),
        change.to.name(),
        sortable_time(change.at),
        bytes.map(|bytes| &bytes.signature),
        bytes.map(|bytes| &bytes.message),
        change.account_nonce.map(integer),
        change.transaction,
        change.block.map(integer),
        change.reason,
        change.is_delivered,
    ])?;
    if changed == 0 {
        return Ok(None);
    }
    Ok(read_payment(connection, &change.id)?)
}

fn read_payment(connection: &Connection, id: &PaymentId) -> rusqlite::Result<Option<Payment>> {
    let sql = format!("SELECT {COLUMNS} FROM payments WHERE id = ?1");
    connection
        .prepare_cached(&sql)?
        .query_row([id.as_str()], payment)
        .optional()
}

fn claim_nonce(connection: &Connection, claim: &AccountNonceClaim) -> Result<u64, WriteError> {
    let (chain, sender) = (integer(claim.chain), claim.from.to_string());
    let sql = "SELECT account_nonce FROM payments WHERE chain = ?1 AND sender = ?2 AND id <> ?3
        AND account_nonce >= ?4 AND (state IN ('signed', 'sent') OR (state = 'approved' AND updated > ?5))
        ORDER BY account_nonce";
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query(params![
        chain,
        sender,
        claim.id.as_str(),
        integer(claim.used),
        sortable_time(claim.held_since)
    ])?;
    let mut free = claim.used;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(0)? > integer(free) {
            break;
        }
        free += 1;
    }
    let sql = "UPDATE payments SET account_nonce = ?2, updated = ?3 WHERE id = ?1";
    let at = sortable_time(claim.at);
    connection.execute(sql, params![claim.id.as_str(), integer(free), at])?;
    Ok(free)
}
