//! Response bodies, read and decompressed up to a size limit.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use crate::guarded_client::FetchError;
use lango_text::sanitize::truncated_line;

/// The supported content encodings, as an `Accept-Encoding` value.
pub const ACCEPTED_ENCODINGS: &str = "gzip, deflate, br";

/// Reads and decompresses the whole body. `limit` bounds both the compressed and the decompressed
/// size.
pub async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, FetchError> {
    let encoding = ContentEncoding::from_headers(response.headers())?;
    if response
        .content_length()
        .is_some_and(|length| length > limit as u64)
    {
        return Err(FetchError::TooLarge { limit });
    }
    let mut compressed = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| FetchError::from_reqwest(&error))?
    {
        if compressed.len() + chunk.len() > limit {
            return Err(FetchError::TooLarge { limit });
        }
        compressed.extend_from_slice(&chunk);
    }
    match encoding {
        ContentEncoding::None => Ok(compressed),
        _ if compressed.is_empty() => Ok(compressed),
        _ => tokio::task::spawn_blocking(move || encoding.decode(&compressed, limit))
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
    /// Accepts one encoding at most: a second one would only hide the real size.
    fn from_headers(headers: &HeaderMap) -> Result<Self, FetchError> {
        let mut encoding = Self::None;
        for value in headers.get_all(CONTENT_ENCODING) {
            let header = value.to_str().map_err(|_| FetchError::Corrupt)?;
            let unsupported = || FetchError::ContentEncoding(truncated_line(header, 60));
            for name in header.split(',') {
                let layer = match name.trim().to_ascii_lowercase().as_str() {
                    "" | "identity" => continue,
                    "gzip" | "x-gzip" => Self::Gzip,
                    "deflate" => Self::Deflate,
                    "br" => Self::Brotli,
                    _ => return Err(unsupported()),
                };
                if encoding != Self::None {
                    return Err(unsupported());
                }
                encoding = layer;
            }
        }
        Ok(encoding)
    }

    fn decode(self, compressed: &[u8], limit: usize) -> Result<Vec<u8>, FetchError> {
        match self {
            Self::None => Ok(compressed.to_vec()),
            Self::Gzip => read_limited(MultiGzDecoder::new(compressed), limit),
            Self::Deflate if has_zlib_header(compressed) => {
                read_limited(ZlibDecoder::new(compressed), limit)
            }
            Self::Deflate => read_limited(DeflateDecoder::new(compressed), limit),
            Self::Brotli => read_limited(
                brotli_decompressor::Decompressor::new(compressed, 8 * 1024),
                limit,
            ),
        }
    }
}

/// Returns true if `deflate` data has a zlib header. Some servers leave it out.
fn has_zlib_header(compressed: &[u8]) -> bool {
    matches!(compressed, [first, second, ..]
        if first & 0x0f == 8 && (u32::from(*first) << 8 | u32::from(*second)) % 31 == 0)
}

fn read_limited(decoder: impl Read, limit: usize) -> Result<Vec<u8>, FetchError> {
    let mut decompressed = Vec::new();
    decoder
        .take(limit as u64 + 1)
        .read_to_end(&mut decompressed)
        .map_err(|_| FetchError::Corrupt)?;
    if decompressed.len() > limit {
        Err(FetchError::TooLarge { limit })
    } else {
        Ok(decompressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};

    const LIMIT: usize = 64 * 1024;
    /// "hello", compressed with brotli.
    const BROTLI_HELLO: [u8; 9] = [0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];

    fn compress(mut encoder: impl Read) -> Vec<u8> {
        let mut compressed = Vec::new();
        encoder.read_to_end(&mut compressed).unwrap();
        compressed
    }

    #[test]
    fn decodes_every_content_encoding() {
        let plain = b"hello".as_slice();
        let best = Compression::best();
        for (encoding, bytes) in [
            (ContentEncoding::Gzip, compress(GzEncoder::new(plain, best))),
            (
                ContentEncoding::Deflate,
                compress(ZlibEncoder::new(plain, best)),
            ),
            (
                ContentEncoding::Deflate,
                compress(DeflateEncoder::new(plain, best)),
            ),
            (ContentEncoding::Brotli, BROTLI_HELLO.to_vec()),
        ] {
            assert_eq!(
                encoding.decode(&bytes, LIMIT).unwrap(),
                plain,
                "{encoding:?}"
            );
            let truncated = &bytes[..bytes.len() - 2];
            assert_eq!(
                encoding.decode(truncated, LIMIT),
                Err(FetchError::Corrupt),
                "{encoding:?}"
            );
        }
    }

    #[test]
    fn decompression_bombs_stop_at_the_limit() {
        let zeros = vec![0; 4 * 1024 * 1024];
        let best = Compression::best();
        for (encoding, bytes) in [
            (
                ContentEncoding::Gzip,
                compress(GzEncoder::new(zeros.as_slice(), best)),
            ),
            (
                ContentEncoding::Deflate,
                compress(ZlibEncoder::new(zeros.as_slice(), best)),
            ),
        ] {
            assert!(bytes.len() < LIMIT);
            assert_eq!(
                encoding.decode(&bytes, LIMIT),
                Err(FetchError::TooLarge { limit: LIMIT })
            );
        }
    }

    #[test]
    fn rejects_unknown_or_repeated_content_encodings() {
        let from_header = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, value.parse().unwrap());
            ContentEncoding::from_headers(&headers)
        };
        assert_eq!(from_header("identity, GZIP"), Ok(ContentEncoding::Gzip));
        assert_eq!(
            from_header("gzip, gzip"),
            Err(FetchError::ContentEncoding("gzip, gzip".to_owned()))
        );
        assert_eq!(
            from_header("zstd"),
            Err(FetchError::ContentEncoding("zstd".to_owned()))
        );
    }
}
