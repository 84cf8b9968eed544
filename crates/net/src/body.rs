//! Bodies of replies, read up to a limit: what is packed counts as large as it unpacks.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use crate::guarded_client::FetchError;

/// What we can unpack.
pub const ACCEPTED_ENCODINGS: &str = "gzip, deflate, br";

/// The whole body, unpacked.
pub async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, FetchError> {
    let packing = ContentEncoding::from_headers(response.headers())?;
    if response
        .content_length()
        .is_some_and(|length| length > limit as u64)
    {
        return Err(FetchError::TooLarge { limit });
    }
    let mut packed = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| FetchError::from_reqwest(&error))?
    {
        if packed.len() + chunk.len() > limit {
            return Err(FetchError::TooLarge { limit });
        }
        packed.extend_from_slice(&chunk);
    }
    match packing {
        ContentEncoding::None => Ok(packed),
        _ if packed.is_empty() => Ok(packed),
        _ => tokio::task::spawn_blocking(move || packing.decode(&packed, limit))
            .await
            .map_err(|_stopped| FetchError::Corrupt)?,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentEncoding {
    None,
    Gzip,
    Deflate,
    Brotli,
}

impl ContentEncoding {
    /// One layer at most: nobody packs a page twice, except to hide how large it is.
    fn from_headers(headers: &HeaderMap) -> Result<Self, FetchError> {
        let mut packing = Self::None;
        for value in headers.get_all(CONTENT_ENCODING) {
            let words = value.to_str().map_err(|_| FetchError::Corrupt)?;
            for word in words
                .split(',')
                .map(|word| word.trim().to_ascii_lowercase())
            {
                let layer = match word.as_str() {
                    "" | "identity" => continue,
                    "gzip" | "x-gzip" => Self::Gzip,
                    "deflate" => Self::Deflate,
                    "br" => Self::Brotli,
                    _ => {
                        return Err(FetchError::ContentEncoding(crate::sanitize::one_line(
                            words, 60,
                        )));
                    }
                };
                if packing != Self::None {
                    return Err(FetchError::ContentEncoding(crate::sanitize::one_line(
                        words, 60,
                    )));
                }
                packing = layer;
            }
        }
        Ok(packing)
    }

    fn decode(self, packed: &[u8], limit: usize) -> Result<Vec<u8>, FetchError> {
        match self {
            Self::None => Ok(packed.to_vec()),
            Self::Gzip => read_limited(MultiGzDecoder::new(packed), limit),
            Self::Deflate if has_zlib_header(packed) => {
                read_limited(ZlibDecoder::new(packed), limit)
            }
            Self::Deflate => read_limited(DeflateDecoder::new(packed), limit),
            Self::Brotli => read_limited(
                brotli_decompressor::Decompressor::new(packed, 8 * 1024),
                limit,
            ),
        }
    }
}

/// `deflate` means zlib, but some servers leave its header out.
fn has_zlib_header(packed: &[u8]) -> bool {
    matches!(packed, [first, second, ..]
        if first & 0x0f == 8 && (u32::from(*first) << 8 | u32::from(*second)) % 31 == 0)
}

fn read_limited(unpacker: impl Read, limit: usize) -> Result<Vec<u8>, FetchError> {
    let mut unpacked = Vec::new();
    unpacker
        .take(limit as u64 + 1)
        .read_to_end(&mut unpacked)
        .map_err(|_| FetchError::Corrupt)?;
    if unpacked.len() > limit {
        Err(FetchError::TooLarge { limit })
    } else {
        Ok(unpacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};

    const LIMIT: usize = 64 * 1024;
    /// "hello" as brotli stores it.
    const BROTLI_HELLO: [u8; 9] = [0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];

    fn packed(mut encoder: impl Read) -> Vec<u8> {
        let mut packed = Vec::new();
        encoder.read_to_end(&mut packed).unwrap();
        packed
    }

    #[test]
    fn every_packing_is_undone() {
        let plain = b"hello".as_slice();
        let best = Compression::best();
        for (packing, bytes) in [
            (ContentEncoding::Gzip, packed(GzEncoder::new(plain, best))),
            (
                ContentEncoding::Deflate,
                packed(ZlibEncoder::new(plain, best)),
            ),
            (
                ContentEncoding::Deflate,
                packed(DeflateEncoder::new(plain, best)),
            ),
            (ContentEncoding::Brotli, BROTLI_HELLO.to_vec()),
        ] {
            assert_eq!(packing.decode(&bytes, LIMIT).unwrap(), plain, "{packing:?}");
            let cut = &bytes[..bytes.len() - 2];
            assert_eq!(
                packing.decode(cut, LIMIT),
                Err(FetchError::Corrupt),
                "{packing:?}"
            );
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let zeros = vec![0; 4 * 1024 * 1024];
        let best = Compression::best();
        for (packing, bytes) in [
            (
                ContentEncoding::Gzip,
                packed(GzEncoder::new(zeros.as_slice(), best)),
            ),
            (
                ContentEncoding::Deflate,
                packed(ZlibEncoder::new(zeros.as_slice(), best)),
            ),
        ] {
            assert!(bytes.len() < LIMIT);
            assert_eq!(
                packing.decode(&bytes, LIMIT),
                Err(FetchError::TooLarge { limit: LIMIT })
            );
        }
    }

    #[test]
    fn only_one_known_layer_is_undone() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, value.parse().unwrap());
            ContentEncoding::from_headers(&headers)
        };
        assert_eq!(of("identity, GZIP"), Ok(ContentEncoding::Gzip));
        assert_eq!(
            of("gzip, gzip"),
            Err(FetchError::ContentEncoding("gzip, gzip".to_owned()))
        );
        assert_eq!(
            of("zstd"),
            Err(FetchError::ContentEncoding("zstd".to_owned()))
        );
    }
}
