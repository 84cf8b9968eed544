//! Persistent storage: one SQLite file that implements the store traits of the domain. Events are
//! only appended, never changed, and an acknowledged append survives a crash (B71, B73).

mod a2a_tasks;
mod access_tokens;
mod audit;
mod automation;
mod blobs;
mod damage;
mod database;
mod delete;
mod documents;
mod error;
mod event_rows;
mod forget;
mod graph;
mod inquiries;
mod knowledge;
mod maintenance;
mod memory;
mod payments;
mod redact;
mod reserve;
mod scheduler_lock;
mod session_locks;
mod session_log;
mod session_search;
mod sessions;
mod settings;
mod store;
mod vault;
mod writer;

pub use database::{StoreLocation, log_file};
pub use settings::StoreSettings;
pub use store::SqliteStore;
