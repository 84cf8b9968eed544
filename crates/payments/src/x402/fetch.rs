//! Fetches a resource: asks for its price, pays it once, and sends the same header again after a lost answer.

use std::time::Duration;

use alloy_primitives::keccak256;
use lango_domain::event::Principal;
use lango_domain::payments::{
    Payment, PaymentBytes, PaymentChange, PaymentPurpose, PaymentQuery, PaymentState, UsdcAmount,
};
use lango_net::{FetchError, parse_url};
use lango_text::sanitize::truncated_line;
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};

use super::header::payment_header;
use super::offer::{OfferError, X402Version, choose_offer, read_offers};
use super::quote::Quote;
use crate::address::to_account;
use crate::error::PaymentError;
use crate::http::{BoundedHttp, HttpAnswer, HttpRequest};
use crate::payments::prepare::PaymentDraft;
use crate::payments::{Payments, PreparedPayment};

const TIMEOUT: Duration = Duration::from_secs(20);
const MAX_BODY: usize = 1024 * 1024;
/// The number of times that the same paid request is sent before it is left for later.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);
/// The newest payments that are searched for one whose content never arrived.
const SEARCHED: usize = 200;
/// An older payment whose content never came is not sent again; the resource may be bought once more.
const RESENT_WITHIN: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);
/// The time to wait for the chain after the server delivered.
const SETTLE: Duration = Duration::from_secs(4);

/// A request for a resource, as the caller wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceRequest {
    pub url: String,
    pub method: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
}

/// A resource that arrived.
#[derive(Clone, Debug)]
pub struct PaidContent {
    pub status: u16,
    pub media_type: String,
    pub body: Vec<u8>,
    /// The payment for it; `None` if it was free.
    pub payment: Option<Payment>,
}

/// The outcome of asking for a resource.
#[derive(Clone, Debug)]
pub enum FetchOutcome {
    Content(Box<PaidContent>),
    /// The resource costs something. Nothing was signed.
    Priced(Box<Quote>),
}

impl ResourceRequest {
    /// Returns what identifies the request, so that a lost answer is found again.
    fn key(&self) -> String {
        let method = self.method.to_ascii_uppercase();
        let text = [&method, &self.url, self.body.as_deref().unwrap_or("")].join("\n");
        format!("x402:{}", keccak256(text))
    }

    fn to_http(&self, payment: Option<(X402Version, &str)>) -> Result<HttpRequest, PaymentError> {
        let invalid = |what: &str| PaymentError::Invalid(format!("the {what} is not valid"));
        let url = parse_url(&self.url).map_err(|error| PaymentError::Invalid(error.to_string()))?;
        let method = self.method.to_ascii_uppercase();
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| invalid("method"))?;
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            let shown = truncated_line(name, 40);
            let name: HeaderName = name
                .parse()
                .map_err(|_| invalid(&format!("name of the header `{shown}`")))?;
            if RESERVED.contains(&name.as_str()) {
                return Err(PaymentError::Invalid(format!(
                    "the header `{shown}` is set by Lango itself"
                )));
            }
            let value = HeaderValue::from_str(value)
                .map_err(|_| invalid(&format!("value of the header `{shown}`")))?;
            headers.push((name, value));
        }
        if let Some((version, value)) = payment {
            let value = HeaderValue::from_str(value).map_err(|_| invalid("payment header"))?;
            headers.push((HeaderName::from_static(version.payment_header()), value));
        }
        Ok(HttpRequest {
            method,
            url: url.into(),
            headers,
            body: self.body.clone().map(String::into_bytes),
        })
    }
}

/// Headers that a caller must not set.
const RESERVED: [&str; 6] = [
    "payment-signature",
    "x-payment",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
];

impl Payments {
    /// Asks for a resource without paying. If an earlier payment for the same request brought no answer, its
    /// header is sent again instead.
    pub async fn request_resource(
        &self,
        principal: &Principal,
        request: ResourceRequest,
        max_amount: UsdcAmount,
    ) -> Result<FetchOutcome, PaymentError> {
        if let Some(payment) = self.unanswered_payment(principal, &request).await? {
            let content = self.deliver(payment, &request).await?;
            return Ok(FetchOutcome::Content(Box::new(content)));
        }
        let http = self.resource_http()?;
        let answer = http.send(request.to_http(None)?).await;
        let answer = answer.map_err(|error| PaymentError::Invalid(error.to_string()))?;
        if answer.status != 402 {
            return Ok(FetchOutcome::Content(Box::new(content(answer, None))));
        }
        let offers = read_offers(answer.header("payment-required"), &answer.body);
        let limit = max_amount.min(self.settings.x402.max_amount);
        let offer = offers.and_then(|offers| choose_offer(&offers, self.chain.network, limit));
        let offer = offer.map_err(|error: OfferError| PaymentError::Invalid(error.to_string()))?;
        let quote = Quote {
            id: format!("q-{}", short_id((self.new_id)().as_str())),
            principal: principal.clone(),
            request,
            offer,
            at: self.now(),
        };
        self.quotes.add(quote.clone());
        Ok(FetchOutcome::Priced(Box::new(quote)))
    }

