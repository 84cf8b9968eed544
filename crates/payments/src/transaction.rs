//! Transactions with a fee market (EIP-1559), as far as payments need them.

use alloy_primitives::{Address, B256, Signature, U256, keccak256};
use alloy_rlp::{Decodable, Encodable, Header};

/// The type byte of EIP-1559.
const TYPE: u8 = 2;

/// A transaction without value that calls a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeeTransaction {
    pub chain_id: u64,
    pub nonce: u64,
    pub max_priority_fee: u128,
    pub max_fee: u128,
    pub gas_limit: u64,
    pub to: Address,
    pub input: Vec<u8>,
}

impl FeeTransaction {
    /// Returns the most that the transaction can cost, in wei, without the fee for data on the first layer.
    pub fn highest_fee(&self) -> u128 {
        self.max_fee.saturating_mul(u128::from(self.gas_limit))
    }

    pub fn signing_hash(&self) -> B256 {
        keccak256(self.encode(None))
    }

    /// Returns the bytes that are sent. Their hash is the hash of the transaction.
    pub fn encode_signed(&self, signature: &Signature) -> Vec<u8> {
        self.encode(Some(signature))
    }

    fn encode(&self, signature: Option<&Signature>) -> Vec<u8> {
        let mut fields = Vec::new();
        self.chain_id.encode(&mut fields);
        self.nonce.encode(&mut fields);
        self.max_priority_fee.encode(&mut fields);
        self.max_fee.encode(&mut fields);
        self.gas_limit.encode(&mut fields);
        self.to.encode(&mut fields);
        U256::ZERO.encode(&mut fields);
        self.input.as_slice().encode(&mut fields);
        // The list of addresses that the transaction names in advance is empty.
        let empty = Header {
            list: true,
            payload_length: 0,
        };
        empty.encode(&mut fields);
        if let Some(signature) = signature {
            u8::from(signature.v()).encode(&mut fields);
            signature.r().encode(&mut fields);
            signature.s().encode(&mut fields);
        }
        let mut bytes = vec![TYPE];
        let list = Header {
            list: true,
            payload_length: fields.len(),
        };
        list.encode(&mut bytes);
        bytes.extend_from_slice(&fields);
        bytes
    }
}

/// Returns the highest price of gas that an encoded transaction pays.
pub fn encoded_max_fee(bytes: &[u8]) -> Option<u128> {
    let [TYPE, fields @ ..] = bytes else {
        return None;
    };
    let mut fields = fields;
    Header::decode(&mut fields).ok()?;
    u64::decode(&mut fields).ok()?;
    u64::decode(&mut fields).ok()?;
    u128::decode(&mut fields).ok()?;
    u128::decode(&mut fields).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of the signed bytes is checked against a real node in `tests/main/chain.rs`.
    #[test]
    fn the_encoding_is_that_of_eip_1559() {
        let transaction = FeeTransaction {
            chain_id: 1,
            nonce: 0,
            max_priority_fee: 1,
            max_fee: 2,
            gas_limit: 21_000,
            to: Address::repeat_byte(0x11),
            input: Vec::new(),
        };
        let expected = "02df018001028252089411111111111111111111111111111111111111118080c0";
        let bytes = transaction.encode(None);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected);
        assert_eq!(transaction.highest_fee(), 42_000);
        assert_eq!(encoded_max_fee(&bytes), Some(2));
        assert_eq!(encoded_max_fee(b"\x02"), None);
    }
}
