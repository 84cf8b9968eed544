//! JSON of strangers. A value takes up to 60 times the memory of its bytes once it is read, so values are counted first.

use serde::Deserialize;

#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    #[error("it has more than {limit} values")]
    TooMany { limit: usize },
    #[error("{0}")]
    Invalid(#[from] serde_json::Error),
}

/// Reads one document that has at most so many values.
pub fn parse<'a, T: Deserialize<'a>>(
    document: &'a [u8],
    most_values: usize,
) -> Result<T, JsonError> {
    check_value_count(document, most_values)?;
    Ok(serde_json::from_slice(document)?)
}

/// Refuses a document with more values, whether or not it is JSON.
pub fn check_value_count(document: &[u8], most_values: usize) -> Result<(), JsonError> {
    // Most documents are so short that they cannot have too many.
    let is_short = document.len() <= most_values;
    if is_short || count_values(document) <= most_values {
        Ok(())
    } else {
        Err(JsonError::TooMany { limit: most_values })
    }
}

/// How many values a document has at most: each but the first stands behind a comma, or begins with a bracket.
pub fn count_values(document: &[u8]) -> usize {
    let (mut values, mut is_text, mut is_escaped) = (1, false, false);
    for byte in document {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => values += 1,
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
    fn documents_with_too_many_values_are_refused_before_they_are_read() {
        assert!(is_too_many("[0,0,0,0,0,0,0,0,0,0,0]"));
        assert!(is_too_many(&"[".repeat(1_000_000)), "it is not even JSON");
        assert!(is_too_many(r#"[{"":0},{"":0},{"":0},{"":0},{"":0}]"#));
        assert!(
            is_too_many(r#"["\"",1,2,3,4,5,6,7,8,9]"#),
            "a quote inside a text ends no text"
        );
    }

    #[test]
    fn what_stands_in_a_text_is_no_value() {
        let text = serde_json::to_string(&"[,{\"\\,".repeat(100)).unwrap();
        assert!(parse::<Value>(text.as_bytes(), 10).is_ok());
        assert!(parse::<Value>(br#"{"a":[1,2,3],"b":{"c":"d"}}"#, 10).is_ok());
        assert!(matches!(
            parse::<Value>(b"{oops, this is no JSON", 10),
            Err(JsonError::Invalid(_))
        ));
    }
}
