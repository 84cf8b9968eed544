//! Errors of the browser, by who can act on them.

use std::time::Duration;

use lango_net::FetchError;

/// An error of the browser. The texts are shown to models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrowserError {
    /// The user can install or configure a browser.
    #[error("{0}")]
    Unavailable(String),
    /// The browser ended; the next call starts it again.
    #[error("the browser ended unexpectedly; open the page again")]
    Closed,
    /// No page is open in this session.
    #[error("no page is open; open one with browser_navigate")]
    NoPage,
    /// The agent can choose another element, argument or action.
    #[error("{0}")]
    Action(String),
    /// A dialog blocks the page until it is answered.
    #[error("{0}")]
    DialogOpen(String),
    #[error(transparent)]
    Network(#[from] FetchError),
    #[error("the page did not respond within {} s; it may be busy: reload it or open another page", .0.as_secs())]
    Unresponsive(Duration),
    /// A command of the protocol failed.
    #[error("the browser reported: {0}")]
    Protocol(String),
}

impl BrowserError {
    pub fn action(message: impl Into<String>) -> Self {
        Self::Action(message.into())
    }

    /// Returns true if a command failed because its document or frame is gone.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Protocol(_))
    }
}

pub type Result<T> = std::result::Result<T, BrowserError>;
