//! Learning from conversations: observations and reflections, the knowledge base with learnings,
//! inquiries, and forgetting.

pub mod forget;
pub mod inquiries;
pub mod knowledge_base;
pub mod observational_memory;
mod request_detection;
mod turn_transcript;
