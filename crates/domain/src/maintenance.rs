//! Backup and health of a store.

use std::fmt;
use std::path::Path;

use crate::session::StoreFuture;

pub trait StoreMaintenance: Send + Sync {
    /// Returns the random id that the store got when it was created. Copies of the store share it.
    fn identity(&self) -> &str;

    /// Returns true if the store ends with the process.
    fn is_in_memory(&self) -> bool;

    /// Writes a consistent copy of the store to a new file. The store can be written meanwhile.
    fn back_up<'a>(&'a self, into: &'a Path) -> StoreFuture<'a, ()>;

    /// Checks that the store can be written, without changing anything.
    fn check_writable(&self) -> StoreFuture<'_, ()>;

    fn health(&self) -> StoreFuture<'_, StoreHealth>;

    /// Reads every row of every principal and returns those that cannot be read.
    fn find_damaged_rows(&self) -> StoreFuture<'_, Vec<DamagedRow>>;

    /// Returns the rows that were skipped so far because they cannot be read.
    fn damaged_rows(&self) -> Vec<DamagedRow>;
}

/// The result of a health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHealth {
    pub sessions: u64,
    pub events: u64,
    pub bytes: u64,
    /// Problems reported by SQLite's `quick_check`. Empty for a healthy file.
    pub problems: Vec<String>,
}

/// A row that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedRow {
    /// The row in words, such as "event 5 of session `a`".
    pub name: String,
    pub reason: String,
}

impl fmt::Display for DamagedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be read: {}", self.name, self.reason)
    }
}
