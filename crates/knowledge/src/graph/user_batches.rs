//! Facts that somebody told in their own words, batch by batch, and what stays of a batch without some of them.

use std::collections::BTreeSet;

use lango_domain::event::Principal;
use lango_domain::graph::{FactLogPosition, FactSource, GraphStore};
use lango_domain::session::StoreError;

use super::batch::{BatchError, BatchWriter, DecodedBatch, decode};
use super::fact::FactRef;

/// A batch that was told at the command line or in a session.
pub(crate) struct UserFactBatch {
    pub number: u64,
    pub source: FactSource,
    pub body: Vec<u8>,
    /// What each of its facts says, and behind them what each of its endings does.
    pub statements: Vec<String>,
}

/// All that a principal told; a batch that cannot be read says nothing.
pub(crate) async fn load_user_batches(
    store: &dyn GraphStore,
    of: &Principal,
) -> Result<Vec<UserFactBatch>, StoreError> {
    let (mut seen, mut own) = (FactLogPosition::default(), Vec::new());
    loop {
        let changes = store.changes(of, seen).await?;
        if changes.batches.is_empty() {
            return Ok(own);
        }
        seen = changes.position;
        for batch in changes
            .batches
            .into_iter()
            .filter(|batch| batch.source.is_own())
        {
            match decode(&batch.body).map(|reading| format_statements(&reading)) {
                Ok(statements) => {
                    let (number, source) = (batch.number, batch.source);
                    own.push(UserFactBatch {
                        number,
                        source,
                        body: batch.body,
                        statements,
                    });
                }
                Err(error) => {
                    tracing::warn!(batch = batch.number, %error, "its facts are passed over")
                }
            }
        }
    }
}

fn format_statements(reading: &DecodedBatch<'_>) -> Vec<String> {
    let facts = reading
        .facts
        .iter()
        .map(|&[subject, predicate, object, _]| [subject, predicate, object]);
    let endings = reading.retirements.iter().map(|(triple, _)| *triple);
    let statement = |triple: [u32; 3]| {
        let (subject, predicate, object) = triple_names(reading, triple);
        format!("{subject} {} {object}", predicate.replace('_', " "))
    };
    facts.chain(endings).map(statement).collect()
}

fn triple_names<'a>(
    reading: &DecodedBatch<'a>,
    [subject, predicate, object]: [u32; 3],
) -> (&'a str, &'a str, &'a str) {
    let name = |number: u32| reading.names[number as usize];
    (
        name(subject),
        reading.predicates[predicate as usize],
        name(object),
    )
}

/// The batch without these statements; nothing where nothing stays.
pub(crate) fn remove_statements(
    body: &[u8],
    gone: &BTreeSet<usize>,
) -> Result<Option<Vec<u8>>, BatchError> {
    let reading = decode(body)?;
    let mut writing = BatchWriter::default();
    let mut left = 0;
    for (at, &[subject, predicate, object, detail]) in reading.facts.iter().enumerate() {
        if gone.contains(&at) {
            continue;
        }
        left += 1;
        let (subject, predicate, object) = triple_names(&reading, [subject, predicate, object]);
        let detail = reading.details[detail as usize];
        let text = |number: u32| {
            reading
                .texts
                .get(number as usize)
                .copied()
                .unwrap_or_default()
        };
        writing.push(&FactRef {
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
    for (at, (triple, moment)) in reading.retirements.iter().enumerate() {
        if !gone.contains(&(reading.facts.len() + at)) {
            left += 1;
            writing.retire(triple_names(&reading, *triple), *moment);
        }
    }
    Ok((left > 0).then(|| writing.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::validity::Moment;

    /// B106
    #[test]
    fn what_stays_of_a_batch_is_as_it_was() {
        let mut writing = BatchWriter::default();
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
        writing.push(&tea);
        writing.push(&home);
        writing.retire(("Ada", "likes", "milk"), Moment(9));
        let body = writing.finish();
        let left = remove_statements(&body, &BTreeSet::from([0]))
            .unwrap()
            .unwrap();
        let mut expected = BatchWriter::default();
        expected.push(&home);
        expected.retire(("Ada", "likes", "milk"), Moment(9));
        assert_eq!(left, expected.finish());
        assert!(
            !left.windows(3).any(|window| window == b"tea"),
            "not even its name stays"
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
