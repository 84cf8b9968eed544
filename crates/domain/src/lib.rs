//! The domain of Lango: plain values, and the traits between its parts. Nothing here does IO.

pub mod access_tokens;
pub mod agent;
pub mod approval;
pub mod audit;
pub mod automation;
pub mod blobs;
pub mod circuit_breaker;
pub mod clock;
pub mod content;
pub mod documents;
pub mod event;
pub mod failure;
pub mod fence;
pub mod flow;
pub mod forget;
mod generation;
pub mod graph;
pub mod hooks;
pub mod inquiries;
pub mod knowledge;
pub mod lazy;
pub mod maintenance;
pub mod markers;
pub mod memory;
pub mod model;
pub mod pattern;
pub mod payments;
pub mod prompt;
pub mod redaction;
pub mod remote_agent;
pub mod reply_limits;
pub mod secret;
pub mod secret_reference;
pub mod session;
pub mod session_catalog;
pub mod spanned;
mod store_error;
pub mod stores;
pub mod tasks;
pub mod tool;
pub mod usage;
pub mod vault;

pub use agent::{
    Agent, AgentLocation, AgentName, AgentSpec, AgentTree, InvalidAgentName, Prefix, SkippedAgent,
    SpecOrigin, TeamMode,
};
pub use clock::Clock;
pub use content::{Attachment, Content, ContentPart, ReadableKinds};
pub use flow::{Destination, Label, LabeledText, OutgoingData};
pub use generation::Generation;
pub use prompt::{Prompt, Section};
pub use secret_reference::{
    SecretBinding, SecretError, SecretField, SecretName, SecretReference, SecretSource, SecretUse,
};
pub use store_error::StoreError;
pub use stores::Stores;
pub use tool::{
    Intent, PlainResultFunction, Safety, Tool, ToolContext, ToolError, ToolFunction, ToolFuture,
    ToolOutput, ToolOutputSink, Trust,
};
