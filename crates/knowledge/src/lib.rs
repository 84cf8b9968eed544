//! Knowledge of the assistant: document search, the knowledge graph, the knowledge base,
//! conversation memory, inquiries and the web.

pub mod document_index;
pub mod embedding;
pub mod evaluation;
pub mod forget;
pub mod fusion;
pub mod graph;
mod html;
pub mod inquiries;
pub mod knowledge_base;
mod lazy;
pub mod lexical;
pub mod memory;
pub mod parse;
pub mod rag_index;
mod rag_tools;
mod request_detection;
pub mod secret_scan;
pub mod short_text_index;
mod turn_transcript;
pub mod vectors;
pub mod web;

pub use lazy::Lazy;
pub use rag_index::DocumentAccess;
pub use rag_tools::{GraphExpansion, LazyDocumentIndex, RagSettings, passage_json, tools};

/// Returns a non-cryptographic hash of `bytes`; it does not resist deliberate collisions.
fn fingerprint(bytes: &[u8]) -> u64 {
    let step = |sum: u64, word: u64| {
        (sum ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64, |sum, &word| {
        step(sum, u64::from_le_bytes(word))
    });
    rest.iter()
        .fold(sum, |sum, &byte| step(sum, u64::from(byte)))
}
