//! Parsing of untrusted JSON. A parsed value takes up to 60 times the memory of its bytes, so
//! values are counted first.

use serde::Deserialize;

#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    #[error("more than {limit} values")]
    TooMany { limit: usize },
    #[error("{0}")]
    Invalid(#[from] serde_json::Error),
}

/// Parses a document with at most `max_values` values.
pub fn parse<'a, T: Deserialize<'a>>(
    document: &'a [u8],
    max_values: usize,
) -> Result<T, JsonError> {
    check_value_count(document, max_values)?;
    Ok(serde_json::from_slice(document)?)
}

/// Returns an error if the document has more than `max_values` values. The document need not be
/// valid JSON.
pub fn check_value_count(document: &[u8], max_values: usize) -> Result<(), JsonError> {
    // Most documents are too short to have too many.
    let is_short = document.len() <= max_values;
    if is_short || count_values(document) <= max_values {
        Ok(())
    } else {
        Err(JsonError::TooMany { limit: max_values })
    }
}

/// Returns an upper bound of the number of values: each but the first follows a comma or begins
/// with a bracket.
pub fn count_values(document: &[u8]) -> usize {
    let (mut values, mut is_in_string, mut is_escaped) = (1, false, false);
    for byte in document {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b',' | b'[' | b'{' if !is_in_string => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn is_too_many(document: &str) -> bool {
        matches!(
            parse::<Value>(document.as_bytes(), 10),
            Err(JsonError::TooMany { limit: 10 })
        )
    }

    /// B105
    #[test]
    fn rejects_too_many_values_before_parsing() {
        assert!(is_too_many("[0,0,0,0,0,0,0,0,0,0,0]"));
        assert!(is_too_many(&"[".repeat(1_000_000)), "not JSON");
        assert!(is_too_many(r#"[{"":0},{"":0},{"":0},{"":0},{"":0}]"#));
        assert!(
            is_too_many(r#"["\"",1,2,3,4,5,6,7,8,9]"#),
            "an escaped quote does not end a string"
        );
    }

    #[test]
    fn brackets_and_commas_in_strings_are_not_counted() {
        let text = serde_json::to_string(&"[,{\"\\,".repeat(100)).unwrap();
        assert!(parse::<Value>(text.as_bytes(), 10).is_ok());
        assert!(parse::<Value>(br#"{"a":[1,2,3],"b":{"c":"d"}}"#, 10).is_ok());
        assert!(matches!(
            parse::<Value>(b"{oops, this is no JSON", 10),
            Err(JsonError::Invalid(_))
        ));
    }
}
