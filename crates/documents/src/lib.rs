//! Document search: parsing, chunks, the lexical index, embeddings, and the tools of the librarian.

pub mod document_index;
pub mod embedding;
pub mod evaluation;
pub mod fusion;
pub mod lexical;
pub mod parse;
pub mod rag_index;
mod rag_tools;
pub mod vectors;

pub use rag_index::DocumentAccess;
pub use rag_tools::{LazyDocumentIndex, RagSettings, passage_json, tools};
