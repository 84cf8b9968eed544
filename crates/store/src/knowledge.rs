//! Storage of the knowledge base: entries and learnings.

mod entries;
mod learnings;

use futures::future::FutureExt;
use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::event::{Principal, SessionId, TurnId};
use lango_domain::knowledge::{
    EntrySaved, KnowledgeEntry, KnowledgeStore, Learning, LearningSaved, NewKnowledgeEntry,
    NewLearning, OutcomeBatch, Provenance,
};
use lango_domain::session::SessionKey;
use lango_domain::session::StoreFuture;
use rusqlite::{Row, TransactionBehavior};

use crate::damage::RowReader;
use crate::event_rows;
use crate::store::SqliteStore;

pub(crate) use entries::upsert as upsert_entry;
pub(crate) use learnings::mark_as_counted;

/// The tables, also those of inquiries. Deleting a session keeps its entries and learnings without
/// the session's name, and deletes its inquiries.
pub(crate) const TABLES: &str = "
    CREATE TABLE knowledge (
        id INTEGER PRIMARY KEY,
        principal TEXT NOT NULL,
        key TEXT NOT NULL,
        version INTEGER NOT NULL,
        category TEXT NOT NULL,
        content TEXT NOT NULL,
        tags TEXT NOT NULL,
        session INTEGER REFERENCES sessions (id) ON DELETE SET NULL,
        turn TEXT NOT NULL,
        source TEXT NOT NULL,
        at TEXT NOT NULL,
        UNIQUE (principal, key, version)
    ) STRICT;
    CREATE TABLE learnings (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        principal TEXT NOT NULL,
        trigger TEXT NOT NULL,
        -- The trigger in lower case: each trigger has one fix.
        folded TEXT NOT NULL,
        fix TEXT NOT NULL,
        category TEXT NOT NULL,
        helped INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        session INTEGER REFERENCES sessions (id) ON DELETE SET NULL,
        turn TEXT NOT NULL,
        source TEXT NOT NULL,
        at TEXT NOT NULL,
        UNIQUE (principal, folded)
    ) STRICT;
    CREATE TABLE inquiries (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        principal TEXT NOT NULL,
        session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        turn TEXT NOT NULL,
        topic TEXT NOT NULL,
        question TEXT NOT NULL,
        why TEXT NOT NULL,
        priority TEXT NOT NULL,
        found_by TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'pending',
        created TEXT NOT NULL,
        offers INTEGER NOT NULL DEFAULT 0,
        offered_in INTEGER REFERENCES sessions (id) ON DELETE SET NULL,
        offered_at TEXT,
        answer TEXT,
        knowledge_key TEXT,
        closed TEXT,
        -- Each topic is asked about only once.
        UNIQUE (principal, topic)
    ) STRICT;
    CREATE INDEX inquiries_by_status ON inquiries (principal, status);
    -- The last scanned event of a session, for each kind of scan.
    CREATE TABLE looked_at (
        session INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
        outcomes INTEGER NOT NULL DEFAULT 0,
        answers INTEGER NOT NULL DEFAULT 0,
        gaps INTEGER NOT NULL DEFAULT 0,
        -- Time of the last model call for this session.
        asked TEXT
    ) STRICT;
";

/// Copies these tables from an attached backup.
pub(crate) const RESTORE: &str = "
    INSERT INTO knowledge SELECT * FROM backup.knowledge;
    INSERT INTO learnings SELECT * FROM backup.learnings;
    INSERT INTO inquiries SELECT * FROM backup.inquiries;
    INSERT INTO looked_at SELECT * FROM backup.looked_at;
";

impl KnowledgeStore for SqliteStore {
    fn save_entry<'a>(
        &'a self,
        principal: &'a Principal,
        entry: NewKnowledgeEntry,
    ) -> StoreFuture<'a, EntrySaved> {
        let principal = principal.to_string();
        async move {
            let saved = self.write(move |connection| {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let saved = entries::upsert(&transaction, &principal, &entry)?;
                transaction.commit()?;
                Ok(saved)
            });
            saved.await
        }
        .boxed()
    }

    fn entries<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<KnowledgeEntry>> {
        let principal = principal.to_string();
        async move {
            let found = self.read(move |connection| entries::newest(connection, &principal));
            found.await
        }
        .boxed()
    }

    fn history<'a>(
        &'a self,
        principal: &'a Principal,
        key: &'a str,
    ) -> StoreFuture<'a, Vec<KnowledgeEntry>> {
        let (principal, key) = (principal.to_string(), key.to_owned());
        async move {
            let found = self.read(move |connection| entries::history(connection, &principal, &key));
            found.await
        }
        .boxed()
    }

    fn forget<'a>(&'a self, principal: &'a Principal, key: &'a str) -> StoreFuture<'a, usize> {
        let (principal, key) = (principal.to_string(), key.to_owned());
        async move {
            let deleted = self
                .write(move |connection| entries::forget(connection, &principal, &key))
                .await?;
            if deleted > 0 {
                self.checkpoint_wal().await;
            }
            Ok(deleted)
        }
        .boxed()
    }

    fn save_learning<'a>(
        &'a self,
        principal: &'a Principal,
        learning: NewLearning,
    ) -> StoreFuture<'a, LearningSaved> {
        let principal = principal.to_string();
        async move {
            let saved =
                self.write(move |connection| learnings::save(connection, &principal, &learning));
            saved.await
        }
        .boxed()
    }

    fn learnings<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, Vec<Learning>> {
        let principal = principal.to_string();
        async move {
            let found = self.read(move |connection| learnings::list(connection, &principal));
            found.await
        }
        .boxed()
    }

    fn counted_through<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, u64> {
        let key = key.clone();
        async move {
            let counted = self.read(move |connection| learnings::counted_through(connection, &key));
            counted.await
        }
        .boxed()
    }

    fn record_outcomes<'a>(
        &'a self,
        key: &'a SessionKey,
        batch: OutcomeBatch,
    ) -> StoreFuture<'a, ()> {
        let key = key.clone();
        async move {
            let counted =
                self.write(move |connection| learnings::count_outcomes(connection, &key, &batch));
            counted.await
        }
        .boxed()
    }
}

/// Reads every entry and learning to find damaged rows.
pub(crate) fn read_all(reader: &RowReader<'_>) -> rusqlite::Result<()> {
    entries::read_all(reader)?;
    learnings::read_all(reader)
}

/// Reads the provenance from the columns session, turn and source at `at`, and the label after the
/// time column that follows them.
fn provenance(row: &Row<'_>, at: usize) -> rusqlite::Result<Provenance> {
    let label = event_rows::label_column(row, at + 4)?
        .unwrap_or_else(|| Label::untrusted("an earlier conversation"));
    Ok(Provenance {
        label,
        session: row.get::<_, Option<String>>(at)?.map(SessionId::new),
        turn: TurnId::new(row.get::<_, String>(at + 1)?),
        by: row.get(at + 2)?,
    })
}

pub(crate) fn timestamp(row: &Row<'_>, at: usize) -> rusqlite::Result<Timestamp> {
    Ok(row.get_ref(at)?.as_str()?.parse().unwrap_or_default())
}
