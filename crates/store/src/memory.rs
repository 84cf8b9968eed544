//! Storage of conversation memory: observations and reflections.

mod forget;
mod observations;
mod reflections;
mod rows;

use std::sync::Arc;

use futures::future::FutureExt;
use lango_domain::event::{Event, Principal, TurnId, Usage};
use lango_domain::memory::{
    Memory, MemoryId, MemoryQuery, MemoryRevision, MemoryStats, MemoryStore, MemoryWrite,
    NewMemory, NewReflections, ObservationProgress, ObservedSpan, ObserverBackoff,
};
use lango_domain::session::SessionKey;
use lango_domain::session::StoreFuture;
use rusqlite::Connection;

use crate::damage::RowReader;
use crate::store::SqliteStore;

pub(crate) use forget::{delete_rows, mark_forgotten};

/// The tables. Deleting a session deletes its observations, except those that the user asked for:
/// these stay without their sources.
pub(crate) const TABLES: &str = "
    CREATE TABLE observed_pieces (
        session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        last INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        origin TEXT NOT NULL,
        PRIMARY KEY (session, last)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE memory_progress (
        session INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
        active INTEGER NOT NULL DEFAULT 0,
        generation INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0,
        unusable INTEGER NOT NULL DEFAULT 0,
        not_before TEXT
    ) STRICT;
    CREATE TABLE observations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        principal TEXT NOT NULL,
        session TEXT NOT NULL,
        -- The last event of the observed span; NULL if the user asked for this memory.
        through INTEGER,
        at TEXT NOT NULL,
        kind TEXT NOT NULL,
        priority TEXT NOT NULL,
        words TEXT NOT NULL,
        origin TEXT NOT NULL,
        text TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        sources TEXT NOT NULL,
        is_condensed INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX observations_of ON observations (principal, session, id);
    CREATE INDEX observations_by_age ON observations (principal, id);
    CREATE TABLE reflections (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        principal TEXT NOT NULL,
        session TEXT NOT NULL,
        generation INTEGER NOT NULL,
        at TEXT NOT NULL,
        kind TEXT NOT NULL,
        priority TEXT NOT NULL,
        words TEXT NOT NULL,
        origin TEXT NOT NULL,
        text TEXT NOT NULL,
        tokens INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX reflections_of ON reflections (principal, session, id);
    CREATE TABLE reflection_sources (
        reflection INTEGER NOT NULL REFERENCES reflections (id) ON DELETE CASCADE,
        observation INTEGER NOT NULL,
        PRIMARY KEY (reflection, observation)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX reflections_from ON reflection_sources (observation);
    -- Events that must not be remembered again, in any copy of their turn.
    CREATE TABLE forgotten_events (
        principal TEXT NOT NULL,
        turn TEXT NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY (principal, turn, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE observations_gone (
        principal TEXT PRIMARY KEY,
        count INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER observation_gone AFTER DELETE ON observations BEGIN
        INSERT INTO observations_gone (principal, count) VALUES (old.principal, 1)
            ON CONFLICT (principal) DO UPDATE SET count = count + 1;
    END;
    CREATE TRIGGER memory_of_a_session AFTER DELETE ON sessions BEGIN
        DELETE FROM observations WHERE principal = old.principal AND session = old.name AND through IS NOT NULL;
        DELETE FROM reflections WHERE principal = old.principal AND session = old.name;
        UPDATE observations SET sources = '[]' WHERE principal = old.principal AND session = old.name;
    END;
";

/// Copies these tables from an attached backup. Events forgotten since the backup stay forgotten.
pub(crate) const RESTORE: &str = "
    INSERT INTO observed_pieces SELECT * FROM backup.observed_pieces;
    INSERT INTO memory_progress SELECT * FROM backup.memory_progress;
    INSERT INTO observations SELECT * FROM backup.observations;
    INSERT INTO reflections SELECT * FROM backup.reflections;
    INSERT INTO reflection_sources SELECT * FROM backup.reflection_sources;
    INSERT OR IGNORE INTO forgotten_events SELECT * FROM backup.forgotten_events;
";

/// Deletes all observations of a session, including those that the user asked for. Used when a
/// session is deleted by name.
pub(crate) fn delete_session_observations(
    connection: &Connection,
    principal: &str,
    session: &str,
) -> rusqlite::Result<usize> {
    connection.execute(
        "DELETE FROM observations WHERE principal = ?1 AND session = ?2",
        [principal, session],
    )
}

/// Reads every memory to find damaged rows.
pub(crate) fn read_all(reader: &RowReader<'_>) -> rusqlite::Result<()> {
    rows::observations(reader, "TRUE", [])?;
    rows::reflections(reader, "TRUE", []).map(drop)
}

impl SqliteStore {
    fn read_memories<'a, T, Read>(&'a self, read: Read) -> StoreFuture<'a, T>
    where
        T: Send + 'static,
        Read: FnOnce(&RowReader<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        async move { self.read(read).await }.boxed()
    }

    fn write_memories<'a, T, Write>(&'a self, write: Write) -> StoreFuture<'a, T>
    where
        T: Send + 'static,
        Write: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        async move { self.write(write).await }.boxed()
    }
}

impl MemoryStore for SqliteStore {
    fn progress<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, ObservationProgress> {
        let key = key.clone();
        self.read_memories(move |connection| observations::progress(connection, &key))
    }

    fn turns_after<'a>(
        &'a self,
        key: &'a SessionKey,
        seq: u64,
        min_bytes: usize,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        let key = key.clone();
        self.read_memories(move |connection| {
            observations::turns_after(connection, &key, seq, min_bytes)
        })
    }

    fn request<'a>(
        &'a self,
        key: &'a SessionKey,
        turn: &'a TurnId,
    ) -> StoreFuture<'a, Option<(u64, String)>> {
        let (key, turn) = (key.clone(), turn.clone());
        self.read_memories(move |connection| observations::request(connection, &key, &turn))
    }

    fn events<'a>(
        &'a self,
        key: &'a SessionKey,
        seqs: Vec<u64>,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        let key = key.clone();
        self.read_memories(move |connection| observations::events(connection, &key, &seqs))
    }

    fn forgotten_events<'a>(
        &'a self,
        principal: &'a Principal,
        events: Vec<(TurnId, u64)>,
    ) -> StoreFuture<'a, Vec<u64>> {
        let principal = principal.to_string();
        self.read_memories(move |connection| {
            forget::forgotten_events(connection, &principal, &events)
        })
    }

    fn save_span<'a>(
        &'a self,
        key: &'a SessionKey,
        span: ObservedSpan,
    ) -> StoreFuture<'a, MemoryWrite> {
        let key = key.clone();
        self.write_memories(move |connection| observations::save_span(connection, &key, &span))
    }

    fn activate<'a>(&'a self, key: &'a SessionKey, through: u64) -> StoreFuture<'a, ()> {
        let key = key.clone();
        self.write_memories(move |connection| observations::activate(connection, &key, through))
    }

    fn digest_memories<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Memory>> {
        let key = key.clone();
        self.read_memories(move |connection| reflections::digest_memories(connection, &key))
    }

    fn uncondensed_memories<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Memory>> {
        let key = key.clone();
        self.read_memories(move |connection| reflections::uncondensed(connection, &key))
    }

    fn save_reflections<'a>(
        &'a self,
        key: &'a SessionKey,
        new: NewReflections,
    ) -> StoreFuture<'a, MemoryWrite> {
        let key = key.clone();
        self.write_memories(move |connection| reflections::save_reflections(connection, &key, &new))
    }

    fn store<'a>(&'a self, key: &'a SessionKey, memory: NewMemory) -> StoreFuture<'a, MemoryId> {
        let key = key.clone();
        self.write_memories(move |connection| rows::store(connection, &key, &memory))
    }

    fn save_backoff<'a>(
        &'a self,
        key: &'a SessionKey,
        backoff: ObserverBackoff,
    ) -> StoreFuture<'a, ()> {
        let key = key.clone();
        self.write_memories(move |connection| {
            observations::save_backoff(connection, &key, &backoff)
        })
    }

    fn record_usage<'a>(
        &'a self,
        key: &'a SessionKey,
        turn: TurnId,
        usage: Usage,
    ) -> StoreFuture<'a, ()> {
        let principal = key.principal.to_string();
        self.write_memories(move |connection| {
            observations::record_usage(connection, &principal, &turn, &usage)
        })
    }

    fn revision<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, MemoryRevision> {
        let principal = principal.to_string();
        self.read_memories(move |connection| rows::revision(connection, &principal))
    }

    fn observations_after<'a>(
        &'a self,
        principal: &'a Principal,
        id: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Memory>> {
        let principal = principal.to_string();
        self.read_memories(move |connection| {
            rows::observations_after(connection, &principal, id, limit)
        })
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        query: MemoryQuery,
    ) -> StoreFuture<'a, Vec<Memory>> {
        let principal = principal.to_string();
        self.read_memories(move |connection| rows::list(connection, &principal, &query))
    }

    fn memory<'a>(
        &'a self,
        principal: &'a Principal,
        id: MemoryId,
    ) -> StoreFuture<'a, Option<Memory>> {
        let principal = principal.to_string();
        self.read_memories(move |connection| rows::memory(connection, &principal, id))
    }

    fn stats<'a>(&'a self, principal: &'a Principal) -> StoreFuture<'a, MemoryStats> {
        let principal = principal.to_string();
        self.read_memories(move |connection| rows::stats(connection, &principal))
    }
}
