//! Opens payments, with their tools and check.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use lango_domain::payments::PaymentId;
use lango_domain::{Clock, Tool};
use lango_payments::{LazyPaymentStore, PaymentError, PaymentParts, Payments};
use uuid::Uuid;

use crate::capabilities::CapabilityContext;
use crate::config::{ConfigError, LoadedConfig};
use crate::doctor::{CheckStatus, DoctorCheck};
use crate::environment::Environment;
use crate::lazy_stores::LazyStores;
use crate::wallet_keys::wallet_keys;

/// Opens payments as the settings say. Nothing is connected yet.
pub fn open_payments(loaded: &LoadedConfig, stores: &LazyStores) -> Result<Payments, PaymentError> {
    let clock: Clock = Arc::new(Timestamp::now);
    let opened = stores.clone();
    Payments::new(PaymentParts {
        store: LazyPaymentStore::new(move || opened.open().map(|stores| stores.payments)),
        keys: wallet_keys(loaded, stores),
        settings: loaded.settings.payment.clone(),
        clock,
        new_id: Arc::new(|| PaymentId::new(Uuid::now_v7().to_string())),
        resource_policy: loaded.settings.net.address_policy(),
    })
}

/// Returns the tools for payments, if they are enabled and a node is named (S86).
pub(crate) fn payment_tools(context: &CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError> {
    if !context.loaded.settings.payment.is_active() {
        return Ok(Vec::new());
    }
    let payments = open_payments(context.loaded, context.stores)
        .map_err(|error| ConfigError::new(format!("payment: {error}")))?;
    Ok(lango_payments::tools(&Arc::new(payments)))
}

/// Checks the node, the chain and the token.
pub(crate) fn payment_checks<'a>(
    loaded: &'a LoadedConfig,
    environment: &'a Environment,
) -> BoxFuture<'a, Vec<DoctorCheck>> {
    Box::pin(async move {
        let settings = &loaded.settings.payment;
        if !settings.enabled {
            return Vec::new();
        }
        let stores = LazyStores::new(loaded, environment);
        let payments = match open_payments(loaded, &stores) {
            Ok(payments) => payments,
            Err(error) => {
                let check = DoctorCheck::new("payments", CheckStatus::Fail, error.to_string());
                return vec![check.with_hint("see docs/payments.md for the settings")];
            }
        };
        vec![network_check(&payments).await]
    })
}

/// Seconds between this machine's clock and the chain's that are worth a warning.
const CLOCK_DIFFERENCE: u64 = 120;

async fn network_check(payments: &Payments) -> DoctorCheck {
    let check = |status, detail: String| DoctorCheck::new("payments", status, detail);
    let chain = payments.chain();
    if let Err(error) = chain.verify().await {
        return check(CheckStatus::Fail, error.to_string())
            .with_hint("check payment.network.rpcUrl and payment.network.chainId");
    }
    let own = u64::try_from(payments.now().as_second()).unwrap_or_default();
    let difference = chain.time().await.map(|time| time.abs_diff(own));
    match difference {
        Ok(seconds) if seconds > CLOCK_DIFFERENCE => check(
            CheckStatus::Warn,
            format!("the clocks of this machine and of the chain differ by {seconds} s"),
        )
        .with_hint("set the clock of this machine; payments follow the chain's"),
        Ok(_) => {
            let name = payments.network().name;
            check(
                CheckStatus::Pass,
                format!("the node is on {name}, and USDC is the expected contract"),
            )
        }
        Err(error) => check(CheckStatus::Fail, error.to_string()),
    }
}
