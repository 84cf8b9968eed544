//! The settings `net.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::AddressPolicy;

/// `net`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetSettings {
    /// Allow fetching pages on private networks: this machine, the local network, cloud metadata
    /// servers.
    pub allow_private: bool,
}

impl NetSettings {
    pub fn address_policy(&self) -> AddressPolicy {
        if self.allow_private {
            AddressPolicy::Anywhere
        } else {
            AddressPolicy::Public
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_networks_are_refused_by_default() {
        assert_eq!(
            serde_json::from_str::<NetSettings>("{}")
                .unwrap()
                .address_policy(),
            AddressPolicy::Public
        );
    }
}
