//! Going out to addresses that strangers name.
//!
//! Whatever comes back is data of strangers. Addresses are checked where the connection is made, sizes and times are bounded.

mod address;
pub mod body;
pub mod charset;
mod content;
mod guarded;
pub mod json;
mod settings;
pub mod sse;
pub mod words;

pub use address::Reach;
pub use content::Kind;
pub use guarded::{
    FetchError, Guarded, Limits, Page, builder, check, checked_builder, install_tls, next_hop, parsed,
    reach_of_typed,
};
pub use settings::NetSettings;
