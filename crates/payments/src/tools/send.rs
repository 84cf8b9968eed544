//! `payment_send`.

use std::sync::Arc;

use lango_domain::payments::UsdcAmount;
use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::receipt;
use super::{note_failure, origin};
use crate::error::PaymentError;
use crate::payments::{PaymentRequest, Payments, PreparedPayment};

#[derive(Deserialize, JsonSchema)]
struct PaymentSendArgs {
    /// A name of the user's address book, or a full address (0x…).
    to: String,
    /// The amount in USDC as the user wrote it, such as "5" or "1.50".
    amount: String,
    /// The reason, in a few words.
    #[serde(default)]
    purpose: Option<String>,
    /// Only for a payment that must never be repeated, such as an invoice number. The same id is paid once.
    #[serde(default)]
    request_id: Option<String>,
}

pub(super) fn payment_send(payments: Arc<Payments>) -> Tool {
    let (asked, refused) = (Arc::clone(&payments), Arc::clone(&payments));
    Tool::new(
        "payment_send",
        "Pays USDC to someone, once. If the result is unclear, look at payment_history; never call it again for the same payment.",
        Safety::Dangerous,
        move |context, args: PaymentSendArgs| {
            let payments = Arc::clone(&payments);
            async move { run(&payments, &context, &args).await }
        },
    )
    .with_intent(move |context, args: PaymentSendArgs| {
        let payments = Arc::clone(&asked);
        async move { describe(&payments, &context, &args).await }
    })
    .with_release(move |context, args: PaymentSendArgs| {
        let payments = Arc::clone(&refused);
        async move {
            let request = request_name(&context, &args);
            note_failure(payments.withdraw(&context.principal, &request).await);
        }
    })
    .with_single_approval()
    .with_phrases([
        "(pay|send|transfer) {amount:word} usdc to {to:word}",
        "(pay|send|transfer) {amount:word} usdc to {to:word} for {purpose}",
        "(pay|send) {to:word} {amount:word} usdc",
        "(pay|send) {to:word} {amount:word} usdc for {purpose}",
    ])
}

async fn describe(
    payments: &Payments,
    context: &ToolContext,
    args: &PaymentSendArgs,
) -> Result<Intent, ToolError> {
    payments.reconcile_once().await;
    let prepared = payments.prepare(request(context, args)?).await?;
    Ok(Intent {
        level: level(payments, context, &prepared),
        shows: prepared.question,
        subject: prepared.subject,
        pattern: None,
    })
}

/// A small payment to a payee of the address book may run without a question, if the settings say so and no
/// untrusted content may have caused it.
fn level(payments: &Payments, context: &ToolContext, prepared: &PreparedPayment) -> Safety {
    let limit = payments.settings().limits.auto_approve_below;
    let is_small = prepared.payment.terms.amount < limit;
    let is_known = prepared.payee.name.is_some() && prepared.payee.similar_to.is_none();
    if is_small && is_known && !context.label.is_untrusted() {
        Safety::Moderate
    } else {
        Safety::Dangerous
    }
}

async fn run(
    payments: &Payments,
    context: &ToolContext,
    args: &PaymentSendArgs,
) -> Result<String, ToolError> {
    let request = request_name(context, args);
    let payment = payments.pay(&context.principal, &request).await?;
    Ok(receipt(&payment, payments.network()))
}

fn request(context: &ToolContext, args: &PaymentSendArgs) -> Result<PaymentRequest, PaymentError> {
    let amount: UsdcAmount = args.amount.parse()?;
    Ok(PaymentRequest {
        principal: context.principal.clone(),
        request: request_name(context, args),
        to: args.to.clone(),
        amount,
        purpose: args.purpose.clone().unwrap_or_default(),
        origin: origin(&context.label),
    })
}

/// The name comes from the runtime, so that a repeated request of a model is another request, and the same
/// call is always the same payment.
fn request_name(context: &ToolContext, args: &PaymentSendArgs) -> String {
    let given = args.request_id.as_deref().map(str::trim);
    match given.filter(|id| !id.is_empty()) {
        Some(id) => format!("request:{id}"),
        None => format!("call:{}/{}/{}", context.session, context.turn, context.call),
    }
}
