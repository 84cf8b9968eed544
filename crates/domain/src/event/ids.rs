//! The ids in events.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent::AgentName;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// A session: one conversation.
    SessionId
);
text_id!(
    /// A turn: one request of the user and everything done for it.
    TurnId
);
text_id!(
    /// The owner of a session and of everything in it (B74).
    Principal
);
text_id!(
    /// A call of a reply. Assigned by the model, or by the engine if the model's id is not unique.
    CallId
);
text_id!(
    /// A remote agent's thread for a session. Opaque to everything but the remote client.
    RemoteThread
);
text_id!(
    /// The branch of work that an event belongs to: the root's, or that of a delegation below it.
    Branch
);

impl Principal {
    /// Returns the user of this machine.
    pub fn local() -> Self {
        Self::new("local")
    }
}

impl Branch {
    pub fn root(root: &AgentName) -> Self {
        Self::new(root.as_str())
    }

    /// Returns the branch of the `number`th delegation of a turn.
    pub fn delegation(&self, to: &AgentName, number: usize) -> Self {
        Self(format!("{}/{to}.{number}", self.0))
    }
}
