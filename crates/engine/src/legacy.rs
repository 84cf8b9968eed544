//! Messages of older logs, in which not every message has an author (S70).

use lango_domain::AgentName;
use lango_domain::event::{Author, EventBody};
use serde::{Deserialize, Serialize};

/// A message of an older log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegacyMessage {
    pub role: LegacyRole,
    pub content: String,
    #[serde(default)]
    pub author: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LegacyRole {
    User,
    Assistant,
}

/// Returns the author of a message: the stored one, else the root agent for an assistant message.
pub fn replay_author(message: &LegacyMessage, root: &AgentName) -> Author {
    let stored = message
        .author
        .as_deref()
        .map(str::trim)
        .filter(|author| !author.is_empty());
    match (stored, message.role) {
        (Some(author), _) => Author::from(author.to_owned()),
        (None, LegacyRole::User) => Author::User,
        (None, LegacyRole::Assistant) => Author::Agent(root.clone()),
    }
}

impl LegacyMessage {
    /// Returns the event body for the message.
    pub fn body(&self) -> EventBody {
        match self.role {
            LegacyRole::User => EventBody::User(self.content.clone().into()),
            LegacyRole::Assistant => EventBody::Answer(self.content.clone().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_domain::TeamMode;

    fn author(role: LegacyRole, author: Option<&str>, mode: TeamMode) -> String {
        let message = LegacyMessage {
            role,
            content: "x".into(),
            author: author.map(str::to_owned),
        };
        replay_author(&message, &mode.root_name()).to_string()
    }

    /// S70
    #[test]
    fn keeps_the_stored_author_and_defaults_to_the_root() {
        use LegacyRole::{Assistant, User};
        assert_eq!(
            author(Assistant, Some("lango-orchestrator"), TeamMode::Multi),
            "lango-orchestrator"
        );
        assert_eq!(
            author(Assistant, Some("operator"), TeamMode::Single),
            "operator"
        );
        assert_eq!(
            author(Assistant, None, TeamMode::Multi),
            "lango-orchestrator"
        );
        assert_eq!(
            author(Assistant, Some(" "), TeamMode::Multi),
            "lango-orchestrator"
        );
        assert_eq!(author(Assistant, None, TeamMode::Single), "lango-agent");
        assert_eq!(author(User, None, TeamMode::Multi), "user");
    }
}
