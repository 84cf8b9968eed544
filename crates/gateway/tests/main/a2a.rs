//! Lango as an agent of others: both bindings, both versions, over real connections.

mod asking;
mod bad_input;
mod cards;
mod house;
mod listening;
mod permission;
mod restarts;
