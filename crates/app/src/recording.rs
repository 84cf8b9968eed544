//! Records a turn with all its inputs to a file, and replays it without network access.
//!
//! `docs/recordings.md` describes the file format.

mod recorder;
mod replayer;
mod secrets;

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::approval::{ApprovalDecision, Approver};
use lango_domain::event::{SessionId, TurnId};
use lango_domain::model::{Fragment, Message, ModelError, ModelRequest, ToolDeclaration};
use lango_domain::{AgentName, Attachment, Intent, Label, SecretSource, Tool};
use lango_engine::ClockAndIds;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::request::UserRequest;

pub use recorder::Recorder;
pub use replayer::{Replayer, Strictness};
use secrets::ReplayedSecrets;

/// The version of the file format.
const VERSION: u32 = 1;

/// The recording mode of an assistant.
pub enum Recording {
    Off,
    Record(Arc<Recorder>),
    Replay(Arc<Replayer>),
}

#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("cannot use the recording {}: {reason}", file.display())]
    Unusable { file: PathBuf, reason: String },
    #[error("{}:{line}: {reason}", file.display())]
    Malformed {
        file: PathBuf,
        line: usize,
        reason: String,
    },
}

/// One line of a recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RecordingLine {
    /// The first line.
    Recording { v: u32 },
    /// The user's request.
    Request {
        session: SessionId,
        #[serde(flatten)]
        request: UserRequest,
    },
    /// A generated turn id.
    Turn { id: TurnId },
    /// A reading of the clock.
    Clock { at: Timestamp },
    /// One exchange with a model.
    Model {
        agent: AgentName,
        request: RecordedRequest,
        fragments: Vec<Fragment>,
        error: Option<ModelError>,
    },
    /// One tool call.
    Tool {
        agent: AgentName,
        tool: String,
        args: Value,
        output: Result<String, String>,
        /// The images and files of the output.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<RecordedAttachment>,
        /// The label of the output, if it differs from the tool's declaration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<Label>,
    },
    /// The intent of a tool call.
    Intent {
        agent: AgentName,
        tool: String,
        args: Value,
        intent: Result<Intent, String>,
    },
    /// The decision about a tool call.
    Decision {
        tool: String,
        args: Value,
        decision: ApprovalDecision,
    },
}

/// An image or a file with its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedAttachment {
    name: String,
    media_type: String,
    /// The bytes as base64.
    data: String,
}

impl RecordedAttachment {
    pub(crate) fn from_attachment(attachment: &Attachment) -> Self {
        Self {
            name: attachment.name.clone(),
            media_type: attachment.media_type.clone(),
            data: attachment.base64().unwrap_or_default(),
        }
    }

    /// Returns the attachment, or `None` if its bytes are damaged.
    pub(crate) fn to_attachment(&self) -> Option<Attachment> {
        Attachment::from_base64(&self.data, &self.name, Some(&self.media_type)).ok()
    }
}

/// A request to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RecordedRequest {
    system: String,
    tools: Vec<ToolDeclaration>,
    messages: Vec<Message>,
}

impl RecordedRequest {
    fn from_request(request: &ModelRequest) -> Self {
        Self {
            system: request.system.to_string(),
            tools: request.tools.to_vec(),
            messages: request.messages.clone(),
        }
    }
}

impl Recording {
    /// Wraps a tool so that its results are recorded or replayed.
    pub fn wrap_tool(&self, tool: Tool) -> Tool {
        match self {
            Self::Off => tool,
            Self::Record(recorder) => recorder.wrap_tool(tool),
            Self::Replay(replayer) => replayer.wrap_tool(tool),
        }
    }

    /// Wraps the approver so that its decisions are recorded or replayed.
    pub fn wrap_approver(&self, real: Option<Arc<dyn Approver>>) -> Option<Arc<dyn Approver>> {
        match self {
            Self::Off => real,
            Self::Record(recorder) => real.map(|approver| recorder.wrap_approver(approver)),
            Self::Replay(replayer) => Some(replayer.approver()),
        }
    }

    /// Wraps the source of secrets: a recording contains none of their values, and a replay needs none.
    pub fn wrap_secrets(
        &self,
        real: Option<Arc<dyn SecretSource>>,
    ) -> Option<Arc<dyn SecretSource>> {
        match self {
            Self::Off => real,
            Self::Record(recorder) => real.map(|source| recorder.wrap_secrets(source)),
            Self::Replay(_) => Some(Arc::new(ReplayedSecrets)),
        }
    }

    pub fn wrap_clock_and_ids(&self, real: ClockAndIds) -> ClockAndIds {
        match self {
            Self::Off => real,
            Self::Record(recorder) => recorder.wrap_clock_and_ids(real),
            Self::Replay(replayer) => replayer.wrap_clock_and_ids(real),
        }
    }

    /// Returns problems with the recording itself.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Off => Vec::new(),
            Self::Record(recorder) => recorder.problems(),
            Self::Replay(replayer) => replayer.problems(),
        }
    }
}
