//! Training (`cargo xtask train routing`) and evaluation (`cargo xtask eval routing`) of the offline router.

mod data;
mod eval;
mod live_model;
mod report;
mod train;

pub use eval::run as eval;
pub use train::run as train;

/// The committed weights.
const WEIGHTS_FILE: &str = "crates/models/src/offline/routing.bin";
