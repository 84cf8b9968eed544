//! Tests of the A2A server: both bindings and both versions over real connections.

mod approvals;
mod bad_input;
mod cards;
pub mod harness;
mod messages;
mod push;
mod restarts;