    pub fn quote(&self, principal: &Principal, id: &str) -> Result<Quote, PaymentError> {
        let found = self.quotes.find(principal, id, self.now());
        found.ok_or_else(|| {
            let id = truncated_line(id, 40);
            let text = format!("there is no price `{id}`, or it is too old; ask for the URL again");
            PaymentError::Invalid(text)
        })
    }

    /// Reserves the payment of a quote and words the question.
    pub async fn prepare_quote(
        &self,
        quote: &Quote,
        origin: String,
    ) -> Result<PreparedPayment, PaymentError> {
        let (wallet, known) = self.paying_wallet(&quote.principal).await?;
        let payee = known.find(&quote.offer.pay_to.to_checksum(None))?;
        if payee.address == wallet.address {
            return Err(PaymentError::OwnAddress);
        }
        self.check_funds(&wallet, &payee, quote.offer.amount)
            .await?;
        let draft = PaymentDraft {
            principal: quote.principal.clone(),
            request: quote_request(quote),
            wallet,
            payee,
            amount: quote.offer.amount,
            purpose: PaymentPurpose::Resource {
                url: quote.request.url.clone(),
            },
            origin,
            valid_seconds: quote.offer.valid_seconds,
            fee_limit: 0,
        };
        self.reserve(draft).await
    }

    /// Gives up the payment of a quote that was not approved.
    pub async fn withdraw_quote(&self, quote: &Quote) -> Result<(), PaymentError> {
        self.withdraw(&quote.principal, &quote_request(quote)).await
    }

    /// Pays an approved quote and returns the resource.
    pub async fn pay_quote(&self, quote: &Quote) -> Result<PaidContent, PaymentError> {
        let request = quote_request(quote);
        let approved = self.approve(&quote.principal, &request).await?;
        let is_offered = approved.terms.to == to_account(quote.offer.pay_to)
            && approved.terms.amount == quote.offer.amount;
        if !is_offered {
            return Err(crate::signing::SigningError::OtherDigest.into());
        }
        let signed = match self.sign_header(&approved, quote).await {
            Ok(signed) => signed,
            Err(error) => {
                self.give_up(&approved, error.to_string()).await;
                return Err(error);
            }
        };
        self.deliver(signed, &quote.request).await
    }

    /// Signs the approved payment of a quote and stores the header.
    async fn sign_header(
        &self,
        approved: &Payment,
        quote: &Quote,
    ) -> Result<Payment, PaymentError> {
        let signer = self.signer(approved).await?;
        let signature = self.sign(approved, &*signer).await?;
        let header = payment_header(
            &quote.offer,
            &approved.terms,
            self.chain.network,
            &signature,
        );
        let bytes = PaymentBytes {
            signature: signature.to_bytes().to_vec(),
            message: header.into_bytes(),
        };
        self.change(PaymentChange {
            bytes: Some(bytes),
            ..PaymentChange::new(approved, PaymentState::Signed, self.now())
        })
        .await
    }

