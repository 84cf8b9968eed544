//! Batches of texts for embedding requests.

/// Providers accept at most 96 to 2,048 texts per request.
const MAX_TEXTS: usize = 96;
/// Bytes of text in one request; a longer text gets its own request.
const MAX_BYTES: usize = 250 * 1024;

/// Splits `texts`, in order, into batches that fit into one request each.
pub(super) fn split_into_batches(texts: Vec<String>) -> Vec<Vec<String>> {
    let mut batches: Vec<Vec<String>> = Vec::new();
    let mut bytes = 0;
    for text in texts {
        let has_room =
            |batch: &&mut Vec<String>| batch.len() < MAX_TEXTS && bytes + text.len() <= MAX_BYTES;
        match batches.last_mut().filter(has_room) {
            Some(batch) => {
                bytes += text.len();
                batch.push(text);
            }
            None => {
                bytes = text.len();
                batches.push(vec![text]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_respect_text_and_byte_limits() {
        let sizes = |texts: Vec<String>| {
            split_into_batches(texts)
                .iter()
                .map(Vec::len)
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(Vec::new()), [0; 0]);
        assert_eq!(sizes(vec![String::new(); 200]), [96, 96, 8]);
        assert_eq!(sizes(vec!["x".repeat(100 * 1024); 5]), [2, 2, 1]);
        assert_eq!(
            sizes(vec!["x".repeat(300 * 1024), "y".to_owned(), "z".to_owned()]),
            [1, 2]
        );
    }
}
