//! The seam to where documents are kept: pieces of text that can be found and cited.

use serde::{Deserialize, Serialize};

use crate::event::{Principal, SessionId};
use crate::session::Answer;

/// Keeps documents as numbered pieces. Ships as SQLite; what searches them is derived from it and can be made anew.
pub trait DocumentStore: Send + Sync {
    /// Every collection of a principal's, by name.
    fn collections<'a>(&'a self, of: &'a Principal) -> Answer<'a, Vec<CollectionInfo>>;

    /// What is known of a collection: each source with the hash of its content.
    fn sources<'a>(&'a self, of: &'a Principal, collection: &'a str) -> Answer<'a, Vec<Source>>;

    /// Puts documents, whole, in the place of those with the same source.
    fn put<'a>(&'a self, of: &'a Principal, documents: Vec<NewDocument>) -> Answer<'a, ()>;

    /// Takes documents out; gives how many there were.
    fn remove<'a>(&'a self, of: &'a Principal, collection: &'a str, sources: Which) -> Answer<'a, usize>;

    /// These pieces, as far as they are there, in no order.
    fn pieces(&self, ids: Vec<u64>) -> Answer<'_, Vec<Piece>>;

    /// What pieces were put or removed, in order, behind a number.
    fn changes(&self, behind: u64, most: usize) -> Answer<'_, Vec<Change>>;

    /// Vectors by what they were made of: the same words are embedded once.
    fn put_vectors<'a>(&'a self, embedder: &'a str, vectors: Vec<(String, Vec<u8>)>) -> Answer<'a, ()>;

    /// The vectors of these pieces, as far as there are any.
    fn vectors<'a>(&'a self, embedder: &'a str, ids: Vec<u64>) -> Answer<'a, Vec<(u64, Vec<u8>)>>;

    /// Vectors of words that stand in no piece any more go.
    fn forget_unused_vectors(&self) -> Answer<'_, ()>;
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
pub struct Source {
    pub source: String,
    /// What was added, and it was found under.
    pub root: String,
    pub hash: String,
}

/// Which documents of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    These(Vec<String>),
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
    pub pieces: Vec<NewPiece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPiece {
    pub text: String,
    /// Of everything that its vector is made of: title, heading and text.
    pub hash: String,
    /// Headings above it, outermost first, with ` › ` between them.
    pub heading: String,
    pub place: Place,
}

/// Where a piece stands in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub unit: Unit,
    pub first: u32,
    pub last: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Lines,
    Pages,
}

/// A piece with all that is needed to cite it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub id: u64,
    pub owner: Owner,
    pub document: u64,
    /// From 0, in the order of the document.
    pub number: u32,
    pub source: String,
    pub title: String,
    pub heading: String,
    pub place: Place,
    pub text: String,
}

/// Who may find a piece, and where it was put.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pub principal: Principal,
    pub collection: String,
    /// Where it belongs to one session only.
    pub session: Option<SessionId>,
}

/// Something that happened to a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub number: u64,
    pub piece: u64,
    /// Whether it was put; else it was removed.
    pub is_there: bool,
}
