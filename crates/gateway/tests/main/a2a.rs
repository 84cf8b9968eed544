//! Lango as an agent of others: both bindings, both versions, over real connections.

mod approvals;
mod bad_input;
mod cards;
mod harness;
mod messages;
mod push;
mod restarts;
