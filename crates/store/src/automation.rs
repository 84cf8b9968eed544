//! Storage of automation: jobs, runs, deliveries and the scheduler's lease.

mod claims;
mod deliveries;
mod jobs;
mod lease;
mod rows;
mod runs;
mod saved_workflows;
mod steps;
mod upkeep;

pub(crate) const TABLES: &str = "
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        principal TEXT NOT NULL,
        name TEXT NOT NULL,
        schedule TEXT NOT NULL,
        catch_up TEXT NOT NULL,
        grace_seconds INTEGER NOT NULL,
        overlap TEXT NOT NULL,
        enabled INTEGER NOT NULL,
        spec TEXT NOT NULL,
        created TEXT NOT NULL,
        version INTEGER NOT NULL,
        decided_until TEXT NOT NULL,
        next_due TEXT,
        UNIQUE (principal, name)
    ) STRICT;
    CREATE INDEX jobs_by_due ON jobs (next_due) WHERE next_due IS NOT NULL;
    -- One row per occurrence. A run is over when it has an end.
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        job INTEGER REFERENCES jobs (id) ON DELETE SET NULL,
        principal TEXT NOT NULL,
        name TEXT NOT NULL,
        due TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT,
        attempt INTEGER NOT NULL DEFAULT 0,
        lease INTEGER,
        session TEXT,
        created TEXT NOT NULL,
        started TEXT,
        ended TEXT,
        resume_at TEXT,
        is_cancel_requested INTEGER NOT NULL DEFAULT 0,
        spec TEXT NOT NULL,
        result TEXT,
        error TEXT,
        label TEXT,
        UNIQUE (job, due)
    ) STRICT;
    CREATE INDEX open_runs ON runs (due, id) WHERE ended IS NULL;
    CREATE INDEX open_runs_by_job ON runs (job) WHERE ended IS NULL;
    CREATE INDEX runs_by_principal ON runs (principal, id);
    CREATE INDEX runs_by_session ON runs (principal, session) WHERE session IS NOT NULL;
    CREATE TABLE run_steps (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        step TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT,
        attempt INTEGER NOT NULL,
        started TEXT,
        ended TEXT,
        session TEXT,
        result TEXT,
        error TEXT,
        label TEXT,
        is_repeated INTEGER NOT NULL,
        decision TEXT,
        UNIQUE (run, step)
    ) STRICT;
    CREATE INDEX run_steps_by_session ON run_steps (session) WHERE session IS NOT NULL;
    CREATE TABLE workflows (
        principal TEXT NOT NULL,
        name TEXT NOT NULL,
        version INTEGER NOT NULL,
        definition TEXT NOT NULL,
        saved TEXT NOT NULL,
        PRIMARY KEY (principal, name, version)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE deliveries (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER REFERENCES runs (id) ON DELETE CASCADE,
        principal TEXT NOT NULL,
        occasion TEXT NOT NULL,
        target TEXT NOT NULL,
        message TEXT NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        created TEXT NOT NULL,
        next_try TEXT NOT NULL,
        last_error TEXT
    ) STRICT;
    CREATE INDEX pending_deliveries ON deliveries (next_try) WHERE state = 'pending';
    CREATE INDEX deliveries_by_run ON deliveries (run);
    CREATE INDEX deliveries_by_principal ON deliveries (principal, id);
    CREATE TABLE inbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        principal TEXT NOT NULL,
        at TEXT NOT NULL,
        message TEXT NOT NULL,
        session TEXT,
        is_read INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX inbox_by_principal ON inbox (principal, id);
    CREATE TABLE scheduler_lease (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        number INTEGER NOT NULL,
        owner TEXT NOT NULL,
        acquired TEXT NOT NULL,
        until TEXT NOT NULL
    ) STRICT;
    -- What is left of a deleted session: that something ran, but not what was said.
    CREATE TRIGGER runs_without_their_session AFTER DELETE ON sessions BEGIN
        UPDATE run_steps SET session = NULL, result = NULL, error = NULL
            WHERE session = old.name
            AND run IN (SELECT id FROM runs WHERE principal = old.principal AND ended IS NOT NULL);
        UPDATE runs SET session = NULL, result = NULL, error = NULL
            WHERE principal = old.principal AND session = old.name AND ended IS NOT NULL;
        UPDATE inbox SET session = NULL WHERE principal = old.principal AND session = old.name;
    END;
";

/// Questions of turns are rows of their own, next to the steps of the run.
pub(crate) const QUESTIONS_AND_ACTIVE_TIME: &str = "
    ALTER TABLE run_steps ADD COLUMN question TEXT;
    ALTER TABLE run_steps ADD COLUMN deadline TEXT;
    ALTER TABLE runs ADD COLUMN active_ms INTEGER NOT NULL DEFAULT 0;
";
