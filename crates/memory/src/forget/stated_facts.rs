//! Facts that the user stated, batch by batch.

use lango_domain::StoreError;
use lango_domain::event::Principal;
use lango_domain::graph::{FactBatchFormat, FactLogPosition, FactSource, GraphStore};

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
    format: &dyn FactBatchFormat,
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
            match format.statements(&batch.body) {
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
