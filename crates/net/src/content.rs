//! What a reply is, by what its server says.

/// A kind of content that is worth reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Html,
    /// Text to be taken as it is: plain, markdown, CSV, JSON, XML.
    Text,
    Pdf,
}

/// A content type, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentType {
    /// `text/html`, in lower case; empty where the server said nothing.
    pub essence: String,
    pub charset: Option<String>,
}

impl ContentType {
    pub fn read(header: &str) -> Self {
        let mut parts = header.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let is_charset = name.trim().eq_ignore_ascii_case("charset");
            is_charset.then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        Self { essence, charset }
    }

    /// Nothing for what is not worth reading, and for what can only be told by looking at it.
    pub fn kind(&self) -> Option<Kind> {
        match self.essence.as_str() {
            "text/html" | "application/xhtml+xml" => Some(Kind::Html),
            "application/pdf" | "application/x-pdf" => Some(Kind::Pdf),
            "application/json" | "application/xml" | "application/x-ndjson" => Some(Kind::Text),
            essence => {
                let is_text = essence.starts_with("text/")
                    || (essence.starts_with("application/")
                        && (essence.ends_with("+json") || essence.ends_with("+xml")));
                is_text.then_some(Kind::Text)
            }
        }
    }

    pub fn is_unsaid(&self) -> bool {
        self.essence.is_empty()
    }
}

/// What bytes are that came without a content type.
pub fn sniffed(bytes: &[u8]) -> Option<Kind> {
    let start = &bytes[..bytes.len().min(1024)];
    if start.starts_with(b"%PDF-") {
        return Some(Kind::Pdf);
    }
    if start.contains(&0) {
        return None;
    }
    let start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
    let is_html = ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| start.starts_with(tag));
    Some(if is_html { Kind::Html } else { Kind::Text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_sorted_by_what_can_be_read() {
        for (header, kind, charset) in [
            ("text/html", Some(Kind::Html), None),
            ("Text/HTML; Charset=\"UTF-8\"", Some(Kind::Html), Some("UTF-8")),
            ("application/xhtml+xml", Some(Kind::Html), None),
            ("text/csv;header=present; charset=shift_jis", Some(Kind::Text), Some("shift_jis")),
            ("application/ld+json", Some(Kind::Text), None),
            ("application/rss+xml", Some(Kind::Text), None),
            ("application/pdf", Some(Kind::Pdf), None),
            ("image/svg+xml", None, None),
            ("application/octet-stream", None, None),
            ("video/mp4", None, None),
            ("", None, None),
        ] {
            let content = ContentType::read(header);
            assert_eq!((content.kind(), content.charset.as_deref()), (kind, charset), "{header}");
        }
    }

    #[test]
    fn what_is_not_said_is_looked_at() {
        assert_eq!(sniffed(b"\n<!DOCTYPE html><p>"), Some(Kind::Html));
        assert_eq!(sniffed(b"%PDF-1.7"), Some(Kind::Pdf));
        assert_eq!(sniffed(b"hello"), Some(Kind::Text));
        assert_eq!(sniffed(b"\x89PNG\0\0"), None);
    }
}
