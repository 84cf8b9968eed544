//! What messages bring and answers consist of, as media types.

use lango_remote::a2a::{ErrorKind, Part, PartContent, ProtocolError, SendMessage};

use super::operations::TaskOperations;

impl TaskOperations {
    /// What cannot be read, and answers that could not be, are refused before anything begins.
    pub fn check_modes(&self, send: &SendMessage) -> Result<(), ProtocolError> {
        let worker = &self.gateway.a2a().worker;
        let (reads, writes) = (worker.input_modes(), worker.output_modes());
        for part in &send.message.parts {
            let media_type = media_type(part);
            if !reads
                .iter()
                .any(|mode| matches_media_type(mode, media_type))
            {
                let media_type = lango_net::sanitize::one_line(media_type, 60);
                let message = format!(
                    "a part is {media_type}; only {} can be read",
                    reads.join(", ")
                );
                return Err(ProtocolError::new(
                    ErrorKind::ContentTypeNotSupported,
                    message,
                ));
            }
        }
        let wanted = &send.accepted_output_modes;
        if !wanted.is_empty()
            && !wanted
                .iter()
                .any(|wanted| writes.iter().any(|mode| matches_media_type(wanted, mode)))
        {
            let message = format!(
                "answers are {}, and none of these is accepted",
                writes.join(", ")
            );
            return Err(ProtocolError::new(
                ErrorKind::ContentTypeNotSupported,
                message,
            ));
        }
        Ok(())
    }
}

fn media_type(part: &Part) -> &str {
    let plain = match &part.content {
        PartContent::Text(_) => "text/plain",
        PartContent::Data(_) => "application/json",
        PartContent::Raw(_) | PartContent::Url(_) => "application/octet-stream",
    };
    part.media_type.as_deref().map_or(plain, |media_type| {
        media_type.split(';').next().unwrap_or(plain).trim()
    })
}

/// Whether a media type is one that a pattern such as `text/*` or `text` means.
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
    fn patterns_mean_what_they_say() {
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
