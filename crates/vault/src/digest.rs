//! Hash functions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// A hash function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HashAlgorithm {
    #[default]
    Sha256,
    Sha512,
    Blake3,
    /// As used by Ethereum; it differs from SHA3-256.
    Keccak256,
}

impl HashAlgorithm {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
            Self::Blake3 => "blake3",
            Self::Keccak256 => "keccak256",
        }
    }

    pub fn digest(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => sha2::Sha256::digest(data).to_vec(),
            Self::Sha512 => sha2::Sha512::digest(data).to_vec(),
            Self::Blake3 => blake3::hash(data).as_bytes().to_vec(),
            Self::Keccak256 => sha3::Keccak256::digest(data).to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::to_hex;

    /// FIPS 180-4 examples, the vectors of BLAKE3, and the empty and "abc" vectors of Keccak.
    #[test]
    fn digests_equal_the_published_vectors() {
        let cases = [
            (
                HashAlgorithm::Sha256,
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                HashAlgorithm::Sha256,
                "",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                HashAlgorithm::Sha512,
                "abc",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
            (
                HashAlgorithm::Blake3,
                "",
                "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
            ),
            (
                HashAlgorithm::Blake3,
                "\u{0}",
                "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
            ),
            (
                HashAlgorithm::Keccak256,
                "",
                "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
            ),
            (
                HashAlgorithm::Keccak256,
                "abc",
                "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
            ),
        ];
        for (algorithm, data, expected) in cases {
            let digest = to_hex(&algorithm.digest(data.as_bytes()));
            assert_eq!(digest, expected, "{} of {data:?}", algorithm.as_str());
        }
    }
}
