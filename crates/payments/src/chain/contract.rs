//! Calls of the USDC contract that change nothing.

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use alloy_sol_types::{SolCall, SolError, sol};
use lango_domain::payments::UsdcAmount;
use lango_text::sanitize::truncated_line;
use serde_json::json;

use super::{Chain, ChainError, to_amount};
use crate::rpc::RpcError;

sol! {
    function balanceOf(address owner) external view returns (uint256);
    function authorizationState(address authorizer, bytes32 nonce) external view returns (bool);
    function decimals() external view returns (uint8);
    function DOMAIN_SEPARATOR() external view returns (bytes32);
    function transfer(address to, uint256 value) external returns (bool);
    function getL1Fee(bytes transaction) external view returns (uint256);
    error Error(string reason);
}

/// Where Base and other chains of its kind tell the fee for data on the first layer.
const FEE_ORACLE: Address = alloy_primitives::address!("420000000000000000000000000000000000000F");

impl Chain {
    pub async fn usdc_balance(&self, owner: Address) -> Result<UsdcAmount, ChainError> {
        let balance = self.view(balanceOfCall { owner }, None).await?;
        Ok(to_amount(balance))
    }

    /// Returns true if an authorization was used: the payment was made.
    pub async fn is_authorization_used(
        &self,
        authorizer: Address,
        nonce: B256,
    ) -> Result<bool, ChainError> {
        self.view(authorizationStateCall { authorizer, nonce }, None)
            .await
    }

    /// Tries a payment without making it. Fails with the reason if the contract would refuse it, such as for
    /// a blocked payee.
    pub async fn simulate_transfer(
        &self,
        from: Address,
        to: Address,
        amount: UsdcAmount,
    ) -> Result<(), ChainError> {
        let value = U256::from(amount.units());
        let is_done = self.view(transferCall { to, value }, Some(from)).await?;
        if is_done {
            Ok(())
        } else {
            Err(ChainError::Reverted(
                "the transfer returned false".to_owned(),
            ))
        }
    }

    /// Returns the fee for data on the first layer in wei; 0 on chains without one.
    pub async fn first_layer_fee(&self, transaction: Vec<u8>) -> Result<u128, ChainError> {
        let call = getL1FeeCall {
            transaction: Bytes::from(transaction),
        };
        let input = call.abi_encode();
        match self.call_contract(FEE_ORACLE, None, &input).await {
            Ok(data) => Ok(getL1FeeCall::abi_decode_returns(&data)
                .ok()
                .and_then(|fee| u128::try_from(fee).ok())
                .unwrap_or_default()),
            // A chain without such a contract.
            Err(ChainError::Reverted(_)) => Ok(0),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn check_token(&self) -> Result<(), ChainError> {
        let other = |what| ChainError::OtherToken {
            network: self.network.name,
            what,
        };
        let unreadable_as = |what| {
            move |error| match error {
                ChainError::Unreadable(_) | ChainError::Reverted(_) => other(what),
                error => error,
            }
        };
        let decimals = self.view(decimalsCall {}, None).await;
        if decimals.map_err(unreadable_as("number of decimals"))? != self.network.decimals {
            return Err(other("number of decimals"));
        }
        let separator = self.view(DOMAIN_SEPARATORCall {}, None).await;
        if separator.map_err(unreadable_as("domain separator"))? != self.network.domain_separator()
        {
            return Err(other("domain separator"));
        }
        Ok(())
    }

    async fn view<Call: SolCall>(
        &self,
        call: Call,
        from: Option<Address>,
    ) -> Result<Call::Return, ChainError> {
        let data = self
            .call_contract(self.network.usdc, from, &call.abi_encode())
            .await?;
        Call::abi_decode_returns(&data).map_err(|_| ChainError::Unreadable("eth_call"))
    }

    async fn call_contract(
        &self,
        to: Address,
        from: Option<Address>,
        input: &[u8],
    ) -> Result<Vec<u8>, ChainError> {
        let mut call = json!({ "to": to, "input": hex::encode_prefixed(input) });
        if let Some(from) = from {
            call["from"] = json!(from);
        }
        let answer = self.rpc.call("eth_call", json!([call, "latest"])).await;
        match answer {
            Ok(value) => value
                .as_str()
                .and_then(|text| hex::decode(text).ok())
                .ok_or(ChainError::Unreadable("eth_call")),
            Err(RpcError::Refused { message, data, .. }) => {
                Err(ChainError::Reverted(revert_reason(data).unwrap_or(message)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the text that a contract reverted with.
fn revert_reason(data: Option<String>) -> Option<String> {
    let bytes = hex::decode(data?).ok()?;
    let error = Error::abi_decode(&bytes).ok()?;
    Some(truncated_line(&error.reason, 200))
}
