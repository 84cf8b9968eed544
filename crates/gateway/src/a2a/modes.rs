//! Checks of input and output media types.

use lango_remote::a2a::{ErrorKind, Part, PartContent, ProtocolError, SendMessage};

use super::operations::TaskOperations;

/// The media type of a file of any kind.
pub(super) const ANY_FILE: &str = "application/octet-stream";

impl TaskOperations {
    /// Rejects messages with unsupported parts, or that accept none of the output types.
    pub fn check_modes(&self, send: &SendMessage) -> Result<(), ProtocolError> {
        let worker = &self.gateway.a2a().worker;
        let (input_modes, output_modes) = (worker.input_modes(), worker.output_modes());
        for part in &send.message.parts {
            let is_file = matches!(part.content, PartContent::Raw(_));
            if is_file && input_modes.iter().any(|mode| mode == ANY_FILE) {
                continue;
            }
            let media_type = media_type(part);
            if !input_modes
                .iter()
                .any(|mode| matches_media_type(mode, media_type))
            {
                let media_type = lango_text::sanitize::truncated_line(media_type, 60);
                let message = format!(
                    "unsupported part of type {media_type}; expected {}",
                    input_modes.join(", ")
                );
                return Err(ProtocolError::new(
                    ErrorKind::ContentTypeNotSupported,
                    message,
                ));
            }
        }
        let accepted = &send.accepted_output_modes;
        if !accepted.is_empty()
            && !accepted.iter().any(|pattern| {
                output_modes
                    .iter()
                    .any(|mode| matches_media_type(pattern, mode))
            })
        {
            let message = format!(
                "none of the accepted output types is supported; answers are {}",
                output_modes.join(", ")
            );
            return Err(ProtocolError::new(
                ErrorKind::ContentTypeNotSupported,
                message,
            ));
        }
        Ok(())
    }
}

/// Returns the media type of a part without parameters.
fn media_type(part: &Part) -> &str {
    let default = match &part.content {
        PartContent::Text(_) => "text/plain",
        PartContent::Data(_) => "application/json",
        PartContent::Raw(_) | PartContent::Url(_) => ANY_FILE,
    };
    part.media_type.as_deref().map_or(default, |media_type| {
        media_type.split(';').next().unwrap_or(default).trim()
    })
}

/// Returns true if a media type matches a pattern such as `text/*` or `text`.
fn matches_media_type(pattern: &str, media_type: &str) -> bool {
    let pattern = pattern.split(';').next().unwrap_or(pattern).trim();
    let (kind, _) = media_type.split_once('/').unwrap_or((media_type, ""));
    pattern == "*/*"
        || pattern.eq_ignore_ascii_case(media_type)
        || pattern
            .strip_suffix("/*")
            .unwrap_or(pattern)
            .eq_ignore_ascii_case(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_media_type_patterns() {
        for pattern in [
            "*/*",
            "text/*",
            "text",
            "Text/Plain",
            "text/plain; charset=utf-8",
        ] {
            assert!(matches_media_type(pattern, "text/plain"), "{pattern}");
        }
        for pattern in ["", "image/*", "text/html", "application/json", "plain"] {
            assert!(!matches_media_type(pattern, "text/plain"), "{pattern}");
        }
    }
}
