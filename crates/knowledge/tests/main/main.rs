//! Integration tests of the knowledge crate.

#[cfg(test)]
mod document_index;
#[cfg(test)]
mod embedding;
#[cfg(test)]
mod forgetting;
#[cfg(test)]
mod fusion;
#[cfg(test)]
mod graph;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod inquiries;
#[cfg(test)]
mod knowledge_base;
#[cfg(test)]
mod labels;
#[cfg(test)]
mod lexical;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod parse;
#[cfg(test)]
mod tool_calls;
#[cfg(test)]
mod vector_file;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod web;
