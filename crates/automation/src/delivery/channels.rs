//! The ways out: one sender for each kind of target.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use lango_domain::automation::NewInboxEntry;
use lango_tools::files::Workspace;

use super::command::{CommandChannel, CommandSender};
use super::desktop::{DesktopChannel, DesktopSender};
use super::email::{EmailSender, MailChannel, MailSetupError};
use super::file::FileSender;
use super::inbox::InboxSender;
use super::message::OutgoingMessage;
use super::session::{SessionChannel, SessionSender};
use super::target::DeliveryTarget;
use super::webhook::{WebhookChannel, WebhookSender};

/// Sends messages to one target.
pub trait DeliverySender: Send + Sync {
    fn send<'a>(
        &'a self,
        message: OutgoingMessage<'a>,
    ) -> BoxFuture<'a, Result<SentMessage, SendError>>;
}

/// A message that was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentMessage {
    /// The entry to store in the transaction that ends the delivery.
    pub inbox: Option<NewInboxEntry>,
}

/// A message that was not sent, by who can act. The texts are stored and shown: they never contain a
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It may work later, without anyone doing something.
    #[error("{0}")]
    Temporary(String),
    /// It cannot work until the user changes the target, a setting or the machine.
    #[error("{0}")]
    Permanent(String),
}

/// Everything that deliveries go through.
pub struct DeliveryChannels {
    pub sessions: SessionChannel,
    pub workspace: Workspace,
    pub webhooks: WebhookChannel,
    pub commands: CommandChannel,
    pub desktop: DesktopChannel,
    pub mail: Result<MailChannel, MailSetupError>,
    /// The folders of other runs; `None` if there is only the own one.
    pub folders: Option<Arc<dyn DeliveryFolders>>,
}

/// Finds the ways out in the folder that a run works in.
pub trait DeliveryFolders: Send + Sync {
    /// Returns the channels of a folder; `None` if it is that of this process. Fails with the reason why the
    /// folder cannot be used.
    fn open(&self, folder: &Path) -> Result<Option<FolderChannels>, String>;
}

/// The channels whose targets are in a folder.
pub struct FolderChannels {
    pub workspace: Workspace,
    pub commands: CommandChannel,
}

impl DeliveryChannels {
    /// Returns the channels of another folder, if the target needs them.
    pub fn folder(
        &self,
        target: &DeliveryTarget,
        folder: Option<&Path>,
    ) -> Result<Option<FolderChannels>, SendError> {
        let is_inside = matches!(target, DeliveryTarget::File(_) | DeliveryTarget::Command(_));
        match (&self.folders, folder) {
            (Some(folders), Some(folder)) if is_inside => {
                folders.open(folder).map_err(SendError::Permanent)
            }
            _ => Ok(None),
        }
    }

    /// Returns the sender for a target, or the reason why this machine has none.
    pub fn sender<'a>(
        &'a self,
        target: &'a DeliveryTarget,
    ) -> Result<Box<dyn DeliverySender + 'a>, SendError> {
        self.sender_in(target, None)
    }

    /// Returns the sender for a target in another folder than that of this process.
    pub fn sender_in<'a>(
        &'a self,
        target: &'a DeliveryTarget,
        folder: Option<&'a FolderChannels>,
    ) -> Result<Box<dyn DeliverySender + 'a>, SendError> {
        let workspace = folder.map_or(&self.workspace, |folder| &folder.workspace);
        let commands = folder.map_or(&self.commands, |folder| &folder.commands);
        Ok(match target {
            DeliveryTarget::Inbox => Box::new(InboxSender),
            DeliveryTarget::Session(session) => Box::new(SessionSender {
                channel: &self.sessions,
                session,
            }),
            DeliveryTarget::File(path) => Box::new(FileSender { workspace, path }),
            DeliveryTarget::Webhook(url) => Box::new(WebhookSender {
                channel: &self.webhooks,
                secret: self.webhooks.secret().map_err(SendError::Permanent)?,
                url,
            }),
            DeliveryTarget::Command(line) => Box::new(CommandSender {
                channel: commands,
                line,
            }),
            DeliveryTarget::Notify => Box::new(DesktopSender {
                channel: &self.desktop,
                program: self.desktop.program().map_err(SendError::Permanent)?,
            }),
            DeliveryTarget::Email(address) => Box::new(EmailSender {
                channel: self
                    .mail
                    .as_ref()
                    .map_err(|error| SendError::Permanent(error.to_string()))?,
                to: address,
            }),
        })
    }
}
