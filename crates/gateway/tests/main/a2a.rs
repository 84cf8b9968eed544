//! Lango as an agent of others: both bindings, both versions, over real connections.

mod messages;
mod bad_input;
mod cards;
mod harness;
mod push;
mod approvals;
mod restarts;
