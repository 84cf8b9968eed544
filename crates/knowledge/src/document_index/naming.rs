//! Paths as the store keeps them: as text, from which the path can be told again.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What stands before a byte that is spelled out.
const BYTE_ESCAPE: &str = r"\x";

/// Names need not be text; what is none is spelled out, and so is what looks spelled out: two files never look like one.
pub fn path_to_text(path: &Path) -> String {
    let parts = path.as_os_str().as_encoded_bytes().utf8_chunks();
    parts.fold(String::new(), |mut shown, part| {
        shown.push_str(&part.valid().replace(BYTE_ESCAPE, r"\x5cx"));
        part.invalid()
            .iter()
            .for_each(|byte| shown.push_str(&format!("{BYTE_ESCAPE}{byte:02x}")));
        shown
    })
}

/// The path that is shown so.
pub fn path_from_text(shown: &str) -> PathBuf {
    let mut parts = shown.split(BYTE_ESCAPE);
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

/// Whether nothing is there; what cannot be looked at may be.
pub fn is_missing(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}
