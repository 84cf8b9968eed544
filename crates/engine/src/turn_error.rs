//! Failures of a turn: a code for programs, a message and a hint for the user, details for the log.

use std::any::Any;

use lango_domain::StoreError;
use lango_domain::failure::{FailureCode, FailureFamily};
use lango_domain::model::ModelError;
use lango_text::sanitize::one_line;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnError {
    pub code: FailureCode,
    pub message: String,
    pub hint: String,
    /// For the log only; may contain text that a user cannot act on.
    pub detail: String,
    /// Set if the store failed, so that no more events can be stored.
    pub store_error: Option<Box<StoreError>>,
}

impl TurnError {
    fn new(code: FailureCode, message: &str, hint: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
            hint: hint.to_owned(),
            detail: String::new(),
            store_error: None,
        }
    }

    /// Returns the error for a reached limit.
    pub fn limit(code: FailureCode) -> Self {
        let (message, hint) = match code {
            FailureCode::LimitRounds => (
                "The request was delegated too often.",
                "agent.maxDelegationRounds sets the limit.",
            ),
            FailureCode::LimitCalls => (
                "The request took too many model calls.",
                "agent.limits.modelCalls sets the limit.",
            ),
            FailureCode::LimitRepeats => (
                "The same call was made again and again.",
                "Rephrasing may help; agent.limits.repeats sets the limit.",
            ),
            FailureCode::LimitTokens => (
                "The request took too many tokens.",
                "agent.limits.tokens sets the limit.",
            ),
            FailureCode::LimitMoney => (
                "The request cost too much.",
                "agent.limits.usd sets the limit.",
            ),
            _ => (
                "The request took too long.",
                "agent.limits.seconds sets the limit.",
            ),
        };
        Self::new(code, message, hint)
    }

    pub fn empty(agent: &str) -> Self {
        let message = format!("{agent} gave no answer, though it was asked twice.");
        Self::new(
            FailureCode::Empty,
            &message,
            "Try again, or try another model.",
        )
    }

    pub fn cancelled() -> Self {
        Self::new(
            FailureCode::Cancelled,
            "Cancelled.",
            "The session can be used as before.",
        )
    }

    /// Returns the error for a failed remote agent. Its text comes from outside, so it is reduced to
    /// one line of limited length (B92).
    pub fn remote(reason: &str) -> Self {
        let reason: String = one_line(reason).chars().take(300).collect();
        Self::new(
            FailureCode::ModelConnection,
            &reason,
            "Check the remote agent's address.",
        )
    }

    pub fn internal(detail: &str) -> Self {
        let hint = "This is a bug in Lango; see the log for details.";
        Self {
            detail: detail.to_owned(),
            ..Self::new(FailureCode::Internal, "An internal error occurred.", hint)
        }
    }

    pub fn from_panic(payload: &(dyn Any + Send)) -> Self {
        Self::internal(panic_message(payload))
    }

    /// Returns the error for a task that ended without a result.
    pub fn from_join_error(error: tokio::task::JoinError) -> Self {
        match error.try_into_panic() {
            Ok(payload) => Self::from_panic(&*payload),
            Err(_aborted) => Self::cancelled(),
        }
    }

    /// Returns true if this error ends the whole turn, whichever agent it occurred in. A delegation
    /// reports any other error back.
    pub fn is_fatal(&self) -> bool {
        self.code.family() == FailureFamily::Limit
            || matches!(self.code, FailureCode::Cancelled | FailureCode::Internal)
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    owned
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
}

impl From<ModelError> for TurnError {
    fn from(error: ModelError) -> Self {
        let (code, hint) = match &error {
            ModelError::Auth => (FailureCode::ModelAuth, "Check the provider's key."),
            ModelError::Quota => (
                FailureCode::ModelQuota,
                "Check the account's balance, or use another provider.",
            ),
            ModelError::Busy { .. } => (
                FailureCode::ModelBusy,
                "Try again later, or set agent.fallback.",
            ),
            ModelError::NotFound(_) => (
                FailureCode::ModelNotFound,
                "Check agent.model and the provider's address.",
            ),
            ModelError::TooLong => (
                FailureCode::ModelTooLong,
                "Start a new session, or use a model with a larger window.",
            ),
            ModelError::Rejected(_) => (
                FailureCode::ModelRejected,
                "Check agent.model and the features that it supports.",
            ),
            ModelError::NotRecorded(_) => (
                FailureCode::ModelNotRecorded,
                "Replay with the same --tools, --set and configuration as the recording.",
            ),
            ModelError::Refused(_) => (FailureCode::ModelRefused, "Rephrase the request."),
            ModelError::Malformed(_) => (
                FailureCode::ModelMalformed,
                "Try again; if the error persists, try another model.",
            ),
            ModelError::TooLarge(_) => (
                FailureCode::ModelTooLarge,
                "Ask for less in one request, or try another model.",
            ),
            ModelError::Connection(_) => (
                FailureCode::ModelConnection,
                "Check the network and the provider's address.",
            ),
            ModelError::BrokeOff => (FailureCode::ModelBrokeOff, "Try again."),
        };
        let message = match &error {
            ModelError::Malformed(_) => "The model's reply could not be understood.".to_owned(),
            ModelError::Connection(reason) => {
                to_sentence(&format!("the connection to the model failed: {reason}"))
            }
            other => to_sentence(&other.to_string()),
        };
        Self {
            detail: error.to_string(),
            ..Self::new(code, &message, hint)
        }
    }
}

impl From<StoreError> for TurnError {
    fn from(error: StoreError) -> Self {
        let message = format!("The session could not be stored: {error}.");
        Self {
            store_error: Some(Box::new(error)),
            ..Self::new(
                FailureCode::Internal,
                &message,
                "Check the disk and the data folder, or run `lango doctor`.",
            )
        }
    }
}

fn to_sentence(text: &str) -> String {
    let text = one_line(text);
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}