    /// Sends the stored header until the resource arrives, a few times. Never signs.
    async fn deliver(
        &self,
        payment: Payment,
        request: &ResourceRequest,
    ) -> Result<PaidContent, PaymentError> {
        let stored = payment.bytes.as_ref().map(|bytes| bytes.message.clone());
        let header = stored.and_then(|bytes| String::from_utf8(bytes).ok());
        let header = header.ok_or(PaymentError::Invalid(
            "the stored header is damaged".to_owned(),
        ))?;
        let version = X402Version::of_message(&header).unwrap_or(X402Version::Two);
        let mut payment = match payment.state {
            PaymentState::Signed => {
                let sent = PaymentChange::new(&payment, PaymentState::Sent, self.now());
                self.change(sent).await?
            }
            _ => payment,
        };
        let http = self.resource_http()?;
        let mut trouble = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(PAUSE * attempt).await;
            }
            let answer = http.send(request.to_http(Some((version, &header)))?).await;
            match classify(answer) {
                PaidAnswer::Delivered(answer) => {
                    let payment = self.note_delivery(payment).await;
                    return Ok(content(answer, Some(payment)));
                }
                PaidAnswer::Lost(reason) => trouble = reason,
                PaidAnswer::Refused(reason) => {
                    trouble = reason;
                    payment = self.settle(payment, Duration::ZERO).await;
                    // The server may refuse because the payment was already made; then it is asked again.
                    if payment.state != PaymentState::Confirmed {
                        break;
                    }
                }
            }
        }
        let payment = self.settle(payment, Duration::ZERO).await;
        Err(PaymentError::Invalid(undelivered(&payment, &trouble)))
    }

    /// Notes that the resource arrived, and asks the chain whether it was paid.
    async fn note_delivery(&self, payment: Payment) -> Payment {
        let change = PaymentChange {
            is_delivered: Some(true),
            ..PaymentChange::new(&payment, payment.state, self.now())
        };
        let payment = self.change(change).await.unwrap_or(payment);
        self.settle(payment, SETTLE).await
    }

    /// Returns a payment for the same request whose content never arrived.
    async fn unanswered_payment(
        &self,
        principal: &Principal,
        request: &ResourceRequest,
    ) -> Result<Option<Payment>, PaymentError> {
        let query = PaymentQuery {
            principal: principal.clone(),
            state: None,
            limit: SEARCHED,
        };
        let key = request.key();
        let is_unanswered = |payment: &Payment| {
            !payment.is_delivered
                && payment.terms.request.starts_with(&key)
                && payment.terms.chain == self.chain.network.chain_id
                && self.now().duration_since(payment.terms.created) < RESENT_WITHIN
                && matches!(
                    payment.state,
                    PaymentState::Signed | PaymentState::Sent | PaymentState::Confirmed
                )
        };
        let found = self.history(query).await?.into_iter().find(is_unanswered);
        let Some(payment) = found else {
            return Ok(None);
        };
        // It may be void by now, and then nothing was paid.
        let payment = self.settle(payment, Duration::ZERO).await;
        Ok(is_unanswered(&payment).then_some(payment))
    }

    fn resource_http(&self) -> Result<BoundedHttp, PaymentError> {
        BoundedHttp::new(self.resource_policy, TIMEOUT, MAX_BODY)
            .map_err(|error| PaymentError::Invalid(error.to_string()))
    }
}

enum PaidAnswer {
    Delivered(HttpAnswer),
    /// The answer did not arrive, so it is unknown whether the server took the payment.
    Lost(String),
    Refused(String),
}

fn classify(answer: Result<HttpAnswer, FetchError>) -> PaidAnswer {
    match answer {
        Err(error) => PaidAnswer::Lost(error.to_string()),
        Ok(answer) if (200..300).contains(&answer.status) => PaidAnswer::Delivered(answer),
        Ok(answer) if answer.status >= 500 || matches!(answer.status, 408 | 429) => {
            PaidAnswer::Lost(format!("the server answered with status {}", answer.status))
        }
        Ok(answer) if (300..400).contains(&answer.status) => PaidAnswer::Refused(
            "the server sends paid requests to another address, which is not followed".to_owned(),
        ),
        Ok(answer) => PaidAnswer::Refused(format!(
            "the server did not accept the payment (status {})",
            answer.status
        )),
    }
}

fn undelivered(payment: &Payment, trouble: &str) -> String {
    let (id, amount) = (&payment.terms.id, payment.terms.amount);
    match payment.state {
        PaymentState::Confirmed => format!(
            "{amount} USDC were paid (payment {id}), but the content did not arrive: {trouble}. Asking for the \
            same URL again sends the same payment again and pays nothing more"
        ),
        PaymentState::Expired => format!("nothing was paid (payment {id}): {trouble}"),
        _ => format!(
            "the content did not arrive: {trouble}. The server can still take the {amount} USDC of payment {id} until \
            it ends; asking for the same URL again sends the same payment and pays nothing more"
        ),
    }
}

fn content(answer: HttpAnswer, payment: Option<Payment>) -> PaidContent {
    PaidContent {
        status: answer.status,
        media_type: truncated_line(answer.header("content-type").unwrap_or_default(), 80),
        body: answer.body,
        payment,
    }
}

/// Returns the request name of a quote's payment. It begins with the key of the resource.
fn quote_request(quote: &Quote) -> String {
    format!("{}:{}", quote.request.key(), quote.id)
}

/// Returns the random end of an id.
fn short_id(id: &str) -> &str {
    let start = id.len().saturating_sub(8);
    id.get(start..).unwrap_or(id)
}
