//! What providers answer, read into vectors.

use std::fmt;

use lango_net::json;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::EmbedError;
use crate::vectors;

/// Values of JSON for each text: no known model has more than half as many dimensions.
const MAX_VALUES_EACH: usize = 16_384;

#[derive(Deserialize)]
struct OpenAiEmbeddingResponse {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    /// Some servers leave it out and keep the order.
    index: Option<usize>,
    embedding: Numbers,
}

enum Numbers {
    Plain(Vec<f32>),
    /// 32-bit numbers, the lowest byte first, in base64.
    Base64(String),
}

/// Read straight off the bytes: an untagged enum would first hold every number as a value of 32 bytes.
impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers, or a text in base64")
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

/// `{"data": [{"index": 0, "embedding": […]}]}`, in any order.
pub(super) fn parse_openai(answer: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let data = parse_response::<OpenAiEmbeddingResponse>(answer, count)?.data;
    check_count(data.len(), count)?;
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (at, vector) in data.into_iter().enumerate() {
        let index = vector.index.unwrap_or(at);
        let numbers = match vector.embedding {
            Numbers::Plain(numbers) => numbers,
            Numbers::Base64(text) => decode_vector(&text)?,
        };
        match vectors.get_mut(index) {
            Some(place @ None) => *place = Some(numbers),
            _ => {
                return Err(EmbedError::Malformed(format!(
                    "the index {index} is wrong or comes twice"
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

/// `{"embeddings": [{"values": […]}]}`.
pub(super) fn parse_gemini(answer: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let embeddings = parse_response::<GeminiEmbeddingResponse>(answer, count)?.embeddings;
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

/// `{"embeddings": [[…]]}`.
pub(super) fn parse_ollama(answer: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let embeddings = parse_response::<OllamaEmbeddingResponse>(answer, count)?.embeddings;
    check_count(embeddings.len(), count)?;
    Ok(embeddings)
}

fn parse_response<T: DeserializeOwned>(answer: &[u8], count: usize) -> Result<T, EmbedError> {
    let text = std::str::from_utf8(answer);
    let text = text.map_err(|_| EmbedError::Malformed("it is not valid UTF-8".to_owned()))?;
    let most_values = count.saturating_add(1).saturating_mul(MAX_VALUES_EACH);
    json::parse(text.as_bytes(), most_values)
        .map_err(|error| EmbedError::Malformed(error.to_string()))
}

fn check_count(found: usize, expected: usize) -> Result<(), EmbedError> {
    if found == expected {
        return Ok(());
    }
    Err(EmbedError::Malformed(format!(
        "{found} vectors came for {expected} texts"
    )))
}

fn decode_vector(text: &str) -> Result<Vec<f32>, EmbedError> {
    let broken = || EmbedError::Malformed("a vector in base64 is broken".to_owned());
    vectors::from_bytes(&decode_base64(text).ok_or_else(broken)?)
        .map_err(|error| EmbedError::Malformed(error.to_string()))
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    if text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0);
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
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B105
    #[test]
    fn vectors_of_either_form_are_read_and_too_many_values_are_not() {
        let answer =
            br#"{"data":[{"embedding":[1,-2.5e0],"index":1},{"embedding":"AACAPw==","index":0}]}"#;
        assert_eq!(
            parse_openai(answer, 2).unwrap(),
            [vec![1.0], vec![1.0, -2.5]]
        );
        assert!(parse_openai(br#"{"data":[{"embedding":{"a":1}}]}"#, 1).is_err());
        assert!(parse_openai(br#"{"data":[{"embedding":["a"]}]}"#, 1).is_err());
        let many = format!(r#"{{"embeddings":[{}[]]}}"#, "[],".repeat(100_000));
        for read in [parse_ollama, parse_gemini] {
            let error = read(many.as_bytes(), 2).unwrap_err();
            assert_eq!(
                error,
                EmbedError::Malformed("it has more than 49152 values".to_owned())
            );
        }
    }

    #[test]
    fn base64_is_read_with_and_without_its_end() {
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
