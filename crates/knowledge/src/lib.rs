//! What it knows: documents, and how passages are found in them; facts and how they hang together; conversations, and what
//! is remembered of them; the web.

pub mod embedding;
pub mod evaluation;
pub mod fusion;
pub mod graph;
mod html;
pub mod inquiries;
pub mod knowing;
mod lazily;
pub mod lexical;
pub mod library;
pub mod memory;
pub mod reading;
pub mod secrecy;
pub mod shortlist;
mod tools;
mod turns;
pub mod vectors;
pub mod web;

pub use lazily::{Clock, Lazily};
pub use tools::{Along, Opener, Settings, item, tools};
