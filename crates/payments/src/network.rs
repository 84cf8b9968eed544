//! The chains on which payments are made. What is signed comes from this table, never from a server.

use alloy_primitives::{Address, B256, U256, address};
use alloy_sol_types::Eip712Domain;
use lango_text::sanitize::truncated_line;

use crate::address::parse_address;

/// A chain and its USDC contract.
#[derive(Debug, PartialEq, Eq)]
pub struct Network {
    pub chain_id: u64,
    pub name: &'static str,
    /// The name in version 1 of x402. Version 2 uses `eip155:` and the chain id.
    pub x402_name: &'static str,
    pub usdc: Address,
    /// The name in the domain of EIP-712. It differs between the two networks.
    pub token_name: &'static str,
    pub token_version: &'static str,
    pub decimals: u8,
}

const NETWORKS: [Network; 2] = [
    Network {
        chain_id: 8453,
        name: "Base",
        x402_name: "base",
        usdc: address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
        token_name: "USD Coin",
        token_version: "2",
        decimals: 6,
    },
    Network {
        chain_id: 84532,
        name: "Base Sepolia (test network)",
        x402_name: "base-sepolia",
        usdc: address!("036CbD53842c5426634e7929541eC2318f3dCF7e"),
        token_name: "USDC",
        token_version: "2",
        decimals: 6,
    },
];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownNetwork {
    #[error("chain {0} is not supported; expected 8453 (Base) or 84532 (Base Sepolia)")]
    Chain(u64),
    #[error("`{given}` is not the USDC contract of {network}; expected {expected}")]
    Contract {
        given: String,
        network: &'static str,
        expected: String,
    },
}

impl Network {
    /// Returns the network with this chain id. A configured contract must be the known one.
    pub fn find(chain_id: u64, contract: Option<&str>) -> Result<&'static Self, UnknownNetwork> {
        static TABLE: [Network; 2] = NETWORKS;
        let network = TABLE
            .iter()
            .find(|network| network.chain_id == chain_id)
            .ok_or(UnknownNetwork::Chain(chain_id))?;
        match contract {
            Some(text) if parse_address(text) != Ok(network.usdc) => {
                Err(UnknownNetwork::Contract {
                    given: truncated_line(text, 80),
                    network: network.name,
                    expected: network.usdc.to_string(),
                })
            }
            _ => Ok(network),
        }
    }

    /// Returns true if x402 names this network so, in either version.
    pub fn is_named(&self, x402_name: &str) -> bool {
        x402_name == self.x402_name || x402_name == self.caip2()
    }

    /// Returns the name of the chain in version 2 of x402.
    pub fn caip2(&self) -> String {
        format!("eip155:{}", self.chain_id)
    }

    pub fn domain(&self) -> Eip712Domain {
        Eip712Domain::new(
            Some(self.token_name.into()),
            Some(self.token_version.into()),
            Some(U256::from(self.chain_id)),
            Some(self.usdc),
            None,
        )
    }

    /// Returns what the contract must answer as its `DOMAIN_SEPARATOR()`.
    pub fn domain_separator(&self) -> B256 {
        self.domain().separator()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The separator of Circle's contract on Base.
    #[test]
    fn the_separator_of_base_is_known() {
        let base = Network::find(8453, None).unwrap();
        assert_eq!(
            base.domain_separator().to_string(),
            "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"
        );
    }

    #[test]
    fn other_chains_and_contracts_are_refused() {
        assert_eq!(Network::find(1, None), Err(UnknownNetwork::Chain(1)));
        assert!(Network::find(8453, Some("0x036CbD53842c5426634e7929541eC2318f3dCF7e")).is_err());
        assert!(Network::find(84532, Some("0x036CbD53842c5426634e7929541eC2318f3dCF7e")).is_ok());
    }
}
