//! Reversible conversion of paths to the text that the store keeps.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The prefix of an escaped byte.
const BYTE_ESCAPE: &str = r"\x";

/// Converts a path to text. Escapes bytes that are not UTF-8, and text that looks like an escape,
/// so that two paths never have the same text.
pub fn path_to_text(path: &Path) -> String {
    let parts = path.as_os_str().as_encoded_bytes().utf8_chunks();
    parts.fold(String::new(), |mut text, part| {
        text.push_str(&part.valid().replace(BYTE_ESCAPE, r"\x5cx"));
        part.invalid()
            .iter()
            .for_each(|byte| text.push_str(&format!("{BYTE_ESCAPE}{byte:02x}")));
        text
    })
}

/// Returns the path of a text that `path_to_text` returned.
pub fn path_from_text(text: &str) -> PathBuf {
    let mut parts = text.split(BYTE_ESCAPE);
    let mut bytes: Vec<u8> = parts.next().unwrap_or_default().into();
    for part in parts {
        let byte = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => bytes.extend_from_slice(&[BYTE_ESCAPE.as_bytes(), part.as_bytes()].concat()),
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns true if the path does not exist. An inaccessible path may exist.
pub fn is_missing(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}
