//! The trait's methods, payees and watched wallets.

use futures::future::FutureExt;
use jiff::Timestamp;
use lango_domain::event::Principal;
use lango_domain::payments::{
    AccountAddress, AccountNonceClaim, LimitUse, NewPayee, NewPayment, Payee, Payment,
    PaymentChange, PaymentId, PaymentLimits, PaymentQuery, PaymentStore, Reservation,
    WatchedWallet,
};
use lango_domain::session::StoreFuture;
use rusqlite::params;

use super::rows::{parsed, time};
use crate::damage::display_column;
use crate::event_rows::sortable_time;
use crate::store::SqliteStore;

impl PaymentStore for SqliteStore {
    fn reserve_payment(
        &self,
        payment: NewPayment,
        limits: PaymentLimits,
    ) -> StoreFuture<'_, Reservation> {
        self.insert_payment(payment, limits).boxed()
    }

    fn change_payment(&self, change: PaymentChange) -> StoreFuture<'_, Option<Payment>> {
        self.apply_change(change).boxed()
    }

    fn claim_account_nonce(&self, claim: AccountNonceClaim) -> StoreFuture<'_, u64> {
        self.claim_nonce(claim).boxed()
    }

    fn payment<'a>(
        &'a self,
        principal: &'a Principal,
        id: &'a PaymentId,
    ) -> StoreFuture<'a, Option<Payment>> {
        self.find_payment(principal, "id", id.as_str())
    }

    fn payment_for_request<'a>(
        &'a self,
        principal: &'a Principal,
        request: &'a str,
    ) -> StoreFuture<'a, Option<Payment>> {
        self.find_payment(principal, "request", request)
    }

    fn payments(&self, query: PaymentQuery) -> StoreFuture<'_, Vec<Payment>> {
        self.query_payments(query).boxed()
    }

    fn undecided_payments(&self, chain: u64, since: Timestamp) -> StoreFuture<'_, Vec<Payment>> {
        self.query_undecided(chain, since).boxed()
    }

    fn limit_use<'a>(
        &'a self,
        principal: &'a Principal,
        to: Option<AccountAddress>,
        now: Timestamp,
    ) -> StoreFuture<'a, LimitUse> {
        self.query_limit_use(principal, to, now)
    }

    fn paid_addresses<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<AccountAddress>> {
        self.query_paid_addresses(principal)
    }

    fn add_payee(&self, new: NewPayee) -> StoreFuture<'_, bool> {
        async move {
            self.batch(move |connection| {
                let sql = "INSERT OR IGNORE INTO payees (principal, name, address, added)
                    VALUES (?1, ?2, ?3, ?4)";
                let NewPayee { principal, payee } = new;
                let values = params![
                    principal.as_str(),
                    payee.name,
                    payee.address.to_string(),
                    sortable_time(payee.added)
                ];
                Ok(connection.execute(sql, values)? > 0)
            })
            .await
        }
        .boxed()
    }

    fn remove_payee<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a str,
    ) -> StoreFuture<'a, bool> {
        self.delete_named("payees", principal, name)
    }

    fn payees<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Payee>> {
        async move {
            let rows = self.named_addresses("payees", principal).await?;
            let payee = |(name, address, added)| Payee {
                name,
                address,
                added,
            };
            Ok(rows.into_iter().map(payee).collect())
        }
        .boxed()
    }

    fn watch_wallet<'a>(
        &'a self,
        principal: &'a Principal,
        wallet: WatchedWallet,
    ) -> StoreFuture<'a, bool> {
        let principal = principal.to_string();
        async move {
            self.batch(move |connection| {
                let sql = "INSERT OR IGNORE INTO watched_wallets (principal, name, address, added)
                    VALUES (?1, ?2, ?3, ?4)";
                let added = sortable_time(wallet.added);
                let values = params![principal, wallet.name, wallet.address.to_string(), added];
                Ok(connection.execute(sql, values)? > 0)
            })
            .await
        }
        .boxed()
    }

    fn unwatch_wallet<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a str,
    ) -> StoreFuture<'a, bool> {
        self.delete_named("watched_wallets", principal, name)
    }

    fn watched_wallets<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<WatchedWallet>> {
        async move {
            let rows = self.named_addresses("watched_wallets", principal).await?;
            let wallet = |(name, address, added)| WatchedWallet {
                name,
                address,
                added,
            };
            Ok(rows.into_iter().map(wallet).collect())
        }
        .boxed()
    }
}

type NamedAddress = (String, AccountAddress, Timestamp);

impl SqliteStore {
    fn named_addresses<'a>(
        &'a self,
        table: &'static str,
        principal: &'a Principal,
    ) -> StoreFuture<'a, Vec<NamedAddress>> {
        let principal = principal.to_string();
        async move {
            self.read(move |connection| {
                let sql = format!(
                    "SELECT name, address, added FROM {table} WHERE principal = ?1 ORDER BY name"
                );
                let row_name =
                    |row: &rusqlite::Row<'_>| format!("{table} {}", display_column(row, 0));
                connection.query_rows(&sql, [principal], row_name, |row| {
                    Ok((row.get(0)?, parsed(row, 1)?, time(row, 2)?))
                })
            })
            .await
        }
        .boxed()
    }

    fn delete_named<'a>(
        &'a self,
        table: &'static str,
        principal: &'a Principal,
        name: &'a str,
    ) -> StoreFuture<'a, bool> {
        let (principal, name) = (principal.to_string(), name.to_owned());
        async move {
            self.batch(move |connection| {
                let sql = format!("DELETE FROM {table} WHERE principal = ?1 AND name = ?2");
                Ok(connection.execute(&sql, [principal, name])? > 0)
            })
            .await
        }
        .boxed()
    }
}
