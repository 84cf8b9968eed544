//! Deliveries to a file of the workspace.

use futures::future::{BoxFuture, FutureExt};
use lango_tools::files::{AppendError, Workspace};

use super::channels::{DeliverySender, SendError, SentMessage};
use super::message::{MAX_TITLE_CHARS, OutgoingMessage};

const MAX_ENTRY_BYTES: usize = 256 * 1024;
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

pub(super) struct FileSender<'a> {
    pub workspace: &'a Workspace,
    pub path: &'a str,
}

impl DeliverySender for FileSender<'_> {
    fn send<'a>(
        &'a self,
        message: OutgoingMessage<'a>,
    ) -> BoxFuture<'a, Result<SentMessage, SendError>> {
        let entry = file_entry(message);
        let (workspace, path) = (self.workspace.clone(), self.path.to_owned());
        async move {
            let append = move || workspace.append_once(&path, &entry, MAX_FILE_BYTES);
            match tokio::task::spawn_blocking(append).await {
                Ok(Ok(())) => Ok(SentMessage::default()),
                Ok(Err(AppendError::Refused(reason))) => Err(SendError::Permanent(reason)),
                Ok(Err(AppendError::Failed(reason))) => Err(SendError::Temporary(reason)),
                Err(stopped) => Err(SendError::Temporary(stopped.to_string())),
            }
        }
        .boxed()
    }
}

/// Returns the entry. Its first line is unique because of the key.
fn file_entry(message: OutgoingMessage<'_>) -> String {
    let at = message.delivery.created;
    let title = message.title(MAX_TITLE_CHARS);
    let text = message.text(MAX_ENTRY_BYTES);
    let key = message.key();
    format!("--- {at} {title} [{key}]\n{}\n\n", text.trim_end())
}
