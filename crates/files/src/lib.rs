//! Files that somebody else may have put there: opened beneath a folder, read up to a limit, never waited for.

pub mod beneath;
mod folder;
mod reading;

pub use folder::Folder;
pub use reading::{Unreadable, read_bounded};
