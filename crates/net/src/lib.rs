//! HTTP access to untrusted URLs.
//!
//! Responses are untrusted data. Addresses are checked when the connection is made; sizes and times
//! are limited.

mod address;
pub mod body;
pub mod charset;
mod content_type;
mod egress_proxy;
mod guarded_client;
mod guarded_post;
pub mod json;
mod settings;
pub mod sse;

pub use address::{AddressPolicy, is_private_address};
pub use content_type::ContentKind;
pub use egress_proxy::{EgressLimits, EgressProxy, EgressRules, EndpointGrant, HostRule};
pub use guarded_client::{
    FetchError, FetchLimits, FetchedPage, GuardedClient, check_url, client_builder,
    guarded_client_builder, install_tls, next_hop, parse_url, policy_for_user_url,
};
pub use guarded_post::JsonPost;
pub use settings::NetSettings;
