//! The Agent2Agent protocol: its data model and its wire formats.
//!
//! The data model is that of version 1.0. Version 0.3 exists only in JSON: every `from_json` and
//! `to_json` takes the [`WireFormat`] of the JSON. Nothing here does IO.

mod card;
mod card_json;
mod error;
mod event;
mod ids;
mod json_fields;
mod list_tasks;
mod message;
mod method;
mod push;
mod request;
pub mod rest;
pub mod rpc;
mod security;
mod send_message;
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
pub use list_tasks::{ListTasks, TaskPage};
pub use message::{Message, Part, PartContent, Role};
pub use method::A2aMethod;
pub use push::{Authentication, PushConfig, push_configs_to_json};
pub use request::{A2aCall, A2aRequest};
pub use security::{ApiKeyLocation, SecurityRequirement, SecurityScheme};
pub use send_message::{ReturnMode, SendMessage};
pub use task::{Artifact, Task, TaskState, TaskStatus};
pub use version::{ProtocolVersion, WireFormat};
