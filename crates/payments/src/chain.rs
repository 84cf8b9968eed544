//! Questions to the chain, and what they answer.

mod contract;
mod fees;

use std::time::Duration;

use alloy_primitives::{Address, B256, U256, hex, keccak256};
use lango_domain::payments::UsdcAmount;
use lango_domain::secret::Secret;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub use fees::{GAS_LIMIT, shown_ether};

use crate::network::Network;
use crate::rpc::{Rpc, RpcError};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChainError {
    #[error(transparent)]
    Node(#[from] RpcError),
    #[error("the node's answer to {0} cannot be read")]
    Unreadable(&'static str),
    #[error("the node is on chain {found}, not on chain {expected}; nothing was signed or sent")]
    OtherChain { expected: u64, found: u64 },
    #[error("the USDC contract of {network} is not the expected one: its {what} differs")]
    OtherToken {
        network: &'static str,
        what: &'static str,
    },
    #[error("the contract refused the call: {0}")]
    Reverted(String),
}

impl ChainError {
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Node(RpcError::Unreachable(_) | RpcError::Status(_) | RpcError::Unreadable(_))
        )
    }
}

/// A chain, seen through one node.
pub struct Chain {
    pub network: &'static Network,
    rpc: Rpc,
    is_token_checked: OnceCell<()>,
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub has_succeeded: bool,
    pub block: u64,
    /// The cost of the transaction, in wei.
    pub fee: u128,
}

/// A transaction that used an authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationUse {
    pub transaction: String,
    pub block: u64,
}

impl Chain {
    pub fn new(network: &'static Network, rpc_url: Secret) -> Self {
        Self {
            network,
            rpc: Rpc::new(rpc_url),
            is_token_checked: OnceCell::new(),
        }
    }

    /// Sets the time after which a request to the node fails.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.rpc = self.rpc.with_timeout(timeout);
        self
    }

    /// Checks that the node is on the expected chain. Called before each signature, because a node may
    /// change behind its address.
    pub async fn check_chain(&self) -> Result<(), ChainError> {
        let answer = self.rpc.call("eth_chainId", json!([])).await?;
        let (expected, found) = (self.network.chain_id, quantity(&answer, "eth_chainId")?);
        if found == u128::from(expected) {
            Ok(())
        } else {
            let found = u64::try_from(found).unwrap_or(u64::MAX);
            Err(ChainError::OtherChain { expected, found })
        }
    }

    /// Checks chain and token against the table. The token is checked once.
    pub async fn verify(&self) -> Result<(), ChainError> {
        self.check_chain().await?;
        self.is_token_checked
            .get_or_try_init(|| self.check_token())
            .await?;
        Ok(())
    }

    /// Returns the time that the next block would have, in seconds. The chain's own clock decides whether an
    /// authorization is void, whatever the clock of this machine says.
    pub async fn time(&self) -> Result<u64, ChainError> {
        let latest = self.block("latest").await?;
        // Not every node has a pending block.
        let pending = self.block("pending").await.unwrap_or(Value::Null);
        let time = |block: &Value| quantity(&block["timestamp"], "eth_getBlockByNumber");
        let latest = time(&latest)?;
        let seconds = latest.max(time(&pending).unwrap_or(latest));
        u64::try_from(seconds).map_err(|_| ChainError::Unreadable("eth_getBlockByNumber"))
    }

    pub async fn block_number(&self) -> Result<u64, ChainError> {
        self.number("eth_blockNumber", json!([])).await
    }

    /// Returns the balance for network fees, in wei.
    pub async fn ether_balance(&self, owner: Address) -> Result<u128, ChainError> {
        let answer = self
            .rpc
            .call("eth_getBalance", json!([owner, "latest"]))
            .await?;
        quantity(&answer, "eth_getBalance")
    }

    /// Returns the number of transactions of an account that are in blocks.
    pub async fn transaction_count(&self, owner: Address) -> Result<u64, ChainError> {
        self.number("eth_getTransactionCount", json!([owner, "latest"]))
            .await
    }

    /// Hands a transaction to the node. An error does not mean that it was not taken: ask for the
    /// transaction.
    pub async fn send(&self, transaction: &[u8]) -> Result<(), ChainError> {
        let bytes = hex::encode_prefixed(transaction);
        self.rpc
            .call("eth_sendRawTransaction", json!([bytes]))
            .await?;
        Ok(())
    }

    /// Returns true if the node knows the transaction, in a block or waiting.
    pub async fn knows_transaction(&self, hash: &str) -> Result<bool, ChainError> {
        let answer = self
            .rpc
            .call("eth_getTransactionByHash", json!([hash]))
            .await?;
        Ok(answer.is_object())
    }

    pub async fn receipt(&self, hash: &str) -> Result<Option<Receipt>, ChainError> {
        const METHOD: &str = "eth_getTransactionReceipt";
        let answer = self.rpc.call(METHOD, json!([hash])).await?;
        if answer.is_null() {
            return Ok(None);
        }
        let gas = quantity(&answer["gasUsed"], METHOD)?;
        let price = quantity(&answer["effectiveGasPrice"], METHOD).unwrap_or_default();
        let first_layer = quantity(&answer["l1Fee"], METHOD).unwrap_or_default();
        Ok(Some(Receipt {
            has_succeeded: quantity(&answer["status"], METHOD)? == 1,
            block: small_quantity(&answer["blockNumber"], METHOD)?,
            fee: gas.saturating_mul(price).saturating_add(first_layer),
        }))
    }

    /// Returns the transaction that used an authorization, from a block on.
    pub async fn find_authorization(
        &self,
        from: Address,
        nonce: B256,
        first_block: u64,
    ) -> Result<Option<AuthorizationUse>, ChainError> {
        const METHOD: &str = "eth_getLogs";
        let filter = json!([{
            "address": self.network.usdc,
            "fromBlock": format!("{first_block:#x}"),
            "toBlock": "latest",
            "topics": [keccak256("AuthorizationUsed(address,bytes32)"), from.into_word(), nonce],
        }]);
        let answer = self.rpc.call(METHOD, filter).await?;
        let logs = answer.as_array().ok_or(ChainError::Unreadable(METHOD))?;
        let Some(log) = logs.first() else {
            return Ok(None);
        };
        let hash = log["transactionHash"]
            .as_str()
            .filter(|hash| hash.parse::<B256>().is_ok());
        Ok(Some(AuthorizationUse {
            transaction: hash.ok_or(ChainError::Unreadable(METHOD))?.to_owned(),
            block: small_quantity(&log["blockNumber"], METHOD)?,
        }))
    }

    async fn block(&self, name: &str) -> Result<Value, ChainError> {
        let block = self.rpc.call("eth_getBlockByNumber", json!([name, false]));
        Ok(block.await?)
    }

    async fn number(&self, method: &'static str, params: Value) -> Result<u64, ChainError> {
        let answer = self.rpc.call(method, params).await?;
        small_quantity(&answer, method)
    }
}

/// Reads a number in hexadecimal, as nodes write it.
fn quantity(value: &Value, method: &'static str) -> Result<u128, ChainError> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits
        .and_then(|digits| u128::from_str_radix(digits, 16).ok())
        .ok_or(ChainError::Unreadable(method))
}

fn small_quantity(value: &Value, method: &'static str) -> Result<u64, ChainError> {
    u64::try_from(quantity(value, method)?).map_err(|_| ChainError::Unreadable(method))
}

fn to_amount(value: U256) -> UsdcAmount {
    u64::try_from(value)
        .ok()
        .and_then(UsdcAmount::from_units)
        .unwrap_or(UsdcAmount::MAX)
}
