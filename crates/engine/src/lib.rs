//! The engine: runs the turns of a team and stays correct whatever the model replies.
//!
//! [`Runner::run`] is the entry point. `agent_loop` makes every decision of a turn and does no IO;
//! `driver` executes the decisions. Events are stored first and published afterwards (`turn_log`).

mod agent_loop;
mod agent_models;
mod approval;
mod approval_policy;
mod attachments;
mod calibration;
mod delegation;
mod driver;
mod flow;
mod hooks;
mod in_memory_store;
mod json_schema;
mod legacy;
mod limits;
mod message_history;
mod model_call;
mod not_done;
mod plan;
mod prepared_team;
mod progress_summary;
mod recovery;
mod reply;
mod request;
mod runner;
mod secrets;
mod single_call;
mod tool_execution;
mod transfer;
mod turn;
mod turn_clock;
mod turn_error;
mod turn_log;
mod turn_permission;
mod turn_stream;

pub use agent_models::Models;
pub use approval_policy::{ApprovalPolicy, ApprovalRule, Verdict};
pub use hooks::TurnHooks;
pub use in_memory_store::InMemorySessionStore;
pub use legacy::{LegacyMessage, LegacyRole, replay_author};
pub use limits::{EngineSettings, TurnLimits};
pub use recovery::{UnfinishedTurn, has_known_effects};
pub use request::TurnRequest;
pub use runner::{Runner, RunnerParts};
pub use single_call::{NO_OUTPUT, SINGLE_CALL_MODEL};
pub use turn_clock::ClockAndIds;
pub use turn_permission::{CallGuard, TurnBudget, TurnPermission};
pub use turn_stream::TurnStream;
