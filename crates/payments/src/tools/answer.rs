//! Payments as texts for models and people.

use lango_domain::payments::{Payment, PaymentState};
use lango_text::sanitize::truncated_line;

use crate::address::shown_address;
use crate::network::Network;

/// Returns the receipt of a payment, as far as it came.
pub(crate) fn receipt(payment: &Payment, network: &Network) -> String {
    let terms = &payment.terms;
    let to = payee_text(payment);
    let (amount, id) = (terms.amount, &terms.id);
    let transaction = match &payment.transaction {
        Some(hash) => format!(" Transaction {hash}."),
        None => String::new(),
    };
    let network = network.name;
    match payment.state {
        PaymentState::Confirmed => {
            format!("Paid {amount} USDC to {to} on {network}. Payment {id}.{transaction}")
        }
        PaymentState::Signed | PaymentState::Sent => format!(
            "{amount} USDC to {to} are on their way on {network}, but not confirmed yet. Payment {id}.{transaction} \
            Do not pay again: look at payment_history for its state."
        ),
        PaymentState::Reverted => format!(
            "The token's contract refused {amount} USDC to {to} on {network}; nothing was paid. Payment {id}.{transaction}"
        ),
        PaymentState::Expired => {
            let reason = payment.reason.as_deref().unwrap_or("it ended");
            format!("Nothing was paid to {to}: {reason}. Payment {id}.")
        }
        PaymentState::Intended | PaymentState::Approved => {
            format!(
                "Nothing was paid to {to} yet. Payment {id} is {}.",
                payment.state.name()
            )
        }
    }
}

/// Returns one line of the history.
pub(crate) fn history_line(payment: &Payment) -> String {
    let terms = &payment.terms;
    let purpose = truncated_line(terms.purpose.text(), 80);
    format!(
        "{}  {}  {} USDC to {}  {}  {purpose}",
        terms.id,
        terms.created.strftime("%Y-%m-%d %H:%M UTC"),
        terms.amount,
        payee_text(payment),
        payment.state.name(),
    )
}

fn payee_text(payment: &Payment) -> String {
    let address = shown_address(payment.terms.to);
    match &payment.terms.payee {
        Some(name) => format!("{name} ({address})"),
        None => address,
    }
}
