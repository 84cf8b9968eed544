//! Images and files: what is stored in events, and their bytes.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use lango_text::sanitize::one_line;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::media_type::{
    TEXT_TYPES, UNKNOWN_TYPE, checked_media_type, detect_media_type, media_type_essence,
    media_type_of,
};

/// Most bytes of one attachment. Providers accept little more.
pub const MAX_ATTACHMENT_BYTES: usize = 10 * 1024 * 1024;

/// Most attachments of one message.
pub const MAX_ATTACHMENTS: usize = 20;

/// Most bytes of the attachments of one message, and of one request to a model. Providers refuse larger
/// requests.
pub const MAX_MESSAGE_BYTES: u64 = 20 * 1024 * 1024;

/// Most bytes of an attachment's name. File systems allow little more.
const MAX_NAME_BYTES: usize = 160;

/// Bytes per token of a PDF file, and the bounds of the estimate. Pages differ widely.
const PDF_BYTES_PER_TOKEN: u64 = 20;
const PDF_TOKENS: std::ops::RangeInclusive<usize> = 2_000..=60_000;
/// Tokens of one image; providers scale larger images down.
const IMAGE_TOKENS: usize = 1_600;

/// Accepts base64 with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The identity of stored bytes: their SHA-256, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct BlobId(String);

impl From<String> for BlobId {
    fn from(id: String) -> Self {
        Self::from_text(&id)
    }
}

impl BlobId {
    pub fn of(bytes: &[u8]) -> Self {
        let digest = Sha256::digest(bytes);
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns an id as it is written in a log. It may name bytes that do not exist; a text that is no id
    /// names none.
    pub fn from_text(id: &str) -> Self {
        let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        Self(if is_id {
            id.to_ascii_lowercase()
        } else {
            String::new()
        })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An image or a file in content. Events hold this description; the store holds the bytes once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredAttachment")]
pub struct Attachment {
    pub blob: BlobId,
    pub media_type: String,
    pub name: String,
    /// The number of bytes.
    pub size: u64,
    /// The byte position in the text where it stands; none is the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The bytes, if they are loaded: before they are stored, and in a request to a model.
    #[serde(skip)]
    pub data: BlobData,
}

/// An attachment as it is written. A log may come from another place, so nothing in it is taken as it is.
#[derive(Deserialize)]
struct StoredAttachment {
    blob: String,
    media_type: String,
    name: String,
    size: u64,
    #[serde(default)]
    at: Option<u64>,
}

impl From<StoredAttachment> for Attachment {
    fn from(stored: StoredAttachment) -> Self {
        let media_type = media_type_essence(&stored.media_type);
        Self {
            blob: BlobId::from_text(&stored.blob),
            media_type: media_type.unwrap_or_else(|| UNKNOWN_TYPE.to_owned()),
            name: clean_name(&stored.name),
            size: stored.size,
            at: stored.at,
            data: BlobData::default(),
        }
    }
}

/// The bytes of an attachment, if they are loaded. No part of its identity.
#[derive(Clone, Default)]
pub struct BlobData(Option<Arc<[u8]>>);

impl BlobData {
    pub fn loaded(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(Some(bytes.into()))
    }

    pub fn bytes(&self) -> Option<&Arc<[u8]>> {
        self.0.as_ref()
    }
}

impl fmt::Debug for BlobData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "loaded" } else { "absent" })
    }
}

impl PartialEq for BlobData {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for BlobData {}

/// The kinds of attachments that models tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentKind {
    Image,
    Pdf,
    Other,
}

/// The kinds of attachments that a model reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadableKinds {
    pub images: bool,
    pub pdfs: bool,
}

impl ReadableKinds {
    pub const NONE: Self = Self {
        images: false,
        pdfs: false,
    };
    pub const ALL: Self = Self {
        images: true,
        pdfs: true,
    };

    pub fn contains(self, kind: AttachmentKind) -> bool {
        match kind {
            AttachmentKind::Image => self.images,
            AttachmentKind::Pdf => self.pdfs,
            AttachmentKind::Other => false,
        }
    }
}

/// The reason why bytes cannot be attached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachmentError {
    #[error("{0} is empty")]
    Empty(String),
    #[error("{name} has {}; an attachment may have at most {}", format_bytes(*size as u64), format_bytes(MAX_ATTACHMENT_BYTES as u64))]
    TooLarge { name: String, size: usize },
    #[error("{0} files are attached; a message may have at most {MAX_ATTACHMENTS}")]
    TooMany(usize),
    #[error("the attached files have {} together; a message may have at most {}", format_bytes(*.0), format_bytes(MAX_MESSAGE_BYTES))]
    TooLargeTogether(u64),
    #[error("`{0}` is not a media type")]
    MediaType(String),
    #[error("the content of {0} is not valid base64")]
    Base64(String),
    #[error("{name} is not a file of the type {expected}")]
    WrongContent { name: String, expected: String },
}

