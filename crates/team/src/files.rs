//! Reading files that somebody else may have put there.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The whole of a regular file of at most `most` bytes. Pipes and devices, which never end, are refused.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}
