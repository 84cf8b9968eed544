//! Paid web resources (x402, versions 1 and 2).
//!
//! Everything that is signed comes from our own table and the ledger. The server only names an amount and a payee, and
//! both are shown. A header that was signed once is sent again after a lost answer; a second one is never
//! signed for the same request (B131).

mod fetch;
mod header;
mod offer;
mod quote;

pub use fetch::{FetchOutcome, PaidContent, ResourceRequest};
pub use offer::{Offer, OfferError, X402Version, choose_offer, read_offers};
pub use quote::{Quote, QuoteBook};
