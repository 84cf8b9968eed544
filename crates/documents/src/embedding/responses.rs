//! Parses the responses of embedding providers.

use std::fmt;

use lango_net::json;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::EmbedError;
use crate::vectors;

/// JSON values per text: no known model has more than half as many dimensions.
const MAX_VALUES_EACH: usize = 16_384;

#[derive(Deserialize)]
struct OpenAiEmbeddingResponse {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    /// Some servers omit it and keep the order.
    index: Option<usize>,
    embedding: Numbers,
}

enum Numbers {
    Plain(Vec<f32>),
    /// Little-endian 32-bit floats in base64.
    Base64(String),
}

/// Deserialized without buffering: an untagged enum would first store every number as a value of
/// 32 bytes.
impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of numbers or a base64 string")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Numbers, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = sequence.next_element()? {
            numbers.push(number);
        }
        Ok(Numbers::Plain(numbers))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Numbers, E> {
        Ok(Numbers::Base64(text.to_owned()))
    }
}

/// Parses `{"data": [{"index": 0, "embedding": […]}]}`, in any order.
pub(super) fn parse_openai(response: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let data = parse_response::<OpenAiEmbeddingResponse>(response, count)?.data;
    check_count(data.len(), count)?;
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (at, vector) in data.into_iter().enumerate() {
        let index = vector.index.unwrap_or(at);
        let numbers = match vector.embedding {
            Numbers::Plain(numbers) => numbers,
            Numbers::Base64(text) => decode_vector(&text)?,
        };
        match vectors.get_mut(index) {
            Some(slot @ None) => *slot = Some(numbers),
            _ => {
                return Err(EmbedError::Malformed(format!(
                    "the index {index} is out of range or repeated"
                )));
            }
        }
    }
    Ok(vectors.into_iter().flatten().collect())
}

#[derive(Deserialize)]
struct GeminiEmbeddingResponse {
    embeddings: Vec<GeminiVector>,
}

#[derive(Deserialize)]
struct GeminiVector {
    values: Vec<f32>,
}

/// Parses `{"embeddings": [{"values": […]}]}`.
pub(super) fn parse_gemini(response: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let embeddings = parse_response::<GeminiEmbeddingResponse>(response, count)?.embeddings;
    check_count(embeddings.len(), count)?;
    Ok(embeddings
        .into_iter()
        .map(|embedding| embedding.values)
        .collect())
}

#[derive(Deserialize)]
struct OllamaEmbeddingResponse {
    embeddings: Vec<Vec<f32>>,
}

/// Parses `{"embeddings": [[…]]}`.
pub(super) fn parse_ollama(response: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let embeddings = parse_response::<OllamaEmbeddingResponse>(response, count)?.embeddings;
    check_count(embeddings.len(), count)?;
    Ok(embeddings)
}

fn parse_response<T: DeserializeOwned>(response: &[u8], count: usize) -> Result<T, EmbedError> {
    let text = std::str::from_utf8(response);
    let text = text.map_err(|_| EmbedError::Malformed("it is not valid UTF-8".to_owned()))?;
    let max_values = count.saturating_add(1).saturating_mul(MAX_VALUES_EACH);
    json::parse(text.as_bytes(), max_values)
        .map_err(|error| EmbedError::Malformed(error.to_string()))
}

fn check_count(found: usize, expected: usize) -> Result<(), EmbedError> {
    if found == expected {
        return Ok(());
    }
    Err(EmbedError::Malformed(format!(
        "{found} vectors for {expected} texts"
    )))
}

fn decode_vector(text: &str) -> Result<Vec<f32>, EmbedError> {
    let invalid = || EmbedError::Malformed("a vector is not valid base64".to_owned());
    vectors::from_bytes(&decode_base64(text).ok_or_else(invalid)?)
        .map_err(|error| EmbedError::Malformed(error.to_string()))
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    if text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut bit_count) = (0_u32, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push((bits >> bit_count) as u8);
            bits &= (1 << bit_count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B105
    #[test]
    fn parses_arrays_and_base64_and_rejects_too_many_values() {
        let response =
            br#"{"data":[{"embedding":[1,-2.5e0],"index":1},{"embedding":"AACAPw==","index":0}]}"#;
        assert_eq!(
            parse_openai(response, 2).unwrap(),
            [vec![1.0], vec![1.0, -2.5]]
        );
        assert!(parse_openai(br#"{"data":[{"embedding":{"a":1}}]}"#, 1).is_err());
        assert!(parse_openai(br#"{"data":[{"embedding":["a"]}]}"#, 1).is_err());
        let many = format!(r#"{{"embeddings":[{}[]]}}"#, "[],".repeat(100_000));
        for parse in [parse_ollama, parse_gemini] {
            let error = parse(many.as_bytes(), 2).unwrap_err();
            assert_eq!(
                error,
                EmbedError::Malformed("more than 49152 values".to_owned())
            );
        }
    }

    #[test]
    fn decodes_base64_with_and_without_padding() {
        let cases: [(&str, Option<&[u8]>); 6] = [
            ("", Some(b"")),
            ("Zg==", Some(b"f")),
            ("Zm9vYmE", Some(b"fooba")),
            ("AACAPw==", Some(&[0, 0, 0x80, 0x3f])),
            ("Z", None),
            ("Zm9v!", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(decode_base64(text).as_deref(), bytes, "{text}");
        }
    }
}
