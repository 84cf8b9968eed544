//! The statements in a batch of facts, and their removal.

use std::collections::BTreeSet;

use lango_domain::StoreError;
use lango_domain::graph::FactBatchFormat;

use super::batch::{BatchError, BatchWriter, DecodedBatch, decode};
use super::fact::FactRef;

/// The encoding of facts in batches, statement by statement.
pub struct GraphBatchFormat;

impl FactBatchFormat for GraphBatchFormat {
    fn statements(&self, body: &[u8]) -> Result<Vec<String>, StoreError> {
        let batch = decode(body).map_err(|error| StoreError::Other(error.to_string()))?;
        Ok(format_statements(&batch))
    }

    fn remove_statements(
        &self,
        body: &[u8],
        removed: &BTreeSet<usize>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        remove_statements(body, removed).map_err(|error| StoreError::Other(error.to_string()))
    }
}

fn format_statements(batch: &DecodedBatch<'_>) -> Vec<String> {
    let facts = batch
        .facts
        .iter()
        .map(|&[subject, predicate, object, _]| [subject, predicate, object]);
    let retirements = batch.retirements.iter().map(|(triple, _)| *triple);
    let statement = |triple: [u32; 3]| {
        let (subject, predicate, object) = triple_names(batch, triple);
        format!("{subject} {} {object}", predicate.replace('_', " "))
    };
    facts.chain(retirements).map(statement).collect()
}

fn triple_names<'a>(
    batch: &DecodedBatch<'a>,
    [subject, predicate, object]: [u32; 3],
) -> (&'a str, &'a str, &'a str) {
    let name = |number: u32| batch.names[number as usize];
    (
        name(subject),
        batch.predicates[predicate as usize],
        name(object),
    )
}

fn remove_statements(
    body: &[u8],
    removed: &BTreeSet<usize>,
) -> Result<Option<Vec<u8>>, BatchError> {
    let batch = decode(body)?;
    let mut writer = BatchWriter::default();
    let mut remaining = 0;
    for (at, &[subject, predicate, object, detail]) in batch.facts.iter().enumerate() {
        if removed.contains(&at) {
            continue;
        }
        remaining += 1;
        let (subject, predicate, object) = triple_names(&batch, [subject, predicate, object]);
        let detail = batch.details[detail as usize];
        let text = |number: u32| {
            batch
                .texts
                .get(number as usize)
                .copied()
                .unwrap_or_default()
        };
        writer.push(&FactRef {
            subject,
            predicate,
            object,
            subject_type: text(detail.subject_type),
            object_type: text(detail.object_type),
            properties: text(detail.properties),
            valid_from: detail.from,
            valid_to: detail.to,
        });
    }
    for (at, (triple, moment)) in batch.retirements.iter().enumerate() {
        if !removed.contains(&(batch.facts.len() + at)) {
            remaining += 1;
            writer.retire(triple_names(&batch, *triple), *moment);
        }
    }
    Ok((remaining > 0).then(|| writer.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validity::Moment;

    /// B106
    #[test]
    fn removing_statements_leaves_the_rest_unchanged() {
        let mut writer = BatchWriter::default();
        let tea = FactRef {
            subject: "Ada",
            predicate: "likes",
            object: "tea",
            ..FactRef::default()
        };
        let from = Some(Moment(7));
        let home = FactRef {
            object: "Vienna",
            predicate: "lives_in",
            properties: "{}",
            valid_from: from,
            ..tea
        };
        writer.push(&tea);
        writer.push(&home);
        writer.retire(("Ada", "likes", "milk"), Moment(9));
        let body = writer.finish();
        let remaining = remove_statements(&body, &BTreeSet::from([0]))
            .unwrap()
            .unwrap();
        let mut expected = BatchWriter::default();
        expected.push(&home);
        expected.retire(("Ada", "likes", "milk"), Moment(9));
        assert_eq!(remaining, expected.finish());
        assert!(
            !remaining.windows(3).any(|window| window == b"tea"),
            "the name of the removed object is removed too"
        );
        assert_eq!(
            remove_statements(&body, &BTreeSet::from([0, 1, 2])).unwrap(),
            None
        );
        assert_eq!(
            remove_statements(&body, &BTreeSet::from([99])).unwrap(),
            Some(body)
        );
        assert_eq!(
            remove_statements(b"nonsense", &BTreeSet::new()),
            Err(BatchError)
        );
    }
}
