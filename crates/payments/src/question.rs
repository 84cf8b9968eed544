//! The question that the user answers before a payment is signed (B132).

use std::fmt::Write as _;

use lango_domain::payments::{LimitUse, NewPayment, PaymentLimits, PaymentPurpose};
use lango_text::sanitize::truncated_line;

use crate::address::shown_address;
use crate::amount_words::amount_in_words;
use crate::chain::shown_ether;
use crate::network::Network;
use crate::payees::FoundPayee;

/// Everything that the question shows.
pub(crate) struct PaymentQuestion<'a> {
    pub payment: &'a NewPayment,
    pub payee: &'a FoundPayee,
    pub network: &'a Network,
    pub wallet: &'a str,
    pub limits: PaymentLimits,
    /// The use of the limits with this payment.
    pub used: LimitUse,
}

impl PaymentQuestion<'_> {
    pub fn text(&self) -> String {
        let payment = self.payment;
        let amount = payment.amount;
        let mut text = format!("Pays {amount} USDC ({})\n", amount_in_words(amount));
        let mut line = |name: &str, value: &str| _ = writeln!(text, "  {name:<9}{value}");
        line("to", &self.payee_line());
        if let Some((known, address)) = &self.payee.similar_to {
            let address = shown_address(*address);
            line(
                "WARNING",
                &format!("this address looks like that of {known} ({address}); compare all digits"),
            );
        }
        let network = format!("{} (chain {})", self.network.name, self.network.chain_id);
        line("network", &network);
        let from = shown_address(payment.from);
        line("from", &format!("wallet {}, {from}", self.wallet));
        line("fee", &self.fee_line());
        line("limits", &self.limits_line());
        match &payment.purpose {
            PaymentPurpose::Transfer { text } if text.is_empty() => {
                line("purpose", "none was given");
            }
            PaymentPurpose::Transfer { text } => line("purpose", &truncated_line(text, 300)),
            PaymentPurpose::Resource { url } => line("for", &truncated_line(url, 300)),
        }
        match payment.origin.as_str() {
            "" => line("origin", "the user's own words"),
            origin => line("origin", &truncated_line(origin, 300)),
        }
        line("digest", &payment.digest.to_string());
        text.trim_end().to_owned()
    }

    /// Returns the text that rules are matched against.
    pub fn subject(&self) -> String {
        let to = shown_address(self.payment.to);
        format!(
            "{} USDC to {to} on {}",
            self.payment.amount, self.network.name
        )
    }

    fn payee_line(&self) -> String {
        let address = shown_address(self.payee.address);
        match (&self.payee.name, self.payee.was_paid_before) {
            (Some(name), true) => format!("{name}, {address}"),
            (Some(name), false) => format!("{name}, {address} (first payment to this address)"),
            (None, true) => format!("{address} (not in the address book; paid before)"),
            (None, false) => format!("{address} (unknown: first payment to this address)"),
        }
    }

    fn fee_line(&self) -> String {
        match self.payment.fee_limit {
            0 => "none for this wallet; the server pays the network".to_owned(),
            wei => format!(
                "at most {} ETH for the network",
                shown_ether(u128::from(wei))
            ),
        }
    }

    fn limits_line(&self) -> String {
        let PaymentLimits {
            per_payment,
            per_day,
            per_payee,
        } = self.limits;
        format!(
            "left afterwards: {} of {per_day} for 24 hours, {} of {per_payee} for this payee; \
            at most {per_payment} in one payment",
            per_day.saturating_sub(self.used.day),
            per_payee.saturating_sub(self.used.payee),
        )
    }
}
