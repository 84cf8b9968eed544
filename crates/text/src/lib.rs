//! Text helpers that several crates share: sanitizing, normalization, terms and stems, token
//! estimates, suggestions, detection and redaction of secrets, and HTML as markdown.

mod analyzer;
mod fingerprint;
pub mod html;
mod normalize;
pub mod sanitize;
pub mod secret_redactor;
pub mod secret_scan;
pub mod short_text_index;
mod stemmer;
pub mod suggest;
pub mod svg;
pub mod token_estimate;
mod words;

pub use analyzer::{TermBuffer, analyze, analyze_query};
pub use fingerprint::fingerprint;
pub use stemmer::{Language, detect_language};
pub use words::normalize_words;
