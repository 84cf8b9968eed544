//! Prices that were asked for and not paid yet, for the life of the process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use lango_domain::event::Principal;

use super::fetch::ResourceRequest;
use super::offer::Offer;

const MAX_QUOTES: usize = 256;
const VALID: SignedDuration = SignedDuration::from_mins(10);

/// The price of a resource.
#[derive(Clone, Debug)]
pub struct Quote {
    pub id: String,
    pub principal: Principal,
    pub request: ResourceRequest,
    pub offer: Offer,
    pub at: Timestamp,
}

#[derive(Default)]
pub struct QuoteBook(Mutex<HashMap<String, Quote>>);

impl QuoteBook {
    pub(crate) fn add(&self, quote: Quote) {
        let mut quotes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = quote.at;
        quotes.retain(|_, quote| now.duration_since(quote.at) < VALID);
        if quotes.len() >= MAX_QUOTES {
            let oldest = quotes.values().min_by_key(|quote| quote.at);
            if let Some(id) = oldest.map(|quote| quote.id.clone()) {
                quotes.remove(&id);
            }
        }
        quotes.insert(quote.id.clone(), quote);
    }

    /// Returns a quote of this principal that is still valid.
    pub(crate) fn find(&self, principal: &Principal, id: &str, now: Timestamp) -> Option<Quote> {
        let quotes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let quote = quotes.get(id.trim())?;
        let is_valid = quote.principal == *principal && now.duration_since(quote.at) < VALID;
        is_valid.then(|| quote.clone())
    }
}
