//! Deliveries to a command, which runs in the sandbox without network.
//!
//! The message is the command's input, as one line of JSON. It is in no argument and no variable, so
//! nothing of it is read by a shell.

use std::path::PathBuf;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::event::{CallId, SessionId, TurnId};
use lango_domain::{AgentName, ToolContext, ToolError, ToolOutputSink};
use lango_text::sanitize::truncated_line;
use lango_tools::files::UndoStorage;
use lango_tools::shell::{CommandRequest, Program, Shell, ShellParts};

use super::channels::{DeliverySender, SendError, SentMessage};
use super::message::OutgoingMessage;
use super::session::DELIVERY_AUTHOR;

const MAX_TEXT_BYTES: usize = 256 * 1024;
const MAX_ERROR_CHARS: usize = 400;
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// The shell that runs commands of deliveries.
pub struct CommandChannel {
    shell: Shell,
    folder: PathBuf,
    timeout: Duration,
}

impl CommandChannel {
    /// Creates a channel from the parts of the ordinary shell. The network is always off, whatever the
    /// settings; the sandbox is as `tools.exec.sandbox` says. Outputs are not stored: the delivery has
    /// the error.
    pub fn new(mut parts: ShellParts) -> Self {
        parts.settings.network = false;
        parts.journal = UndoStorage::in_folder(None).journal;
        parts.data = None;
        let configured = Duration::from_secs(parts.settings.seconds.get());
        Self {
            folder: parts.workspace.root().to_owned(),
            timeout: configured.min(COMMAND_TIMEOUT),
            shell: Shell::new(parts),
        }
    }

    async fn run(&self, line: &str, message: OutgoingMessage<'_>) -> Result<(), SendError> {
        let request = CommandRequest {
            program: Program::Line(line.to_owned()),
            folder: self.folder.clone(),
            stdin: format!("{}\n", message.to_json(MAX_TEXT_BYTES)),
            timeout: Some(self.timeout),
            extra_read_paths: Vec::new(),
            env: Vec::new(),
        };
        let context = tool_context(message).map_err(SendError::Permanent)?;
        match self.shell.run(&context, request).await {
            Ok(_output) => Ok(()),
            Err(ToolError(reason)) => Err(SendError::Temporary(truncated_line(
                &reason,
                MAX_ERROR_CHARS,
            ))),
        }
    }
}

pub(super) struct CommandSender<'a> {
    pub channel: &'a CommandChannel,
    pub line: &'a str,
}

impl DeliverySender for CommandSender<'_> {
    fn send<'a>(
        &'a self,
        message: OutgoingMessage<'a>,
    ) -> BoxFuture<'a, Result<SentMessage, SendError>> {
        async move {
            self.channel.run(self.line, message).await?;
            Ok(SentMessage::default())
        }
        .boxed()
    }
}

/// Returns the context of a call that no agent made.
fn tool_context(message: OutgoingMessage<'_>) -> Result<ToolContext, String> {
    let delivery = message.delivery;
    let session = delivery.message.session.clone();
    Ok(ToolContext {
        session: session.unwrap_or_else(|| SessionId::new(DELIVERY_AUTHOR)),
        principal: delivery.principal.clone(),
        turn: TurnId::new(message.key()),
        agent: AgentName::new(DELIVERY_AUTHOR).map_err(|error| error.to_string())?,
        call: CallId::new(message.key()),
        label: delivery.message.label.clone(),
        typed_addresses: Vec::new(),
        output_sink: ToolOutputSink::disconnected(),
        redactor: Default::default(),
    })
}
