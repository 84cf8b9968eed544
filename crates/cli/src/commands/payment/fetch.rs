//! `lango payment fetch`.

use lango_app::capability::payments::x402::{FetchOutcome, PaidContent, ResourceRequest};
use lango_text::sanitize::strip_control_chars;
use serde_json::json;

use super::send::confirm;
use super::{PaymentView, payment_error, payment_json};
use crate::args::PaymentFetchArgs;
use crate::output::{CliError, CommandOutput};

pub(super) async fn fetch(
    view: &PaymentView,
    args: &PaymentFetchArgs,
) -> Result<CommandOutput, CliError> {
    let payments = view.payments()?;
    let limit = args.max_amount.parse();
    let limit = limit.map_err(|error| CliError::usage(format!("{error}")))?;
    let outcome = payments.request_resource(&view.principal, request(args)?, limit);
    let content = match outcome.await.map_err(payment_error)? {
        FetchOutcome::Content(content) => *content,
        FetchOutcome::Priced(quote) => {
            let prepared = payments.prepare_quote(&quote, String::new()).await;
            let question = prepared.map_err(payment_error)?.question;
            if let Err(refused) = confirm(&question, args.yes) {
                let withdrawn = payments.withdraw_quote(&quote).await;
                withdrawn.map_err(payment_error)?;
                return Err(refused);
            }
            payments.pay_quote(&quote).await.map_err(payment_error)?
        }
    };
    Ok(content_output(&content))
}

fn request(args: &PaymentFetchArgs) -> Result<ResourceRequest, CliError> {
    let headers = args
        .header
        .iter()
        .map(|header| match header.split_once(':') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(CliError::usage("--header: expected NAME: VALUE")),
        });
    Ok(ResourceRequest {
        url: args.url.clone(),
        method: args.method.clone(),
        headers: headers.collect::<Result<_, _>>()?,
        body: args.body.clone(),
    })
}

fn content_output(content: &PaidContent) -> CommandOutput {
    let text = String::from_utf8_lossy(&content.body).into_owned();
    let json = json!({
        "status": content.status,
        "media_type": content.media_type,
        "content": text,
        "payment": content.payment.as_ref().map(payment_json),
    });
    CommandOutput::new(strip_control_chars(&text), json)
}
