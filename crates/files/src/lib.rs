//! Files that somebody else may have put there: opened beneath a folder, read up to a limit, never waited for.

pub mod confined_open;
mod folder;
mod bounded_read;

pub use folder::FolderReader;
pub use bounded_read::{ReadError, read_bounded};
