//! Starts, follows, cancels and approves turns, for the terminal, HTTP, A2A and every other way in.

pub mod approvals;
pub mod client_context;
mod runtime;
mod subscribers;
mod turn_limit;
mod turn_meter;
mod turns;

pub use approvals::ClientBridge;
pub use runtime::{Runtime, RuntimeParts, StartTurnError, TurnObserver};
pub use subscribers::SessionSubscribers;
pub use turn_limit::{TooManyTurns, TurnLimiter, TurnPermit};
pub use turn_meter::TurnMeter;
pub use turns::{OnDisconnect, TurnHandle, TurnInput, TurnSpec, TurnTarget};
