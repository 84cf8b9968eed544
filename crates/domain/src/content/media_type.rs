//! Media types of attachments: what bytes are, and what a client may claim about them.

use lango_text::sanitize::one_line;

use super::AttachmentError;

/// The media type of bytes that nothing is known about.
pub(super) const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Returns the media type of formats that begin with known bytes.
pub(super) fn detect_media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        _ => None,
    }
}

/// Returns a media type without parameters, or `None` if it is malformed.
pub(super) fn media_type_essence(media_type: &str) -> Option<String> {
    let essence = media_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let is_token = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c))
    };
    let (kind, subtype) = essence.split_once('/')?;
    let is_valid = essence.len() <= 100 && is_token(kind) && is_token(subtype);
    is_valid.then_some(essence)
}

/// Types that a provider checks: the bytes must agree.
const CHECKED_TYPES: [&str; 5] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
];

/// Returns the media type that a client claimed, if it is well-formed and the bytes agree. What the
/// bytes are is stronger than a wrong claim about an image.
pub(super) fn checked_media_type(
    claimed: &str,
    detected: Option<&'static str>,
    name: &str,
) -> Result<String, AttachmentError> {
    let Some(essence) = media_type_essence(claimed) else {
        let shown = one_line(claimed).chars().take(100).collect();
        return Err(AttachmentError::MediaType(shown));
    };
    match detected {
        Some(detected) => Ok(detected.to_owned()),
        None if CHECKED_TYPES.contains(&essence.as_str()) => Err(AttachmentError::WrongContent {
            name: name.to_owned(),
            expected: essence,
        }),
        None => Ok(essence),
    }
}

/// Media types of text, besides `text/*`.
pub(super) const TEXT_TYPES: [&str; 6] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/toml",
    "application/javascript",
    "image/svg+xml",
];

/// Returns the media type of bytes without a known beginning: by the extension of the name, else text or
/// not.
pub(super) fn media_type_of(bytes: &[u8], name: &str) -> &'static str {
    match media_type_of_name(name) {
        Some(media_type) => media_type,
        None if is_plain_text(bytes) => "text/plain",
        None => UNKNOWN_TYPE,
    }
}

fn is_plain_text(bytes: &[u8]) -> bool {
    let is_utf16 = matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
    is_utf16 || std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}

fn media_type_of_name(name: &str) -> Option<&'static str> {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    Some(match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("txt" | "log") => "text/plain",
        Some("md" | "markdown") => "text/markdown",
        Some("csv") => "text/csv",
        Some("html" | "htm") => "text/html",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("zip") => "application/zip",
        Some("docx") => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        Some("xlsx") => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        _ => return None,
    })
}
