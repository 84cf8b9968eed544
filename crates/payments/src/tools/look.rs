//! `payment_balance`, `payment_history` and `payment_limits`.

use std::sync::Arc;

use lango_domain::event::Principal;
use lango_domain::payments::{PaymentQuery, PaymentState};
use lango_domain::{Safety, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::history_line;
use crate::chain::shown_ether;
use crate::payments::Payments;

#[derive(Deserialize, JsonSchema)]
struct NoArgs {}

pub(super) fn payment_balance(payments: Arc<Payments>) -> Tool {
    Tool::new(
        "payment_balance",
        "Shows the USDC of the user's wallet, and its ETH for network fees.",
        Safety::Safe,
        move |context, _: NoArgs| {
            let payments = Arc::clone(&payments);
            async move {
                let wallet = payments.wallet(&context.principal).await?;
                let balance = payments.balance(wallet).await?;
                Ok::<_, ToolError>(format!(
                    "Wallet {}: {} USDC on {}; {} ETH for network fees.",
                    balance.wallet.name,
                    balance.usdc,
                    payments.network().name,
                    shown_ether(balance.ether)
                ))
            }
        },
    )
    .with_private_output()
    .with_phrases([
        "[what is] my balance",
        "[show] [what is] my (usdc|wallet|account) balance",
        "how much (usdc|money) do i have",
        "(show|check) [my] [wallet] balance",
    ])
}

#[derive(Deserialize, JsonSchema)]
struct HistoryArgs {
    /// Most payments to show, newest first.
    #[serde(default)]
    limit: Option<u32>,
    /// Only payments in this state: intended, approved, signed, sent, confirmed, reverted or expired.
    #[serde(default)]
    state: Option<String>,
}

const MAX_SHOWN: u32 = 100;

pub(super) fn payment_history(payments: Arc<Payments>) -> Tool {
    Tool::new(
        "payment_history",
        "Lists the user's payments with their states, after comparing them with the chain.",
        Safety::Safe,
        move |context, args: HistoryArgs| {
            let payments = Arc::clone(&payments);
            async move { history(&payments, &context.principal, &args).await }
        },
    )
    .with_private_output()
    // Purposes are texts of models, and addresses of resources are texts of others.
    .with_untrusted_output()
    .with_phrases([
        "[show] [me] [my] payment history",
        "(show|list) [me] [my] [recent|last] payments",
        "what (did|have) i (pay|paid)",
    ])
}

async fn history(
    payments: &Payments,
    principal: &Principal,
    args: &HistoryArgs,
) -> Result<String, ToolError> {
    let state = args.state.as_deref().map(parse_state).transpose()?;
    // A ledger that cannot be compared is still worth showing.
    if let Err(error) = payments.reconcile().await {
        tracing::warn!(%error, "the ledger of payments could not be compared with the chain");
    }
    let query = PaymentQuery {
        principal: principal.clone(),
        state,
        limit: args.limit.unwrap_or(20).clamp(1, MAX_SHOWN) as usize,
    };
    let found = payments.history(query).await?;
    let lines: Vec<String> = found.iter().map(history_line).collect();
    Ok(match lines.is_empty() {
        true => "There are no payments.".to_owned(),
        false => lines.join("\n"),
    })
}

fn parse_state(name: &str) -> Result<PaymentState, ToolError> {
    let wanted = name.trim().to_lowercase();
    let found = PaymentState::ALL
        .into_iter()
        .find(|state| state.name() == wanted);
    found.ok_or_else(|| {
        let names = PaymentState::ALL.map(PaymentState::name).join(", ");
        ToolError(format!(
            "there is no state `{wanted}`; expected one of {names}"
        ))
    })
}

pub(super) fn payment_limits(payments: Arc<Payments>) -> Tool {
    Tool::new(
        "payment_limits",
        "Shows the limits of payments, and how much of them is left. Only the user can change them, in the settings.",
        Safety::Safe,
        move |context, _: NoArgs| {
            let payments = Arc::clone(&payments);
            async move {
                let used = payments.limit_use(&context.principal).await?.day;
                let limits = payments.settings().limits;
                Ok::<_, ToolError>(format!(
                    "At most {} USDC in one payment; {} of {} left for 24 hours; at most {} to one payee in 24 hours; \
                    {}.",
                    limits.max_per_tx,
                    limits.max_daily.saturating_sub(used),
                    limits.max_daily,
                    limits.max_per_payee,
                    match limits.auto_approve_below.is_zero() {
                        true => "every payment is asked about".to_owned(),
                        false => format!(
                            "payments below {} to known payees run without a question",
                            limits.auto_approve_below
                        ),
                    }
                ))
            }
        },
    )
    .with_private_output()
    .with_phrases([
        "[show] [what are] [my] (payment|spending) limits",
        "[what is] my (payment|spending) limit",
        "how much (can|may) i (spend|pay)",
    ])
}
