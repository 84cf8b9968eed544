//! What it knows: documents, and how passages are found in them; the web.

pub mod embedding;
pub mod evaluation;
pub mod fusion;
pub mod inquiries;
pub mod knowing;
mod lazily;
pub mod lexical;
pub mod library;
pub mod reading;
pub mod secrecy;
pub mod shortlist;
mod tools;
mod turns;
pub mod vectors;
pub mod web;

pub use lazily::{Clock, Lazily};
pub use tools::{Opener, item, tools};
