//! Why a turn failed: a code for programs, a message and a hint for the user, detail for the log.

use std::fmt;

use lango_domain::model::ModelError;
use lango_domain::session::StoreError;

/// What kind of failure; typed, never found by searching a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Model(ModelCode),
    Limit(LimitCode),
    /// The model gave no answer, though it was asked twice.
    Empty,
    Cancelled,
    Internal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelCode {
    Auth,
    Quota,
    Busy,
    NotFound,
    TooLong,
    Refused,
    Malformed,
    Connection,
    BrokeOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitCode {
    Rounds,
    Calls,
    Repeats,
    Tokens,
    Time,
    Money,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model(ModelCode::Auth) => "model.auth",
            Self::Model(ModelCode::Quota) => "model.quota",
            Self::Model(ModelCode::Busy) => "model.busy",
            Self::Model(ModelCode::NotFound) => "model.not_found",
            Self::Model(ModelCode::TooLong) => "model.too_long",
            Self::Model(ModelCode::Refused) => "model.refused",
            Self::Model(ModelCode::Malformed) => "model.malformed",
            Self::Model(ModelCode::Connection) => "model.connection",
            Self::Model(ModelCode::BrokeOff) => "model.broke_off",
            Self::Limit(LimitCode::Rounds) => "limit.rounds",
            Self::Limit(LimitCode::Calls) => "limit.calls",
            Self::Limit(LimitCode::Repeats) => "limit.repeats",
            Self::Limit(LimitCode::Tokens) => "limit.tokens",
            Self::Limit(LimitCode::Time) => "limit.time",
            Self::Limit(LimitCode::Money) => "limit.money",
            Self::Empty => "empty",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub message: String,
    pub hint: String,
    /// For the log only: may hold what a user cannot act on.
    pub detail: String,
    /// Set when nothing can be stored any more.
    pub(crate) store: Option<StoreError>,
}

impl Failure {
    fn new(code: Code, message: &str, hint: &str) -> Self {
        Self { code, message: message.to_owned(), hint: hint.to_owned(), detail: String::new(), store: None }
    }

    pub(crate) fn limit(code: LimitCode) -> Self {
        let (message, hint) = match code {
            LimitCode::Rounds => {
                ("The request was delegated too often.", "agent.maxDelegationRounds sets the limit.")
            }
            LimitCode::Calls => {
                ("The request took too many model calls.", "agent.limits.modelCalls sets the limit.")
            }
            LimitCode::Repeats => (
                "The same call was made again and again.",
                "agent.limits.repeats sets the limit; rephrasing may help.",
            ),
            LimitCode::Tokens => ("The request took too many tokens.", "agent.limits.tokens sets the limit."),
            LimitCode::Time => ("The request took too long.", "agent.limits.seconds sets the limit."),
            LimitCode::Money => ("The request cost too much.", "agent.limits.usd sets the limit."),
        };
        Self::new(Code::Limit(code), message, hint)
    }

    pub(crate) fn empty(agent: &str) -> Self {
        let message = format!("{agent} gave no answer, though it was asked twice.");
        Self::new(Code::Empty, &message, "Try again, or try another model.")
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(Code::Cancelled, "Cancelled.", "The session can be used as before.")
    }

    /// What a colleague elsewhere says about its failure is data from outside: one bounded line.
    pub(crate) fn remote(why: &str) -> Self {
        let why: String = why.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect();
        let message = format!("It could not do it: {why}");
        Self::new(Code::Model(ModelCode::Connection), &message, "Check the remote agent's address.")
    }

    pub(crate) fn internal(message: &str) -> Self {
        Self::new(Code::Internal, message, "This is a mistake in Lango; the log has the detail.")
    }

    /// Whether this ends the whole turn, whoever it happened to. Anything else a delegation can report back.
    pub(crate) fn ends_the_turn(&self) -> bool {
        matches!(self.code, Code::Limit(_) | Code::Cancelled | Code::Internal)
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let (code, hint) = match &error {
            ModelError::Auth => (ModelCode::Auth, "Check the provider's key."),
            ModelError::Quota => (ModelCode::Quota, "Check the account's credit, or use another provider."),
            ModelError::Busy { .. } => (ModelCode::Busy, "Try again in a while, or set agent.fallback."),
            ModelError::TooLong => {
                (ModelCode::TooLong, "Start a new session, or use a model with a larger window.")
            }
            ModelError::NotFound(_) => (ModelCode::NotFound, "Check agent.model and the provider's address."),
            ModelError::Refused(_) => (ModelCode::Refused, "Put the request in other words."),
            ModelError::Malformed(_) => (ModelCode::Malformed, "Try again; if it stays, try another model."),
            ModelError::Connection(_) => {
                (ModelCode::Connection, "Check the network and the provider's address.")
            }
            ModelError::BrokeOff => (ModelCode::BrokeOff, "Try again."),
        };
        let message = match &error {
            ModelError::Malformed(_) => "The model's reply could not be understood.".to_owned(),
            ModelError::Connection(_) => "The connection to the model failed.".to_owned(),
            other => capitalised(&other.to_string()),
        };
        Self { detail: error.to_string(), ..Self::new(Code::Model(code), &message, hint) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = format!("The session could not be kept: {error}.");
        Self {
            store: Some(error),
            ..Self::new(Code::Internal, &message, "Check the disk and the data folder.")
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
