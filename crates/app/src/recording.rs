//! Record and replay: a turn with everything it took from outside, in a file; and the same turn again, without network.
//!
//! The form of the file is told in `docs/recordings.md`.

mod player;
mod recorder;

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use lango_domain::approval::{ApprovalDecision, Approver};
use lango_domain::event::{SessionId, TurnId};
use lango_domain::model::{Fragment, Message, ModelError, ModelRequest, ToolDeclaration};
use lango_domain::{AgentName, Intent, Label, Tool};
use lango_engine::ClockAndIds;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::request::UserRequest;

pub use player::{Replayer, Strictness};
pub use recorder::Recorder;

/// The version of the file's form.
const VERSION: u32 = 1;

/// What happens to the exchanges of a conversation.
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
    /// What the user asked.
    Request {
        session: SessionId,
        #[serde(flatten)]
        request: UserRequest,
    },
    /// An id that was made up.
    Turn { id: TurnId },
    /// The clock was read.
    Clock { at: Timestamp },
    /// One exchange with a model.
    Model {
        agent: AgentName,
        request: RecordedRequest,
        fragments: Vec<Fragment>,
        error: Option<ModelError>,
    },
    /// One call of a tool.
    Tool {
        agent: AgentName,
        tool: String,
        args: Value,
        output: Result<String, String>,
        /// What the tool said of it beyond its declaration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<Label>,
    },
    /// What a call would have done.
    Intent {
        agent: AgentName,
        tool: String,
        args: Value,
        intent: Result<Intent, String>,
    },
    /// The answer to a question about a call.
    Decision {
        tool: String,
        args: Value,
        decision: ApprovalDecision,
    },
}

/// What a model was asked.
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
    /// A tool whose results are kept, or come from the recording.
    pub fn wrap_tool(&self, tool: Tool) -> Tool {
        match self {
            Self::Off => tool,
            Self::Record(recorder) => recorder.wrap_tool(tool),
            Self::Replay(player) => player.wrap_tool(tool),
        }
    }

    /// Whoever is asked, with answers kept, or the answers of the recording.
    pub fn wrap_approver(&self, real: Option<Arc<dyn Approver>>) -> Option<Arc<dyn Approver>> {
        match self {
            Self::Off => real,
            Self::Record(recorder) => real.map(|approver| recorder.wrap_approver(approver)),
            Self::Replay(player) => Some(player.approver()),
        }
    }

    pub fn wrap_clock_and_ids(&self, real: ClockAndIds) -> ClockAndIds {
        match self {
            Self::Off => real,
            Self::Record(recorder) => recorder.wrap_clock_and_ids(real),
            Self::Replay(player) => player.wrap_clock_and_ids(real),
        }
    }

    /// What went wrong with the tape itself.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Off => Vec::new(),
            Self::Record(recorder) => recorder.problems(),
            Self::Replay(player) => player.problems(),
        }
    }
}
