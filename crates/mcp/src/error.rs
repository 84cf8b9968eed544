//! Failures of tool servers, by who can act.

/// A failure of a tool server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The server could not be started or reached; nothing was called.
    #[error("the tool server `{key}` is not available: {reason}")]
    Unavailable { key: String, reason: String },
    /// The server ended during a call. The call is not repeated.
    #[error(
        "the tool server `{key}` ended during the call, which may have taken effect or not; check before you repeat it ({reason})"
    )]
    Died { key: String, reason: String },
    /// The call took too long and was cancelled.
    #[error(
        "the tool server `{key}` did not answer within {seconds} s; the call was cancelled, but may have taken effect"
    )]
    TimedOut { key: String, seconds: u64 },
    /// The definition of the tool is not the one that the user has confirmed.
    #[error(
        "`{tool}` of the tool server `{key}` changed since the user confirmed it; the user can review it with `lango mcp trust {key}`"
    )]
    Changed { key: String, tool: String },
    /// The server reported an error.
    #[error("{message}")]
    Tool { message: String },
    /// The server sent something that the protocol does not allow.
    #[error("the tool server `{key}` does not follow the protocol: {reason}")]
    Protocol { key: String, reason: String },
}

impl McpError {
    /// Returns true if the server itself failed, rather than one of its tools.
    pub fn is_server_failure(&self) -> bool {
        match self {
            Self::Unavailable { .. }
            | Self::Died { .. }
            | Self::TimedOut { .. }
            | Self::Protocol { .. } => true,
            Self::Changed { .. } | Self::Tool { .. } => false,
        }
    }
}
