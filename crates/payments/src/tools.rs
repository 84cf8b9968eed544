//! The vault's tools for payments (S86).

mod answer;
mod look;
mod send;
mod wallet;
mod x402_fetch;

use std::sync::Arc;

use lango_domain::{Label, Tool};

use crate::error::PaymentError;
use crate::payments::Payments;

/// Returns the tools.
pub fn tools(payments: &Arc<Payments>) -> Vec<Tool> {
    let mut tools = vec![
        send::payment_send(Arc::clone(payments)),
        look::payment_balance(Arc::clone(payments)),
        look::payment_history(Arc::clone(payments)),
        look::payment_limits(Arc::clone(payments)),
        wallet::payment_wallet_info(Arc::clone(payments)),
        wallet::payment_create_wallet(Arc::clone(payments)),
    ];
    if payments.settings().x402.auto_intercept {
        tools.push(x402_fetch::payment_x402_fetch(Arc::clone(payments)));
    }
    tools
}

/// Logs that a refused payment could not be given up. It then ends by itself, when its question is too old.
fn note_failure(outcome: Result<(), PaymentError>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "the refused payment could not be given up");
    }
}

/// Returns the origin of a request for the question; empty for the user's own words.
fn origin(label: &Label) -> String {
    label.to_string()
}
