//! The codes of failed turns, the same in events, exit codes and documentation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why a turn failed. Typed, so that no code has to search a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureCode {
    #[serde(rename = "model.auth")]
    ModelAuth,
    #[serde(rename = "model.quota")]
    ModelQuota,
    #[serde(rename = "model.busy")]
    ModelBusy,
    #[serde(rename = "model.not_found")]
    ModelNotFound,
    #[serde(rename = "model.too_long")]
    ModelTooLong,
    #[serde(rename = "model.rejected")]
    ModelRejected,
    #[serde(rename = "model.not_recorded")]
    ModelNotRecorded,
    #[serde(rename = "model.refused")]
    ModelRefused,
    #[serde(rename = "model.malformed")]
    ModelMalformed,
    /// The reply is too large; `model.too_long` is about the request.
    #[serde(rename = "model.too_large")]
    ModelTooLarge,
    #[serde(rename = "model.connection")]
    ModelConnection,
    #[serde(rename = "model.broke_off")]
    ModelBrokeOff,
    #[serde(rename = "limit.rounds")]
    LimitRounds,
    #[serde(rename = "limit.calls")]
    LimitCalls,
    #[serde(rename = "limit.repeats")]
    LimitRepeats,
    #[serde(rename = "limit.tokens")]
    LimitTokens,
    #[serde(rename = "limit.time")]
    LimitTime,
    #[serde(rename = "limit.money")]
    LimitMoney,
    /// The model replied twice without an answer.
    #[serde(rename = "empty")]
    Empty,
    #[serde(rename = "cancelled")]
    Cancelled,
    #[serde(rename = "internal")]
    Internal,
    /// The process ended before the turn did.
    #[serde(rename = "interrupted")]
    Interrupted,
}

/// The reason why a turn that has an answer did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotDoneReason {
    /// The last calls were not approved, and the agent found no other way.
    Denied,
    /// The model says that it cannot do it, or that a step failed.
    Unable,
}

impl NotDoneReason {
    /// Describes the reason for people.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Denied => "a call that it needs was not approved",
            Self::Unable => "the agent could not do it",
        }
    }
}

/// The kind of a failure, by who can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureFamily {
    Model,
    Limit,
    Turn,
    Cancelled,
    /// Detected by a later turn, which did not fail itself.
    Interrupted,
}

impl FailureCode {
    pub fn family(self) -> FailureFamily {
        match self {
            Self::ModelAuth
            | Self::ModelQuota
            | Self::ModelBusy
            | Self::ModelNotFound
            | Self::ModelTooLong
            | Self::ModelRejected
            | Self::ModelNotRecorded
            | Self::ModelRefused
            | Self::ModelMalformed
            | Self::ModelTooLarge
            | Self::ModelConnection
            | Self::ModelBrokeOff => FailureFamily::Model,
            Self::LimitRounds
            | Self::LimitCalls
            | Self::LimitRepeats
            | Self::LimitTokens
            | Self::LimitTime
            | Self::LimitMoney => FailureFamily::Limit,
            Self::Empty | Self::Internal => FailureFamily::Turn,
            Self::Cancelled => FailureFamily::Cancelled,
            Self::Interrupted => FailureFamily::Interrupted,
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_display_as_serialized() {
        assert_eq!(FailureCode::ModelTooLong.to_string(), "model.too_long");
        assert_eq!(
            serde_json::to_string(&FailureCode::LimitRounds).unwrap(),
            "\"limit.rounds\""
        );
        assert_eq!(
            serde_json::from_str::<FailureCode>("\"empty\"").unwrap(),
            FailureCode::Empty
        );
    }
}
