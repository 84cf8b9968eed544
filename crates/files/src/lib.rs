//! Files that somebody else may have put there: opened beneath a folder, read up to a limit, never waited for.

mod bounded_read;
pub mod confined_open;
mod folder;

pub use bounded_read::{ReadError, read_bounded};
pub use folder::FolderReader;
