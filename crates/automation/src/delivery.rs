//! Delivers the results and failures of unattended work.
//!
//! The outbox is a table: each row is one message for one target, with a state of its own. A process
//! that is killed between sending a message and recording it sends the message again, with the same
//! key, so a webhook, a command, a notification and an e-mail arrive at least once. The inbox, a
//! session and a file have each message exactly once: the inbox entry is stored in the transaction that
//! ends the delivery, a session and a file are searched for the key first.

mod channels;
mod command;
mod desktop;
mod email;
mod file;
mod inbox;
mod message;
mod outbox;
mod session;
mod settings;
mod target;
mod target_check;
mod webhook;

pub use channels::{
    DeliveryChannels, DeliveryFolders, DeliverySender, FolderChannels, SendError, SentMessage,
};
pub use command::CommandChannel;
pub use desktop::DesktopChannel;
pub use email::{EmailSender, MailChannel, MailSetupError};
pub use message::OutgoingMessage;
pub use outbox::{DeliveryOutbox, MAX_ATTEMPTS, OutboxPass, retry_delay};
pub use session::{DELIVERY_AUTHOR, SessionChannel};
pub use settings::{DeliverySettings, SmtpSettings, SmtpTls, WebhookSettings};
pub use target::{DeliveryTarget, InvalidTarget, MAX_TARGETS};
pub use target_check::TargetCheck;
pub use webhook::{
    IDEMPOTENCY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookChannel, sign_webhook,
};
