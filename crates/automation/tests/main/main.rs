//! Tests of automation.

#[cfg(test)]
mod delivery;
mod workflow;
