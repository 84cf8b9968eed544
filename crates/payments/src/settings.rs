//! `payment.*`.

use lango_domain::payments::{PaymentLimits, UsdcAmount};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::network::{Network, UnknownNetwork};

/// `payment`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PaymentSettings {
    /// Gives the vault tools for payments, if `payment.network.rpcUrl` is set too.
    pub enabled: bool,
    /// Where the keys of wallets are.
    pub wallet_provider: WalletProvider,
    /// The name of the wallet that pays; the only one if not set.
    pub wallet: Option<String>,
    /// The chain and the node that is asked.
    pub network: NetworkSettings,
    /// The limits of payments. They hold for each principal.
    pub limits: LimitSettings,
    /// Payments for web resources (x402).
    pub x402: X402Settings,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WalletProvider {
    /// In the vault of this machine.
    #[default]
    Local,
    /// Nowhere: wallets can be looked at, but not paid from.
    Watch,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkSettings {
    /// 8453 (Base) or 84532 (Base Sepolia, a test network).
    pub chain_id: u64,
    /// The URL of a node of that chain. It may be on a private network. If it contains a key, use `${NAME}` to
    /// read it from an environment variable.
    #[serde(serialize_with = "serialize_without_key")]
    pub rpc_url: Option<String>,
    /// The address of the USDC contract. Only the known one of the chain is accepted.
    pub usdc_contract: Option<String>,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            chain_id: 84_532,
            rpc_url: None,
            usdc_contract: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitSettings {
    /// The most that one payment may be, in USDC.
    pub max_per_tx: UsdcAmount,
    /// The most that all payments of 24 hours may be.
    pub max_daily: UsdcAmount,
    /// The most that all payments to one address in 24 hours may be.
    pub max_per_payee: UsdcAmount,
    /// Payments below this amount to payees of the address book run without approval, unless untrusted
    /// content may have caused them.
    pub auto_approve_below: UsdcAmount,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            max_per_tx: UsdcAmount::from_cents(10_00),
            max_daily: UsdcAmount::from_cents(50_00),
            max_per_payee: UsdcAmount::from_cents(50_00),
            auto_approve_below: UsdcAmount::ZERO,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct X402Settings {
    /// Gives the vault `payment_x402_fetch`, which pays for resources.
    pub auto_intercept: bool,
    /// The most that one resource may cost, in USDC.
    pub max_amount: UsdcAmount,
    /// Resources up to this price are paid without approval, unless untrusted content may have caused it.
    pub max_auto_pay_amount: UsdcAmount,
}

impl Default for X402Settings {
    fn default() -> Self {
        Self {
            auto_intercept: true,
            max_amount: UsdcAmount::from_cents(1_00),
            max_auto_pay_amount: UsdcAmount::ZERO,
        }
    }
}

impl PaymentSettings {
    /// Returns true if the tools are available.
    pub fn is_active(&self) -> bool {
        self.enabled && self.network.rpc_url.is_some()
    }

    pub fn network(&self) -> Result<&'static Network, UnknownNetwork> {
        Network::find(self.network.chain_id, self.network.usdc_contract.as_deref())
    }

    pub fn limits(&self) -> PaymentLimits {
        PaymentLimits {
            per_payment: self.limits.max_per_tx,
            per_day: self.limits.max_daily,
            per_payee: self.limits.max_per_payee,
        }
    }
}

/// Shows only the host of a URL: many nodes take a key in the path.
fn serialize_without_key<S: Serializer>(
    url: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let shown = url.as_deref().map(|url| match url::Url::parse(url) {
        Ok(url) => {
            let has_more = url.path().len() > 1 || url.query().is_some();
            let origin = url.origin().ascii_serialization();
            format!("{origin}{}", if has_more { "/***" } else { "" })
        }
        Err(_) => "***".to_owned(),
    });
    shown.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_urls_are_not_shown() {
        for (url, shown) in [
            ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
            (
                "https://user:pass@node.example/v2/KEY?x=KEY",
                "https://node.example/***",
            ),
            ("KEY", "***"),
        ] {
            let rpc_url = Some(url.to_owned());
            let network = NetworkSettings {
                rpc_url,
                ..NetworkSettings::default()
            };
            assert_eq!(serde_json::to_value(network).unwrap()["rpcUrl"], shown);
        }
    }

    #[test]
    fn amounts_are_texts_and_the_tools_need_an_address() {
        let settings: PaymentSettings = serde_json::from_value(serde_json::json!({
            "enabled": true,
            "network": { "chainId": 8453 },
            "limits": { "maxPerTx": "1.50", "autoApproveBelow": "0.10" },
        }))
        .unwrap();
        assert!(!settings.is_active());
        assert_eq!(settings.limits().per_payment, UsdcAmount::from_cents(150));
        assert_eq!(settings.network().unwrap().chain_id, 8453);
        let decimal = serde_json::json!({ "limits": { "maxPerTx": 1.5 } });
        assert!(serde_json::from_value::<PaymentSettings>(decimal).is_err());
    }
}
