//! Which version of the protocol, and in which shape it travels.

use std::fmt;

use super::error::{ErrorKind, ProtocolError};

/// A version that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProtocolVersion {
    V0_3,
    V1_0,
}

impl ProtocolVersion {
    /// The header, or parameter of a query, that says which version a request is in.
    pub const HEADER: &'static str = "A2A-Version";

    /// What a request says about its version; silence means 0.3.
    pub fn from_header(header: Option<&str>) -> Result<Self, ProtocolError> {
        let said = header.map(str::trim).filter(|said| !said.is_empty());
        let Some(said) = said else {
            return Ok(Self::V0_3);
        };
        Self::parse(said).ok_or_else(|| {
            let said = lango_net::sanitize::one_line(said, 20);
            let message = format!("A2A version '{said}' is not supported; 1.0 and 0.3 are");
            ProtocolError::new(ErrorKind::VersionNotSupported, message)
        })
    }

    /// `1.0`, `1.0.1`, `0.3`, `0.3.0`; a patch number changes nothing on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().split('.');
        let major_minor = (numbers.next()?, numbers.next().unwrap_or("0"));
        let patch = numbers.next();
        let is_number =
            |text: &str| text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        if patch.is_some_and(|patch| !is_number(patch)) || numbers.next().is_some() {
            return None;
        }
        match major_minor {
            ("1", "0") => Some(Self::V1_0),
            ("0", "3") => Some(Self::V0_3),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The shape of JSON between two agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireFormat {
    /// 1.0, the same for JSON-RPC and HTTP+JSON.
    V1,
    /// 0.3 as JSON-RPC carries it: `kind` says what something is, names are in lower case.
    V03Rpc,
    /// 0.3 as HTTP+JSON carries it: the JSON form of its protocol buffers.
    V03Rest,
}

impl WireFormat {
    pub fn version(self) -> ProtocolVersion {
        match self {
            Self::V1 => ProtocolVersion::V1_0,
            Self::V03Rpc | Self::V03Rest => ProtocolVersion::V0_3,
        }
    }

    pub fn rpc(version: ProtocolVersion) -> Self {
        match version {
            ProtocolVersion::V1_0 => Self::V1,
            ProtocolVersion::V0_3 => Self::V03Rpc,
        }
    }

    pub fn rest(version: ProtocolVersion) -> Self {
        match version {
            ProtocolVersion::V1_0 => Self::V1,
            ProtocolVersion::V0_3 => Self::V03Rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_means_the_older_version() {
        for (header, expected) in [
            (None, Some(ProtocolVersion::V0_3)),
            (Some(""), Some(ProtocolVersion::V0_3)),
            (Some(" "), Some(ProtocolVersion::V0_3)),
            (Some("0.3"), Some(ProtocolVersion::V0_3)),
            (Some("0.3.0"), Some(ProtocolVersion::V0_3)),
            (Some("1.0"), Some(ProtocolVersion::V1_0)),
            (Some(" 1.0.1 "), Some(ProtocolVersion::V1_0)),
            (Some("1"), Some(ProtocolVersion::V1_0)),
            (Some("9.9"), None),
            (Some("1.1"), None),
            (Some("0.2.5"), None),
            (Some("1.0.x"), None),
            (Some("1.0.1.2"), None),
            (Some("١.٠"), None),
        ] {
            let asked = ProtocolVersion::from_header(header);
            assert_eq!(asked.as_ref().ok(), expected.as_ref(), "{header:?}");
            if let Err(error) = asked {
                assert_eq!(error.kind, ErrorKind::VersionNotSupported);
            }
        }
    }
}
