//! Storage of documents: chunks of text that can be found and cited.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Principal, SessionId};
use crate::session::StoreFuture;

/// Stores documents as numbered chunks. Implemented on SQLite; search indexes are derived from it and
/// can be rebuilt.
pub trait DocumentStore: Send + Sync {
    /// Returns all collections of a principal, sorted by name.
    fn collections<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<CollectionInfo>>;

    /// Returns the sources of a collection, each with the hash of its content.
    fn sources<'a>(
        &'a self,
        principal: &'a Principal,
        collection: &'a str,
    ) -> StoreFuture<'a, Vec<DocumentSource>>;

    /// Stores whole documents, replacing those with the same source.
    fn put<'a>(
        &'a self,
        principal: &'a Principal,
        documents: Vec<NewDocument>,
    ) -> StoreFuture<'a, ()>;

    /// Deletes documents and returns their number.
    fn remove<'a>(
        &'a self,
        principal: &'a Principal,
        collection: &'a str,
        sources: DocumentFilter,
    ) -> StoreFuture<'a, usize>;

    /// Returns the chunks that exist among these ids, in no particular order.
    fn chunks(&self, ids: Vec<u64>) -> StoreFuture<'_, Vec<StoredChunk>>;

    /// Returns changes of chunks after a change number, in order.
    fn changes(&self, after: u64, limit: usize) -> StoreFuture<'_, Vec<ChunkChange>>;

    /// Stores vectors by the hash of the embedded text, so that the same text is embedded once.
    fn put_vectors<'a>(
        &'a self,
        embedder: &'a str,
        vectors: Vec<(String, Vec<u8>)>,
    ) -> StoreFuture<'a, ()>;

    /// Returns the vectors of these chunks, as far as they exist.
    fn vectors<'a>(
        &'a self,
        embedder: &'a str,
        ids: Vec<u64>,
    ) -> StoreFuture<'a, Vec<(u64, Vec<u8>)>>;

    /// Deletes vectors of text that no chunk contains any more.
    fn delete_unused_vectors(&self) -> StoreFuture<'_, ()>;
}

/// A collection and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CollectionInfo {
    pub name: String,
    pub documents: u64,
    pub pieces: u64,
    pub bytes: u64,
    /// The roots that were ingested, for detecting changes later.
    pub roots: Vec<String>,
}

/// The metadata that is needed to keep a stored document current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentSource {
    pub source: String,
    /// The ingested root that the document was found under.
    pub root: String,
    pub hash: String,
}

/// A selection of documents of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentFilter {
    All,
    Sources(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDocument {
    pub collection: String,
    /// The origin: a path or an address.
    pub source: String,
    /// The ingested root that the document was found under.
    pub root: String,
    pub title: String,
    pub hash: String,
    /// Set if the document belongs to a single session.
    pub session: Option<SessionId>,
    pub chunks: Vec<NewChunk>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewChunk {
    pub text: String,
    /// The hash of everything that is embedded: title, heading and text.
    pub hash: String,
    /// The headings above the chunk, outermost first, separated by ` › `.
    pub heading: String,
    pub span: DocumentSpan,
}

/// The location of a chunk in its document.
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

/// A chunk with everything needed to cite it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredChunk {
    pub id: u64,
    pub owner: ChunkOwner,
    pub document: u64,
    /// The position in the document, starting at 0.
    pub number: u32,
    pub source: String,
    pub title: String,
    pub heading: String,
    pub span: DocumentSpan,
    pub text: String,
}

/// The owner of a chunk, who may find it, and its collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChunkOwner {
    pub principal: Principal,
    pub collection: String,
    /// Set if the chunk belongs to a single session.
    pub session: Option<SessionId>,
}

/// A change of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkChange {
    pub number: u64,
    pub chunk: u64,
    /// True if the chunk was stored, false if it was deleted.
    pub is_present: bool,
}

/// The chunks that a search covers.
#[derive(Clone, Debug)]
pub struct SearchScope {
    pub principal: Principal,
    /// Chunks of a session are only found from that session.
    pub session: Option<SessionId>,
    /// All collections if not set.
    pub collections: Option<Vec<String>>,
}

impl SearchScope {
    pub fn covers(&self, owner: &ChunkOwner) -> bool {
        owner.principal == self.principal
            && (owner.session.is_none() || owner.session == self.session)
            && self
                .collections
                .as_ref()
                .is_none_or(|wanted| wanted.contains(&owner.collection))
    }
}

/// A passage found by a search, with everything needed to cite it.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    pub text: String,
    pub source: String,
    pub title: String,
    pub heading: String,
    pub span: DocumentSpan,
    pub collection: String,
    pub score: f32,
    pub breakdown: ScoreBreakdown,
    /// The number of near-duplicates that were removed.
    pub duplicates: usize,
}

/// The scores of a passage before fusion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreBreakdown {
    pub lexical: Option<f32>,
    pub vector: Option<f32>,
}

/// Finds passages for a query.
pub trait PassageSearch: Send + Sync {
    /// Returns the best passages, best first.
    fn search<'a>(
        &'a self,
        query: &'a str,
        scope: &'a SearchScope,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Passage>>;
}

/// Adds related facts and passages to the results of a search.
pub trait PassageExpander: Send + Sync {
    fn expand<'a>(
        &'a self,
        search: &'a dyn PassageSearch,
        scope: &'a SearchScope,
        question: &'a str,
        passages: &'a [Passage],
    ) -> StoreFuture<'a, PassageExpansion>;
}

/// Facts and passages to add to search results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PassageExpansion {
    pub facts: Vec<Value>,
    /// Each passage with the fact that led to it, as a sentence.
    pub passages: Vec<(Passage, String)>,
}
