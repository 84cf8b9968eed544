//! `net.*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::AddressPolicy;

/// `net`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetSettings {
    /// Whether pages on private networks may be fetched: the machine itself, the network at home, the metadata of a cloud.
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
    fn nothing_is_needed() {
        assert_eq!(
            serde_json::from_str::<NetSettings>("{}")
                .unwrap()
                .address_policy(),
            AddressPolicy::Public
        );
    }
}
