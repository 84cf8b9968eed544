//! Tests against a real browser and pages on loopback.

mod actions;
mod egress;
mod hostile;
mod outline;
mod setup;
