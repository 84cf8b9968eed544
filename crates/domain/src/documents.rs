//! The seam to where documents are kept: pieces of text that can be found and cited.

use serde::{Deserialize, Serialize};

use crate::event::{Principal, SessionId};
use crate::session::StoreFuture;

/// Keeps documents as numbered pieces. Ships as SQLite; what searches them is derived from it and can be made anew.
pub trait DocumentStore: Send + Sync {
    /// Every collection of a principal's, by name.
    fn collections<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, Vec<CollectionInfo>>;

    /// What is known of a collection: each source with the hash of its content.
    fn sources<'a>(
        &'a self,
        of: &'a Principal,
        collection: &'a str,
    ) -> StoreFuture<'a, Vec<DocumentSource>>;

    /// Puts documents, whole, in the place of those with the same source.
    fn put<'a>(&'a self, of: &'a Principal, documents: Vec<NewDocument>) -> StoreFuture<'a, ()>;

    /// Takes documents out; gives how many there were.
    fn remove<'a>(
        &'a self,
        of: &'a Principal,
        collection: &'a str,
        sources: DocumentFilter,
    ) -> StoreFuture<'a, usize>;

    /// These pieces, as far as they are there, in no order.
    fn chunks(&self, ids: Vec<u64>) -> StoreFuture<'_, Vec<StoredChunk>>;

    /// What pieces were put or removed, in order, behind a number.
    fn changes(&self, behind: u64, most: usize) -> StoreFuture<'_, Vec<ChunkChange>>;

    /// Vectors by what they were made of: the same words are embedded once.
    fn put_vectors<'a>(
        &'a self,
        embedder: &'a str,
        vectors: Vec<(String, Vec<u8>)>,
    ) -> StoreFuture<'a, ()>;

    /// The vectors of these pieces, as far as there are any.
    fn vectors<'a>(
        &'a self,
        embedder: &'a str,
        ids: Vec<u64>,
    ) -> StoreFuture<'a, Vec<(u64, Vec<u8>)>>;

    /// Vectors of words that stand in no piece any more go.
    fn delete_unused_vectors(&self) -> StoreFuture<'_, ()>;
}

/// A collection, and how much is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CollectionInfo {
    pub name: String,
    pub documents: u64,
    pub pieces: u64,
    pub bytes: u64,
    /// What was added, to look for changes again.
    pub roots: Vec<String>,
}

/// A document that is kept, as far as it must be known to keep it current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentSource {
    pub source: String,
    /// What was added, and it was found under.
    pub root: String,
    pub hash: String,
}

/// Which documents of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentFilter {
    All,
    Sources(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDocument {
    pub collection: String,
    /// Where it is from: a path, an address.
    pub source: String,
    /// What was added, and it was found under.
    pub root: String,
    pub title: String,
    pub hash: String,
    /// Where it belongs to one session only.
    pub session: Option<SessionId>,
    pub chunks: Vec<NewChunk>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewChunk {
    pub text: String,
    /// Of everything that its vector is made of: title, heading and text.
    pub hash: String,
    /// Headings above it, outermost first, with ` › ` between them.
    pub heading: String,
    pub span: DocumentSpan,
}

/// Where a piece stands in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentSpan {
    pub unit: SpanUnit,
    pub first: u32,
    pub last: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanUnit {
    Lines,
    Pages,
}

/// A piece with all that is needed to cite it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredChunk {
    pub id: u64,
    pub owner: ChunkOwner,
    pub document: u64,
    /// From 0, in the order of the document.
    pub number: u32,
    pub source: String,
    pub title: String,
    pub heading: String,
    pub span: DocumentSpan,
    pub text: String,
}

/// Who may find a piece, and where it was put.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChunkOwner {
    pub principal: Principal,
    pub collection: String,
    /// Where it belongs to one session only.
    pub session: Option<SessionId>,
}

/// Something that happened to a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkChange {
    pub number: u64,
    pub chunk: u64,
    /// Whether it was put; else it was removed.
    pub is_present: bool,
}
