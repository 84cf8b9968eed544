//! Facts that the user stated, batch by batch, and the removal of single statements from a batch.

use std::collections::BTreeSet;

use lango_domain::event::Principal;
use lango_domain::graph::{FactLogPosition, FactSource, GraphStore};
use lango_domain::session::StoreError;

use super::batch::{BatchError, BatchWriter, DecodedBatch, decode};
use super::fact::FactRef;

/// A batch that was added on the command line or in a session.
pub(crate) struct UserFactBatch {
    pub number: u64,
    pub source: FactSource,
    pub body: Vec<u8>,
    /// One text per fact, followed by one text per retirement.
    pub statements: Vec<String>,
}

/// Loads the batches that a principal stated. Skips batches that cannot be decoded.
pub(crate) async fn load_user_batches(
    store: &dyn GraphStore,
    principal: &Principal,
) -> Result<Vec<UserFactBatch>, StoreError> {
    let (mut position, mut batches) = (FactLogPosition::default(), Vec::new());
    loop {
        let changes = store.changes(principal, position).await?;
        if changes.batches.is_empty() {
            return Ok(batches);
        }
        position = changes.position;
        let stated = changes
            .batches
            .into_iter()
            .filter(|batch| batch.source.is_own());
        for batch in stated {
            match decode(&batch.body).map(|decoded| format_statements(&decoded)) {
                Ok(statements) => batches.push(UserFactBatch {
                    number: batch.number,
                    source: batch.source,
                    body: batch.body,
                    statements,
                }),
                Err(error) => {
                    tracing::warn!(batch = batch.number, %error, "skipping a batch of facts");
                }
            }
        }
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

/// Returns the batch without the statements at these indexes, or `None` if nothing remains.
pub(crate) fn remove_statements(
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
    use crate::graph::validity::Moment;

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
