//! The loop: runs any team, one turn at a time, and stays right whatever the model does.
//!
//! [`Runner::run`] is the one door. A turn is decided by a machine without IO ([`work`]), driven by a dull loop
//! ([`driver`]); everything that happens is stored, then shown ([`record`]).

mod agent_loop;
mod approval;
mod approval_policy;
mod calibration;
mod delegation;
mod driver;
mod flow;
mod hooks;
mod in_memory_store;
mod legacy;
mod limits;
mod message_history;
mod model_call;
mod plan;
mod prepared_team;
mod progress_summary;
mod recovery;
mod reply;
mod request;
mod runner;
mod tool_execution;
mod transfer;
mod turn_clock;
mod turn_error;
mod turn_log;
mod turn_stream;

pub use approval_policy::{ApprovalPolicy, ApprovalRule, Verdict};
pub use hooks::TurnHooks;
pub use in_memory_store::InMemorySessionStore;
pub use legacy::{LegacyMessage, LegacyRole, replay_author};
pub use limits::{EngineSettings, TurnLimits};
pub use recovery::UnfinishedTurn;
pub use request::TurnRequest;
pub use runner::{ClockAndIds, Models, Runner, RunnerParts};
pub use turn_stream::TurnStream;
