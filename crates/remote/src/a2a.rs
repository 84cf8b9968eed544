//! The Agent2Agent protocol: its words, and how they look on each wire.
//!
//! There is one model, that of version 1.0. Version 0.3 exists only where JSON is read or written: every `read` and `write`
//! is told on which [`Wire`] the JSON travels. Nothing here does IO.

mod card;
mod error;
mod event;
mod ids;
mod json_fields;
mod message;
mod push;
mod request;
pub mod rest;
pub mod rpc;
mod security;
mod task;
mod version;

pub use card::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    Binding, ParsedCard,
};
pub use error::{ErrorKind, ProtocolError};
pub use event::{ArtifactUpdate, SendReply, StatusUpdate, StreamEvent};
pub use ids::{ArtifactId, ContextId, MessageId, PushConfigId, TaskId};
pub use json_fields::{FieldError, Metadata};
pub use message::{Message, Part, PartContent, Role};
pub use push::{Authentication, PushConfig, push_configs_to_json};
pub use request::{A2aCall, A2aMethod, A2aRequest, ListTasks, ReturnMode, SendMessage, TaskPage};
pub use security::{ApiKeyLocation, SecurityRequirement, SecurityScheme};
pub use task::{Artifact, Task, TaskState, TaskStatus};
pub use version::{ProtocolVersion, WireFormat};
