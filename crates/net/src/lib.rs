//! Going out to addresses that strangers name.
//!
//! Whatever comes back is data of strangers. Addresses are checked where the connection is made, sizes and times are bounded.

mod address;
pub mod body;
pub mod charset;
mod content_type;
mod guarded_client;
pub mod json;
pub mod sanitize;
mod settings;
pub mod sse;

pub use address::AddressPolicy;
pub use content_type::ContentKind;
pub use guarded_client::{
    FetchError, FetchLimits, FetchedPage, GuardedClient, check_url, client_builder,
    guarded_client_builder, install_tls, next_hop, parse_url, policy_for_user_url,
};
pub use settings::NetSettings;
