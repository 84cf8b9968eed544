//! Where sessions are kept: one SQLite file behind the domain's seams. Events are appended and never changed; what an
//! append acknowledged survives whatever happens next (B71, B73).

mod audit;
mod sessions;
mod damage;
mod delete;
mod documents;
mod error;
mod database;
mod forget;
mod graph;
mod inquiries;
mod knowledge;
mod session_locks;
mod memory;
mod reserve;
mod event_rows;
mod settings;
mod store;
mod a2a_tasks;
mod access_tokens;
mod maintenance;
mod writer;

pub use audit::AuditEntry;
pub use sessions::{SessionSearchHit, SessionInfo, UsageRow};
pub use damage::DamagedRow;
pub use error::SqliteStoreError;
pub use database::StoreLocation;
pub use settings::StoreSettings;
pub use store::SqliteStore;
pub use a2a_tasks::{NewTask, TaskCreation, PushConfigRow, TaskQuery, TaskRow};
pub use access_tokens::{AccessToken, TokenHash, TokenScope, UnknownScopeError, token_value};
pub use maintenance::StoreHealth;
