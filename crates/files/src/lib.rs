//! Reads untrusted files: opens them beneath a folder, up to a size limit, without blocking on
//! pipes or devices.

mod bounded_read;
pub mod confined_open;
mod folder;

pub use bounded_read::{ReadError, read_bounded};
pub use folder::FolderReader;
