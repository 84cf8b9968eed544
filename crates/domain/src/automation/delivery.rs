//! The outbox of deliveries, and the inbox.

use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{DeliveryId, InboxId, RunId};
use crate::event::{Principal, SessionId};
use crate::flow::Label;

/// The target of deliveries to the inbox, which is the default.
pub const INBOX_TARGET: &str = "inbox";

/// A message on its way to a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub id: DeliveryId,
    pub run: Option<RunId>,
    pub principal: Principal,
    pub occasion: DeliveryOccasion,
    /// The target's text, such as `inbox` or `file:PATH`.
    pub target: String,
    pub message: DeliveryMessage,
    pub state: DeliveryState,
    /// The number of times that it was tried.
    pub attempts: u32,
    pub created: Timestamp,
    pub next_try: Timestamp,
    pub last_error: Option<String>,
}

/// A delivery to enqueue.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDelivery {
    pub run: Option<RunId>,
    pub principal: Principal,
    pub occasion: DeliveryOccasion,
    pub target: String,
    pub message: DeliveryMessage,
    pub created: Timestamp,
}

/// Why a message is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryOccasion {
    Result,
    Failure,
    /// Something the user should know, such as a question that waits.
    Notice,
}

impl DeliveryOccasion {
    pub const ALL: [Self; 3] = [Self::Result, Self::Failure, Self::Notice];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Failure => "failure",
            Self::Notice => "notice",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryMessage {
    /// The name of what sends it, such as that of a job.
    pub from: String,
    pub title: String,
    pub text: String,
    /// The session with the whole work.
    pub session: Option<SessionId>,
    /// The label of the text.
    #[serde(default, skip_serializing_if = "Label::is_plain")]
    pub label: Label,
    /// The folder of the work, in which files and commands of targets are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    Pending,
    Delivered,
    /// Given up after the last attempt.
    Failed,
}

impl DeliveryState {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for DeliveryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Takes deliveries to try. Each counts as tried, and is tried again at `retry_at` if the process ends
/// before it reports an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimDeliveries {
    pub at: Timestamp,
    pub retry_at: Timestamp,
    pub limit: usize,
}

/// The end of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryEnd {
    /// Stored atomically with the inbox entry, if there is one, so that it is there exactly once.
    Delivered {
        inbox: Option<NewInboxEntry>,
    },
    Retry {
        at: Timestamp,
        error: String,
    },
    /// Given up. Stored atomically with an inbox entry about it, so that it is never silent.
    Failed {
        error: String,
        inbox: Option<NewInboxEntry>,
    },
}

/// A filter for a principal's deliveries, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryQuery {
    pub principal: Principal,
    pub run: Option<RunId>,
    pub state: Option<DeliveryState>,
    pub limit: usize,
}

/// A message in the inbox of a principal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InboxEntry {
    pub id: InboxId,
    pub at: Timestamp,
    pub principal: Principal,
    pub from: String,
    pub title: String,
    pub text: String,
    pub session: Option<SessionId>,
    #[serde(rename = "read")]
    pub is_read: bool,
    #[serde(default, skip_serializing_if = "Label::is_plain")]
    pub label: Label,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewInboxEntry {
    pub at: Timestamp,
    pub principal: Principal,
    pub message: DeliveryMessage,
}

/// Which entries of an inbox are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboxSelection {
    All,
    /// Those that were read.
    Read,
    Unread,
    Entries(Vec<InboxId>),
}
