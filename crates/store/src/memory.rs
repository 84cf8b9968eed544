//! Memory of conversations, in the same file as the sessions that it comes from.

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

/// The tables. What was observed goes with its session; what somebody asked for stays, and cites it no more.
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
        -- The last event of the piece that it was observed in; nothing where somebody asked for it.
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
    -- Events that nothing may be remembered of any more, wherever a copy of their turn is.
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

/// Takes these tables over from an attached backup. What was forgotten since stays marked.
pub(crate) const RESTORE: &str = "
    INSERT INTO observed_pieces SELECT * FROM backup.observed_pieces;
    INSERT INTO memory_progress SELECT * FROM backup.memory_progress;
    INSERT INTO observations SELECT * FROM backup.observations;
    INSERT INTO reflections SELECT * FROM backup.reflections;
    INSERT INTO reflection_sources SELECT * FROM backup.reflection_sources;
    INSERT OR IGNORE INTO forgotten_events SELECT * FROM backup.forgotten_events;
";

/// Whoever deletes a session by name deletes what was asked to be remembered in it, too.
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

/// Every memory, only to see whether it can be read.
pub(crate) fn read_all(reader: &RowReader<'_>) -> rusqlite::Result<()> {
    rows::observations(reader, "TRUE", [])?;
    rows::reflections(reader, "TRUE", []).map(drop)
}

impl SqliteStore {
    fn read_memories<'a, T, Look>(&'a self, look: Look) -> StoreFuture<'a, T>
    where
        T: Send + 'static,
        Look: FnOnce(&RowReader<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        async move { Ok(self.read(look).await?) }.boxed()
    }

    fn write_memories<'a, T, Keep>(&'a self, keep: Keep) -> StoreFuture<'a, T>
    where
        T: Send + 'static,
        Keep: FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        async move { Ok(self.write(keep).await?) }.boxed()
    }
}

impl MemoryStore for SqliteStore {
    fn progress<'a>(&'a self, of: &'a SessionKey) -> StoreFuture<'a, ObservationProgress> {
        let of = of.clone();
        self.read_memories(move |connection| observations::progress(connection, &of))
    }

    fn turns_after<'a>(
        &'a self,
        of: &'a SessionKey,
        seq: u64,
        bytes: usize,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        let of = of.clone();
        self.read_memories(move |connection| observations::turns_after(connection, &of, seq, bytes))
    }

    fn request<'a>(
        &'a self,
        of: &'a SessionKey,
        turn: &'a TurnId,
    ) -> StoreFuture<'a, Option<(u64, String)>> {
        let (of, turn) = (of.clone(), turn.clone());
        self.read_memories(move |connection| observations::request(connection, &of, &turn))
    }

    fn events<'a>(
        &'a self,
        of: &'a SessionKey,
        seqs: Vec<u64>,
    ) -> StoreFuture<'a, Vec<Arc<Event>>> {
        let of = of.clone();
        self.read_memories(move |connection| observations::events(connection, &of, &seqs))
    }

    fn forgotten_events<'a>(
        &'a self,
        of: &'a Principal,
        events: Vec<(TurnId, u64)>,
    ) -> StoreFuture<'a, Vec<u64>> {
        let of = of.to_string();
        self.read_memories(move |connection| forget::forgotten_events(connection, &of, &events))
    }

    fn save_span<'a>(
        &'a self,
        of: &'a SessionKey,
        piece: ObservedSpan,
    ) -> StoreFuture<'a, MemoryWrite> {
        let of = of.clone();
        self.write_memories(move |connection| observations::save_span(connection, &of, &piece))
    }

    fn activate<'a>(&'a self, of: &'a SessionKey, through: u64) -> StoreFuture<'a, ()> {
        let of = of.clone();
        self.write_memories(move |connection| observations::activate(connection, &of, through))
    }

    fn digest_memories<'a>(&'a self, of: &'a SessionKey) -> StoreFuture<'a, Vec<Memory>> {
        let of = of.clone();
        self.read_memories(move |connection| reflections::digest_memories(connection, &of))
    }

    fn uncondensed_memories<'a>(&'a self, of: &'a SessionKey) -> StoreFuture<'a, Vec<Memory>> {
        let of = of.clone();
        self.read_memories(move |connection| reflections::uncondensed(connection, &of))
    }

    fn save_reflections<'a>(
        &'a self,
        of: &'a SessionKey,
        new: NewReflections,
    ) -> StoreFuture<'a, MemoryWrite> {
        let of = of.clone();
        self.write_memories(move |connection| reflections::save_reflections(connection, &of, &new))
    }

    fn store<'a>(&'a self, of: &'a SessionKey, memory: NewMemory) -> StoreFuture<'a, MemoryId> {
        let of = of.clone();
        self.write_memories(move |connection| rows::store(connection, &of, &memory))
    }

    fn save_backoff<'a>(
        &'a self,
        of: &'a SessionKey,
        setback: ObserverBackoff,
    ) -> StoreFuture<'a, ()> {
        let of = of.clone();
        self.write_memories(move |connection| observations::save_backoff(connection, &of, &setback))
    }

    fn record_usage<'a>(
        &'a self,
        of: &'a SessionKey,
        turn: TurnId,
        usage: Usage,
    ) -> StoreFuture<'a, ()> {
        let principal = of.principal.to_string();
        self.write_memories(move |connection| {
            observations::record_usage(connection, &principal, &turn, &usage)
        })
    }

    fn revision<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, MemoryRevision> {
        let of = of.to_string();
        self.read_memories(move |connection| rows::revision(connection, &of))
    }

    fn observations_after<'a>(
        &'a self,
        of: &'a Principal,
        id: u64,
        most: usize,
    ) -> StoreFuture<'a, Vec<Memory>> {
        let of = of.to_string();
        self.read_memories(move |connection| rows::observations_after(connection, &of, id, most))
    }

    fn list<'a>(&'a self, of: &'a Principal, which: MemoryQuery) -> StoreFuture<'a, Vec<Memory>> {
        let of = of.to_string();
        self.read_memories(move |connection| rows::list(connection, &of, &which))
    }

    fn memory<'a>(&'a self, of: &'a Principal, id: MemoryId) -> StoreFuture<'a, Option<Memory>> {
        let of = of.to_string();
        self.read_memories(move |connection| rows::memory(connection, &of, id))
    }

    fn stats<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, MemoryStats> {
        let of = of.to_string();
        self.read_memories(move |connection| rows::stats(connection, &of))
    }
}
