//! The words of Lango: plain values and the seams between its parts. Nothing here does IO.

pub mod agent;
pub mod approval;
pub mod clock;
pub mod usage;
pub mod documents;
pub mod event;
pub mod failure;
pub mod fence;
pub mod flow;
pub mod forget;
pub mod graph;
pub mod hooks;
pub mod inquiries;
pub mod knowledge;
pub mod spanned;
pub mod memory;
pub mod model;
pub mod pattern;
pub mod prompt;
pub mod reply_limits;
pub mod remote_agent;
pub mod secret;
pub mod session;
pub mod suggest;
pub mod text;
pub mod token_estimate;
pub mod tool;
pub mod markers;

pub use clock::Clock;
pub use agent::{
    Agent, AgentName, AgentSpec, AgentTree, InvalidAgentName, TeamMode, SpecOrigin, AgentLocation, Prefix, SkippedAgent,
};
pub use flow::{Destination, Label, LabeledText, OutgoingData};
pub use prompt::{Prompt, Section};
pub use tool::{
    Intent, ToolOutputSink, Safety, Tool, ToolContext, ToolError, ToolFunction, ToolFuture, ToolOutput, Trust,
};