impl Attachment {
    /// Describes bytes. Without a media type, the bytes and the name decide. Bytes that are not the
    /// image or PDF file that they claim to be are refused, since a provider would refuse the whole request.
    pub fn new(
        bytes: Vec<u8>,
        name: &str,
        media_type: Option<&str>,
    ) -> Result<Self, AttachmentError> {
        let name = clean_name(name);
        if bytes.is_empty() {
            return Err(AttachmentError::Empty(name));
        }
        if bytes.len() > MAX_ATTACHMENT_BYTES {
            let size = bytes.len();
            return Err(AttachmentError::TooLarge { name, size });
        }
        let detected = detect_media_type(&bytes);
        let media_type = match media_type {
            Some(claimed) => checked_media_type(claimed, detected, &name)?,
            None => detected
                .unwrap_or_else(|| media_type_of(&bytes, &name))
                .to_owned(),
        };
        Ok(Self {
            blob: BlobId::of(&bytes),
            media_type,
            name,
            size: bytes.len() as u64,
            at: None,
            data: BlobData::loaded(bytes),
        })
    }

    /// Describes bytes that arrive as base64, with or without padding.
    pub fn from_base64(
        data: &str,
        name: &str,
        media_type: Option<&str>,
    ) -> Result<Self, AttachmentError> {
        // Four characters are three bytes. A longer text is refused before it is decoded.
        let size = data.len() / 4 * 3;
        if size > MAX_ATTACHMENT_BYTES + 3 {
            let name = clean_name(name);
            return Err(AttachmentError::TooLarge { name, size });
        }
        let bytes = BASE64.decode(data.trim());
        let bytes = bytes.map_err(|_| AttachmentError::Base64(clean_name(name)))?;
        Self::new(bytes, name, media_type)
    }

    /// Describes the bytes of a `data:` URL. Returns `None` for another kind of URL.
    pub fn from_data_url(url: &str, name: &str) -> Option<Result<Self, AttachmentError>> {
        let scheme = url
            .get(..5)
            .filter(|scheme| scheme.eq_ignore_ascii_case("data:"))?;
        let (head, data) = url[scheme.len()..].split_once(',')?;
        let media_type = head.strip_suffix(";base64")?;
        let media_type = Some(media_type).filter(|media_type| !media_type.is_empty());
        Some(Self::from_base64(data, name, media_type))
    }

    /// Returns the bytes as base64, if they are loaded.
    pub fn base64(&self) -> Option<String> {
        Some(STANDARD.encode(self.data.bytes()?))
    }

    /// Returns the bytes as a `data:` URL, if they are loaded.
    pub fn data_url(&self) -> Option<String> {
        Some(format!(
            "data:{};base64,{}",
            self.media_type,
            self.base64()?
        ))
    }

    pub fn kind(&self) -> AttachmentKind {
        match self.media_type.as_str() {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => AttachmentKind::Image,
            "application/pdf" => AttachmentKind::Pdf,
            _ => AttachmentKind::Other,
        }
    }

    /// Checks the number and the size of the attachments of one message.
    pub fn check_all(attachments: &[Self]) -> Result<(), AttachmentError> {
        if attachments.len() > MAX_ATTACHMENTS {
            return Err(AttachmentError::TooMany(attachments.len()));
        }
        let bytes = attachments.iter().map(|attachment| attachment.size).sum();
        if bytes > MAX_MESSAGE_BYTES {
            return Err(AttachmentError::TooLargeTogether(bytes));
        }
        Ok(())
    }

    /// Returns the text of a text file, if its bytes are loaded. UTF-16 has a mark at its beginning; other
    /// bytes that are not UTF-8 are shown as replacement characters.
    pub fn text(&self) -> Option<String> {
        let bytes = self.data.bytes().filter(|_| self.is_text())?;
        let units = |combine: fn([u8; 2]) -> u16| -> Vec<u16> {
            let pairs = bytes[2..].chunks_exact(2);
            pairs.map(|pair| combine([pair[0], pair[1]])).collect()
        };
        Some(match &bytes[..] {
            [0xff, 0xfe, ..] => String::from_utf16_lossy(&units(u16::from_le_bytes)),
            [0xfe, 0xff, ..] => String::from_utf16_lossy(&units(u16::from_be_bytes)),
            _ => String::from_utf8_lossy(bytes).into_owned(),
        })
    }

    /// Returns true for a text file, which a model reads as text.
    pub fn is_text(&self) -> bool {
        let media_type = self.media_type.as_str();
        media_type.starts_with("text/") || TEXT_TYPES.contains(&media_type)
    }

    /// Returns a short description, for places where the attachment cannot be shown.
    pub fn placeholder(&self) -> String {
        let word = match self.kind() {
            AttachmentKind::Image => "image",
            AttachmentKind::Pdf | AttachmentKind::Other => "file",
        };
        format!(
            "[{word} {}, {}, {}]",
            self.name,
            self.media_type,
            format_bytes(self.size)
        )
    }

