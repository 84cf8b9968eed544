//! The offline router: taught by `cargo xtask train routing`, measured by `cargo xtask eval routing`.

mod data;
mod eval;
mod live_model;
mod report;
mod train;

pub use eval::run as eval;
pub use train::run as train;

/// The table that is committed.
const WEIGHTS_FILE: &str = "crates/models/src/offline/routing.bin";
