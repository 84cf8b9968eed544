//! Integration tests of the web crate.

#[cfg(test)]
mod web;