    /// Returns an estimate of the tokens that a model needs to read it.
    pub fn estimated_tokens(&self) -> usize {
        match self.kind() {
            AttachmentKind::Image => IMAGE_TOKENS,
            AttachmentKind::Pdf | AttachmentKind::Other => {
                let tokens = usize::try_from(self.size / PDF_BYTES_PER_TOKEN).unwrap_or(usize::MAX);
                tokens.clamp(*PDF_TOKENS.start(), *PDF_TOKENS.end())
            }
        }
    }
}

/// Returns the last component of a path as one short line. It is a valid file name, never hidden.
fn clean_name(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let mut line: String = one_line(base)
        .chars()
        .filter(|c| !matches!(c, '[' | ']' | '<' | '>' | '"'))
        .collect();
    line.truncate(line.floor_char_boundary(MAX_NAME_BYTES));
    match line.trim().trim_start_matches('.').trim() {
        "" => "attachment".to_owned(),
        name => name.to_owned(),
    }
}

/// Formats a number of bytes for people.
fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..1_000_000 => format!("{} KiB", bytes / 1024),
        _ => format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    /// B110
    #[test]
    fn bytes_decide_about_the_type() {
        let attachment = Attachment::new(PNG.to_vec(), "photo.jpg", Some("image/jpeg")).unwrap();
        assert_eq!(attachment.media_type, "image/png");
        assert_eq!(attachment.kind(), AttachmentKind::Image);
        let text = Attachment::new(b"a,b".to_vec(), "t.csv", None).unwrap();
        assert_eq!(
            (text.media_type.as_str(), text.kind()),
            ("text/csv", AttachmentKind::Other)
        );
    }

    /// B110
    #[test]
    fn bad_attachments_are_refused() {
        let new = |bytes: &[u8], media_type| Attachment::new(bytes.to_vec(), "x", media_type);
        assert_eq!(new(b"", None), Err(AttachmentError::Empty("x".into())));
        assert!(matches!(
            new(b"<html>", Some("image/png")),
            Err(AttachmentError::WrongContent { .. })
        ));
        for odd in ["", "png", "image/", "image/p ng", "a/b\r\nX: y"] {
            assert!(
                matches!(new(PNG, Some(odd)), Err(AttachmentError::MediaType(_))),
                "{odd:?}"
            );
        }
        let large = vec![0; MAX_ATTACHMENT_BYTES + 1];
        assert!(matches!(
            Attachment::new(large, "x", None),
            Err(AttachmentError::TooLarge { .. })
        ));
    }

    #[test]
    fn base64_comes_with_and_without_padding() {
        let attachment = Attachment::new(PNG.to_vec(), "a.png", None).unwrap();
        let url = attachment.data_url().unwrap();
        for url in [url.as_str(), url.trim_end_matches('=')] {
            let read = Attachment::from_data_url(url, "a.png").unwrap().unwrap();
            assert_eq!(read, attachment);
        }
        assert_eq!(
            Attachment::from_base64("not base64!", "a.png", None),
            Err(AttachmentError::Base64("a.png".into()))
        );
        let long = "A".repeat(MAX_ATTACHMENT_BYTES * 2);
        assert!(matches!(
            Attachment::from_base64(&long, "x", None),
            Err(AttachmentError::TooLarge { .. })
        ));
        for other in ["https://x.test/a.png", "data:image/png,plain", "data:", "é"] {
            assert!(Attachment::from_data_url(other, "x").is_none(), "{other}");
        }
    }

    #[test]
    fn names_are_short_lines_without_folders() {
        for (name, clean) in [
            ("../../etc/passwd", "passwd"),
            ("C:\\photos\\me.png", "me.png"),
            ("a\nb.png", "a b.png"),
            ("", "attachment"),
            ("x]<y>", "xy"),
        ] {
            assert_eq!(clean_name(name), clean, "{name:?}");
        }
        assert_eq!(clean_name(&"é".repeat(500)).len(), MAX_NAME_BYTES);
        assert_eq!(clean_name("..bashrc"), "bashrc");
    }

    /// A log from another place cannot bring a path, a terminal sequence or a header.
    #[test]
    fn a_stored_attachment_is_cleaned() {
        let json = serde_json::json!({
            "blob": "../x", "media_type": "image/png\r\nX: y", "name": "../../etc/cron.d/\u{1b}]0;x", "size": 1,
        });
        let read: Attachment = serde_json::from_value(json).unwrap();
        assert_eq!(read.name, "0;x");
        assert_eq!(read.media_type, UNKNOWN_TYPE);
        assert_eq!(read.blob.as_str(), "");
    }

    #[test]
    fn bytes_stay_out_of_json() {
        let attachment = Attachment::new(PNG.to_vec(), "a.png", None).unwrap();
        let json = serde_json::to_value(&attachment).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "blob": BlobId::of(PNG).as_str(), "media_type": "image/png", "name": "a.png", "size": 12,
            })
        );
        let read: Attachment = serde_json::from_value(json).unwrap();
        assert!(read == attachment && read.data.bytes().is_none());
    }
}
