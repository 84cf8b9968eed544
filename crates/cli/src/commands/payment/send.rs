//! `lango payment send`.

use lango_app::capability::payments::PaymentRequest;
use lango_domain::payments::PaymentState;

use super::{PaymentView, payment_error, receipt};
use crate::args::PaymentSendArgs;
use crate::confirmation::can_ask;
use crate::output::{CliError, CommandOutput, print_stderr};

pub(super) async fn send(
    view: &PaymentView,
    args: &PaymentSendArgs,
) -> Result<CommandOutput, CliError> {
    let payments = view.payments()?;
    let amount = args.amount.parse();
    let amount = amount.map_err(|error| CliError::usage(format!("{error}")))?;
    let request = match &args.request_id {
        Some(id) => format!("request:{id}"),
        None => format!("command:{}", lango_app::new_session()),
    };
    let warnings = view.reconcile().await;
    let prepared = payments.prepare(PaymentRequest {
        principal: view.principal.clone(),
        request: request.clone(),
        to: args.to.clone(),
        amount,
        purpose: args.purpose.clone(),
        origin: String::new(),
    });
    let prepared = prepared.await.map_err(payment_error)?;
    if let Err(refused) = confirm(&prepared.question, args.yes) {
        let withdrawn = payments.withdraw(&view.principal, &request).await;
        withdrawn.map_err(payment_error)?;
        return Err(refused);
    }
    let paid = payments.pay(&view.principal, &request).await;
    let paid = paid.map_err(payment_error)?;
    match paid.state {
        PaymentState::Confirmed | PaymentState::Signed | PaymentState::Sent => {
            Ok(receipt(&paid).with_warnings(warnings))
        }
        _ => Err(
            CliError::run_failed(receipt(&paid).plain.trim_end().to_owned())
                .with_hint("`lango payment history` has its state"),
        ),
    }
}

/// Shows a question and waits for the answer. Without a terminal, only `--yes` answers.
pub(super) fn confirm(question: &str, yes: bool) -> Result<(), CliError> {
    let shown = lango_text::sanitize::escape_hidden_chars(question);
    let shown = lango_text::sanitize::strip_control_chars(&shown);
    if yes {
        print_stderr(&shown);
        return Ok(());
    }
    if !can_ask() {
        print_stderr(&shown);
        return Err(
            CliError::denied("there is no one to approve the payment; nothing was paid")
                .with_hint("run it at a terminal, or pass --yes"),
        );
    }
    match crate::confirmation::confirm(&shown, "Pay this?")? {
        true => Ok(()),
        false => Err(CliError::denied("not approved; nothing was paid")),
    }
}
