//! `payment_x402_fetch`.
//!
//! The first call asks for the resource and its price, and signs nothing. The second one names the price and
//! is approved for exactly that amount and payee (B132).

use std::collections::BTreeMap;
use std::sync::Arc;

use lango_domain::payments::UsdcAmount;
use lango_domain::{
    Destination, Intent, OutgoingData, Safety, SecretField, Tool, ToolContext, ToolError,
    ToolOutput,
};
use lango_net::parse_url;
use lango_text::sanitize::truncated_line;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{note_failure, origin};
use crate::address::shown_address;
use crate::error::PaymentError;
use crate::payments::Payments;
use crate::x402::{FetchOutcome, PaidContent, Quote, ResourceRequest};

#[derive(Deserialize, JsonSchema)]
struct X402FetchArgs {
    /// The http or https URL of the resource. Not needed with `quote`.
    #[serde(default)]
    url: Option<String>,
    /// The HTTP method; GET if left out.
    #[serde(default)]
    method: Option<String>,
    /// The body of the request.
    #[serde(default)]
    body: Option<String>,
    /// Headers of the request. A value may be a reference to a secret.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The most that it may cost, in USDC, such as "0.05".
    #[serde(default)]
    max_amount: Option<String>,
    /// The price from an earlier call, to pay it.
    #[serde(default)]
    quote: Option<String>,
}

pub(super) fn payment_x402_fetch(payments: Arc<Payments>) -> Tool {
    let (asked, refused) = (Arc::clone(&payments), Arc::clone(&payments));
    Tool::new(
        "payment_x402_fetch",
        "Fetches a web resource that may cost USDC (x402). The first call returns the content if it is free, else its \
        price as a quote; a call with that quote pays and returns the content.",
        Safety::Dangerous,
        move |context, args: X402FetchArgs| {
            let payments = Arc::clone(&payments);
            async move { run(&payments, &context, args).await }
        },
    )
    .with_intent(move |context, args: X402FetchArgs| {
        let payments = Arc::clone(&asked);
        async move { describe(&payments, &context, args).await }
    })
    .with_release(move |context, args: X402FetchArgs| {
        let payments = Arc::clone(&refused);
        async move {
            let id = args.quote.as_deref();
            let quote = id.and_then(|id| payments.quote(&context.principal, id).ok());
            if let Some(quote) = quote {
                note_failure(payments.withdraw_quote(&quote).await);
            }
        }
    })
    .with_outgoing(|args: X402FetchArgs| {
        let url = args.url.unwrap_or_default();
        let host = parse_url(&url).ok();
        let host = host.as_ref().and_then(|url| url.host_str());
        let headers = args.headers.into_values();
        let data: Vec<String> = [Some(url.clone()), args.body]
            .into_iter()
            .flatten()
            .chain(headers)
            .collect();
        OutgoingData {
            to: Destination::Host(host.unwrap_or_default().to_owned()),
            data: data.join("\n"),
        }
    })
    .with_secret_fields([SecretField::Values("headers")])
    .with_single_approval()
    .with_untrusted_output()
    .with_phrases([
        "fetch {url:word} [and] (pay|paying) up to {max_amount:word} usdc",
        "pay [the] quote {quote:word}",
    ])
}

impl X402FetchArgs {
    fn request(&self) -> Result<ResourceRequest, PaymentError> {
        let url = self.url.clone().filter(|url| !url.trim().is_empty());
        Ok(ResourceRequest {
            url: url.ok_or(PaymentError::Invalid("give `url` or `quote`".to_owned()))?,
            method: self.method.clone().unwrap_or_else(|| "GET".to_owned()),
            headers: self.headers.clone().into_iter().collect(),
            body: self.body.clone(),
        })
    }

    fn max_amount(&self, payments: &Payments) -> Result<UsdcAmount, PaymentError> {
        match self.max_amount.as_deref() {
            Some(text) => Ok(text.parse()?),
            None => Ok(payments.settings().x402.max_amount),
        }
    }
}

async fn describe(
    payments: &Payments,
    context: &ToolContext,
    args: X402FetchArgs,
) -> Result<Intent, ToolError> {
    args.max_amount(payments)?;
    let Some(id) = &args.quote else {
        let request = args.request()?;
        let (method, url) = (
            request.method.to_uppercase(),
            truncated_line(&request.url, 500),
        );
        let is_reading = matches!(method.as_str(), "GET" | "HEAD");
        return Ok(Intent {
            level: if is_reading {
                Safety::Moderate
            } else {
                Safety::Dangerous
            },
            shows: format!(
                "{method} {url}\nAsks for the content or its price. Nothing new is signed."
            ),
            subject: url,
            pattern: None,
        });
    };
    payments.reconcile_once().await;
    let quote = payments.quote(&context.principal, id)?;
    let prepared = payments
        .prepare_quote(&quote, origin(&context.label))
        .await?;
    let is_small = quote.offer.amount <= payments.settings().x402.max_auto_pay_amount;
    let can_run = is_small && !context.label.is_untrusted();
    Ok(Intent {
        level: if can_run {
            Safety::Moderate
        } else {
            Safety::Dangerous
        },
        shows: prepared.question,
        subject: prepared.subject,
        pattern: None,
    })
}

async fn run(
    payments: &Payments,
    context: &ToolContext,
    args: X402FetchArgs,
) -> Result<ToolOutput, ToolError> {
    if let Some(id) = &args.quote {
        let quote = payments.quote(&context.principal, id)?;
        let paid = payments.pay_quote(&quote).await?;
        return Ok(shown_content(&paid).into());
    }
    let max_amount = args.max_amount(payments)?;
    let outcome = payments.request_resource(&context.principal, args.request()?, max_amount);
    match outcome.await? {
        FetchOutcome::Content(content) => Ok(shown_content(&content).into()),
        FetchOutcome::Priced(quote) => Ok(shown_price(&quote).into()),
    }
}

fn shown_price(quote: &Quote) -> String {
    let to = shown_address(crate::address::to_account(quote.offer.pay_to));
    format!(
        "The resource costs {} USDC, to {to}. Nothing was paid. To pay it, call payment_x402_fetch with quote `{}`.",
        quote.offer.amount, quote.id
    )
}

fn shown_content(content: &PaidContent) -> String {
    let mut text = match &content.payment {
        Some(payment) => format!(
            "Paid {} USDC (payment {}, {}).\n",
            payment.terms.amount,
            payment.terms.id,
            payment.state.name()
        ),
        None => "Nothing was paid.\n".to_owned(),
    };
    text.push_str(&format!(
        "Status {}, {}\n\n",
        content.status, content.media_type
    ));
    match std::str::from_utf8(&content.body) {
        Ok(body) => text.push_str(body),
        Err(_) => text.push_str(&format!("[{} bytes that are not text]", content.body.len())),
    }
    text
}
