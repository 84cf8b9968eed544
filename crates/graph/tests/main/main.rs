//! Integration tests of the graph crate.

#[cfg(test)]
mod graph;
