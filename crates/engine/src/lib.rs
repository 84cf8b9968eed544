//! The loop: runs any team, one turn at a time, and stays right whatever the model does.
//!
//! [`Runner::run`] is the one door. A turn is decided by a machine without IO ([`work`]), driven by a dull loop
//! ([`driver`]); everything that happens is stored, then shown ([`record`]).

mod model_call;
mod hooks;
mod calibration;
mod prepared_team;
mod delegation;
mod tool_execution;
mod progress_summary;
mod driver;
mod turn_error;
mod flow;
mod approval_policy;
mod legacy;
mod limits;
mod in_memory_store;
mod turn_clock;
mod approval;
mod plan;
mod turn_log;
mod recovery;
mod reply;
mod request;
mod runner;
mod transfer;
mod turn_stream;
mod message_history;
mod agent_loop;

pub use hooks::TurnHooks;
pub use approval_policy::{ApprovalPolicy, ApprovalRule, Verdict};
pub use legacy::{LegacyMessage, LegacyRole, replay_author};
pub use limits::{TurnLimits, EngineSettings};
pub use in_memory_store::InMemorySessionStore;
pub use recovery::UnfinishedTurn;
pub use request::TurnRequest;
pub use runner::{Models, RunnerParts, Runner, ClockAndIds};
pub use turn_stream::TurnStream;
