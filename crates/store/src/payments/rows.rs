//! Conversions between rows and payments.

use std::str::FromStr;

use jiff::Timestamp;
use lango_domain::event::Principal;
use lango_domain::payments::{
    NewPayment, Payment, PaymentBytes, PaymentId, PaymentPurpose, PaymentState, UsdcAmount,
};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};

pub(super) const COLUMNS: &str = "id, principal, request, created, chain, sender, recipient, payee, amount,
    purpose, origin, valid_before, digest, fee_limit, answer_by, start_block, state, updated, signature,
    message, account_nonce, transaction_hash, block, reason, is_delivered";

pub(super) fn payment(row: &Row<'_>) -> rusqlite::Result<Payment> {
    let signature: Option<Vec<u8>> = row.get(18)?;
    let bytes = signature.zip(row.get::<_, Option<Vec<u8>>>(19)?);
    Ok(Payment {
        terms: terms(row)?,
        state: state(row, 16)?,
        updated: time(row, 17)?,
        bytes: bytes.map(|(signature, message)| PaymentBytes { signature, message }),
        account_nonce: optional_number(row, 20)?,
        transaction: row.get(21)?,
        block: optional_number(row, 22)?,
        reason: row.get(23)?,
        is_delivered: row.get(24)?,
    })
}

fn terms(row: &Row<'_>) -> rusqlite::Result<NewPayment> {
    Ok(NewPayment {
        id: PaymentId::new(row.get::<_, String>(0)?),
        principal: Principal::new(row.get::<_, String>(1)?),
        request: row.get(2)?,
        created: time(row, 3)?,
        chain: number(row, 4)?,
        from: parsed(row, 5)?,
        to: parsed(row, 6)?,
        payee: row.get(7)?,
        amount: amount(row, 8)?,
        purpose: purpose(row, 9)?,
        origin: row.get(10)?,
        valid_before: number(row, 11)?,
        digest: parsed(row, 12)?,
        fee_limit: number(row, 13)?,
        answer_by: time(row, 14)?,
        start_block: number(row, 15)?,
    })
}

pub(super) fn purpose_column(purpose: &PaymentPurpose) -> rusqlite::Result<String> {
    serde_json::to_string(purpose)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn purpose(row: &Row<'_>, at: usize) -> rusqlite::Result<PaymentPurpose> {
    serde_json::from_str(row.get_ref(at)?.as_str()?).map_err(|error| unreadable(at, error))
}

fn state(row: &Row<'_>, at: usize) -> rusqlite::Result<PaymentState> {
    let name = row.get_ref(at)?.as_str()?;
    let mut states = PaymentState::ALL.into_iter();
    states
        .find(|state| state.name() == name)
        .ok_or_else(|| unreadable(at, std::fmt::Error))
}

pub(super) fn parsed<T>(row: &Row<'_>, at: usize) -> rusqlite::Result<T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    row.get_ref(at)?
        .as_str()?
        .parse()
        .map_err(|error| unreadable(at, error))
}

pub(super) fn time(row: &Row<'_>, at: usize) -> rusqlite::Result<Timestamp> {
    parsed(row, at)
}

pub(super) fn amount(row: &Row<'_>, at: usize) -> rusqlite::Result<UsdcAmount> {
    UsdcAmount::from_units(number(row, at)?).ok_or_else(|| unreadable(at, std::fmt::Error))
}

pub(super) fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    u64::try_from(row.get::<_, i64>(at)?).map_err(|error| unreadable(at, error))
}

fn optional_number(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
    match row.get_ref(at)? {
        ValueRef::Null => Ok(None),
        _ => number(row, at).map(Some),
    }
}

/// Returns a number as SQLite stores it. Larger ones do not occur: amounts are limited, and times and
/// blocks are small.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unreadable(at: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error))
}
