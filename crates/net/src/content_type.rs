//! Content types of responses: from the `Content-Type` header and from the bytes.

/// A kind of content that can be turned into text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    Html,
    /// Text used unchanged: plain, markdown, CSV, JSON, XML.
    Text,
    Pdf,
}

/// A parsed `Content-Type` header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentType {
    /// The media type in lower case, such as `text/html`; empty if the header is missing.
    pub essence: String,
    pub charset: Option<String>,
}

impl ContentType {
    pub fn parse(header: &str) -> Self {
        let mut parts = header.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let is_charset = name.trim().eq_ignore_ascii_case("charset");
            is_charset.then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        Self { essence, charset }
    }

    /// Returns the kind that the header names, or none if it is unsupported or needs sniffing.
    pub fn kind(&self) -> Option<ContentKind> {
        match self.essence.as_str() {
            "text/html" | "application/xhtml+xml" => Some(ContentKind::Html),
            "application/pdf" | "application/x-pdf" => Some(ContentKind::Pdf),
            "application/json" | "application/xml" | "application/x-ndjson" => {
                Some(ContentKind::Text)
            }
            essence => {
                let is_text = essence.starts_with("text/")
                    || (essence.starts_with("application/")
                        && (essence.ends_with("+json") || essence.ends_with("+xml")));
                is_text.then_some(ContentKind::Text)
            }
        }
    }

    /// Returns true if the header is missing or generic, so that only the bytes show the kind.
    pub fn needs_sniffing(&self) -> bool {
        matches!(
            self.essence.as_str(),
            "" | "application/octet-stream" | "binary/octet-stream" | "application/x-download"
        )
    }

    /// Returns the kind of `bytes` by header and content: servers label binary data as text.
    pub fn detect(&self, bytes: &[u8]) -> Option<ContentKind> {
        let start = &bytes[..bytes.len().min(SNIFF_BYTES)];
        if start.starts_with(b"%PDF-") {
            return Some(ContentKind::Pdf);
        }
        let is_wide = self
            .charset
            .as_deref()
            .is_some_and(|charset| charset.to_lowercase().contains("16"))
            || start.starts_with(b"\xff\xfe")
            || start.starts_with(b"\xfe\xff");
        if start.contains(&0) && !is_wide {
            return None;
        }
        match self.kind() {
            Some(kind) => Some(kind),
            None if self.essence.is_empty() => Some(sniff(start)),
            None => std::str::from_utf8(bytes).is_ok().then(|| sniff(start)),
        }
    }
}

/// Number of bytes inspected to detect the kind.
const SNIFF_BYTES: usize = 1024;

fn sniff(start: &[u8]) -> ContentKind {
    let start = String::from_utf8_lossy(start)
        .trim_start()
        .to_ascii_lowercase();
    let is_html = ["<!doctype html", "<html", "<head", "<body"]
        .iter()
        .any(|tag| start.starts_with(tag));
    if is_html {
        ContentKind::Html
    } else {
        ContentKind::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_map_to_kinds() {
        for (header, kind, charset) in [
            ("text/html", Some(ContentKind::Html), None),
            (
                "Text/HTML; Charset=\"UTF-8\"",
                Some(ContentKind::Html),
                Some("UTF-8"),
            ),
            ("application/xhtml+xml", Some(ContentKind::Html), None),
            (
                "text/csv;header=present; charset=shift_jis",
                Some(ContentKind::Text),
                Some("shift_jis"),
            ),
            ("application/ld+json", Some(ContentKind::Text), None),
            ("application/rss+xml", Some(ContentKind::Text), None),
            ("application/pdf", Some(ContentKind::Pdf), None),
            ("image/svg+xml", None, None),
            ("application/octet-stream", None, None),
            ("video/mp4", None, None),
            ("", None, None),
        ] {
            let content = ContentType::parse(header);
            assert_eq!(
                (content.kind(), content.charset.as_deref()),
                (kind, charset),
                "{header}"
            );
        }
    }

    #[test]
    fn detects_the_kind_despite_wrong_headers() {
        for (header, bytes, kind) in [
            (
                "",
                b"\n<!DOCTYPE html><p>".as_slice(),
                Some(ContentKind::Html),
            ),
            ("", b"%PDF-1.7", Some(ContentKind::Pdf)),
            ("", b"hello", Some(ContentKind::Text)),
            ("", b"\x89PNG\0\0", None),
            ("text/html", b"%PDF-1.7", Some(ContentKind::Pdf)),
            ("text/plain", b"\x89PNG\0\0", None),
            (
                "text/plain; charset=utf-16le",
                b"a\0",
                Some(ContentKind::Text),
            ),
            ("text/html", b"\xff\xfea\0", Some(ContentKind::Html)),
            (
                "application/octet-stream",
                b"%PDF-1.7",
                Some(ContentKind::Pdf),
            ),
            (
                "application/octet-stream",
                b"# Notes",
                Some(ContentKind::Text),
            ),
            ("application/octet-stream", b"\x1f\x8b\xff", None),
            ("image/png", b"hello", None),
        ] {
            let content = ContentType::parse(header);
            let detected = (content.kind().is_some() || content.needs_sniffing())
                .then(|| content.detect(bytes));
            assert_eq!(detected.flatten(), kind, "{header} {bytes:?}");
        }
    }
}
