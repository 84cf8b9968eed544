//! Where sessions are kept: one SQLite file behind the domain's seams. Events are appended and never changed; what an
//! append acknowledged survives whatever happens next (B71, B73).

mod audit;
mod catalogue;
mod damage;
mod deleting;
mod documents;
mod error;
mod file;
mod forgetting;
mod graph;
mod inquiries;
mod knowledge;
mod locks;
mod memory;
mod reserve;
mod rows;
mod settings;
mod store;
mod tasks;
mod tokens;
mod upkeep;
mod writer;

pub use audit::AuditEntry;
pub use catalogue::{Hit, SessionInfo, UsageRow};
pub use damage::DamagedRow;
pub use error::Trouble;
pub use file::Place;
pub use settings::Settings;
pub use store::SqliteStore;
pub use tasks::{NewTask, TaskBegun, TaskListener, TaskQuery, TaskRow};
pub use tokens::{AccessToken, TokenHash, TokenScope, UnknownScope, token_value};
pub use upkeep::Health;
