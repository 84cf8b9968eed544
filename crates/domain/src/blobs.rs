//! Storage of the bytes of attachments.

use std::sync::Arc;

use crate::content::BlobId;
use crate::session::{SessionKeyRef, StoreFuture};

/// The bytes of attachments, each stored once, whatever number of events name them (B110).
///
/// Bytes are written together with the event that brings them, by [`crate::session::SessionStore::append`] and
/// [`crate::session_catalog::SessionCatalog::import_session`], and deleted together with the last event that
/// names them.
pub trait BlobStore: Send + Sync {
    /// Returns the bytes of an attachment of this session. `None` if no event of the session names
    /// them, or if they are lost.
    fn blob<'a>(
        &'a self,
        key: SessionKeyRef<'a>,
        blob: &'a BlobId,
    ) -> StoreFuture<'a, Option<Arc<[u8]>>>;

    /// Returns the number of stored blobs and the sum of their bytes.
    fn blob_totals(&self) -> StoreFuture<'_, BlobTotals>;
}

/// The stored bytes of all principals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobTotals {
    pub blobs: u64,
    pub bytes: u64,
}
