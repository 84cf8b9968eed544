//! The network fee of a payment.

use serde_json::json;

use super::{Chain, ChainError, quantity};

/// The gas of a payment. Circle's contract uses about 84,000; what is not used is not paid for.
pub const GAS_LIMIT: u64 = 130_000;

/// The prices of the network at one moment, in wei per unit of gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeQuote {
    pub base: u128,
    pub priority: u128,
    /// The fee for data on the first layer, for the whole payment.
    pub first_layer: u128,
}

impl FeeQuote {
    /// Returns the highest price for one unit of gas in the first attempt.
    pub fn max_fee(&self) -> u128 {
        self.base.saturating_mul(2).saturating_add(self.priority)
    }

    /// Returns the highest fee of a payment, in wei. It leaves room for attempts with a higher price.
    pub fn limit(&self) -> u128 {
        let price = self.max_fee().saturating_mul(3).max(1);
        price.saturating_mul(u128::from(GAS_LIMIT))
    }

    /// Returns what a wallet should have for a payment, in wei.
    pub fn needed(&self) -> u128 {
        let gas = self.max_fee().saturating_mul(u128::from(GAS_LIMIT));
        // The fee of the first layer is an estimate and changes from block to block.
        gas.saturating_add(self.first_layer.saturating_mul(2))
    }
}

impl Chain {
    pub async fn fees(&self) -> Result<FeeQuote, ChainError> {
        let latest = self.block("latest").await?;
        let base = quantity(&latest["baseFeePerGas"], "eth_getBlockByNumber")?;
        let priority = match self.rpc.call("eth_maxPriorityFeePerGas", json!([])).await {
            Ok(answer) => quantity(&answer, "eth_maxPriorityFeePerGas")?,
            // Not every node suggests one.
            Err(_) => 1_000_000,
        };
        // A payment has about 400 bytes, and the signature does not compress.
        let first_layer = self.first_layer_fee(vec![0xab; 420]).await?;
        Ok(FeeQuote {
            base,
            // A node that asks for more than the base fee itself is wrong or greedy.
            priority: priority.min(base.max(1_000_000_000)),
            first_layer,
        })
    }
}

const WEI: u128 = 1_000_000_000_000_000_000;

/// Formats wei as ETH without superfluous zeros.
pub fn shown_ether(wei: u128) -> String {
    let (whole, rest) = (wei / WEI, wei % WEI);
    let decimals = format!("{rest:018}");
    match decimals.trim_end_matches('0') {
        "" => whole.to_string(),
        decimals => format!("{whole}.{decimals}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fees_are_shown_exactly() {
        assert_eq!(shown_ether(0), "0");
        assert_eq!(shown_ether(1), "0.000000000000000001");
        assert_eq!(shown_ether(1_500_000_000_000_000_000), "1.5");
    }

    #[test]
    fn limits_leave_room_for_a_higher_price() {
        let quote = FeeQuote {
            base: 5_000_000,
            priority: 1_000_000,
            first_layer: 7,
        };
        assert_eq!(quote.max_fee(), 11_000_000);
        assert!(quote.limit() >= 2 * quote.max_fee() * u128::from(GAS_LIMIT));
        assert_eq!(quote.needed(), 11_000_000 * u128::from(GAS_LIMIT) + 14);
    }
}
