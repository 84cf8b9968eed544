//! Protocol versions and wire formats.

use std::fmt;

use super::error::{ErrorKind, ProtocolError};

/// A supported protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProtocolVersion {
    V0_3,
    V1_0,
}

impl ProtocolVersion {
    /// The header or query parameter with the version of a request.
    pub const HEADER: &'static str = "A2A-Version";

    /// Parses the version of a request; a missing version means 0.3.
    pub fn from_header(header: Option<&str>) -> Result<Self, ProtocolError> {
        let version = header.map(str::trim).filter(|version| !version.is_empty());
        let Some(version) = version else {
            return Ok(Self::V0_3);
        };
        Self::parse(version).ok_or_else(|| {
            let version = lango_text::sanitize::truncated_line(version, 20);
            let message = format!("A2A version '{version}' is not supported; expected 1.0 or 0.3");
            ProtocolError::new(ErrorKind::VersionNotSupported, message)
        })
    }

    /// Parses `1.0`, `1.0.1`, `0.3` or `0.3.0`; the patch number does not affect the wire format.
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

/// The JSON format on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireFormat {
    /// 1.0, the same for JSON-RPC and HTTP+JSON.
    V1,
    /// JSON-RPC of 0.3: `kind` is the type of an object, names are in lower case.
    V03Rpc,
    /// HTTP+JSON of 0.3: the JSON mapping of its protocol buffers.
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
    fn missing_version_means_0_3() {
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
            let parsed = ProtocolVersion::from_header(header);
            assert_eq!(parsed.as_ref().ok(), expected.as_ref(), "{header:?}");
            if let Err(error) = parsed {
                assert_eq!(error.kind, ErrorKind::VersionNotSupported);
            }
        }
    }
}
