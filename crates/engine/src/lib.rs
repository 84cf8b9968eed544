//! The loop: runs any team, one turn at a time, and stays right whatever the model does.
//!
//! [`Runner::run`] is the one door. A turn is decided by a machine without IO ([`work`]), driven by a dull loop
//! ([`driver`]); everything that happens is stored, then shown ([`record`]).

mod asking;
mod beside;
mod calibration;
mod crew;
mod delegating;
mod dispatch;
mod done;
mod driver;
mod failure;
mod flow;
mod guard;
mod legacy;
mod limits;
mod memory_store;
mod pause;
mod permission;
mod plan;
mod record;
mod recovery;
mod reply;
mod request;
mod runner;
mod transfer;
mod turn_stream;
mod view;
mod work;

pub use beside::Beside;
pub use guard::{Approval, Rule, Verdict};
pub use legacy::{LegacyMessage, LegacyRole, replay_author};
pub use limits::{Limits, Settings};
pub use memory_store::InMemorySessionStore;
pub use recovery::Unfinished;
pub use request::TurnRequest;
pub use runner::{Models, Parts, Runner, Surroundings};
pub use turn_stream::TurnStream;
