//! Knowledge and learnings in the same file as sessions.

use futures::future::FutureExt;
use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::event::{Principal, SessionId, TurnId};
use lango_domain::knowledge::{
    Effect, EntrySaved, FailureCategory, KnowledgeCategory, KnowledgeEntry, KnowledgeStore,
    Learning, LearningSaved, NewKnowledgeEntry, NewLearning, OutcomeBatch, Provenance,
};
use lango_domain::session::SessionKey;
use lango_domain::session::StoreFuture;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use crate::damage::display_column;
use crate::event_rows;
use crate::store::SqliteStore;

/// What is known stays when its session is deleted, without the session's name; what would still be asked about it goes.
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
        -- The trigger in small letters: each has one fix.
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
        -- What was asked or turned down once is not asked again.
        UNIQUE (principal, topic)
    ) STRICT;
    CREATE INDEX inquiries_by_status ON inquiries (principal, status);
    -- The last event of a session that was looked at, by what for.
    CREATE TABLE looked_at (
        session INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
        outcomes INTEGER NOT NULL DEFAULT 0,
        answers INTEGER NOT NULL DEFAULT 0,
        gaps INTEGER NOT NULL DEFAULT 0,
        -- When a model was last asked about it.
        asked TEXT
    ) STRICT;
";

/// Takes these tables over from an attached backup.
pub(crate) const RESTORE: &str = "
    INSERT INTO knowledge SELECT * FROM backup.knowledge;
    INSERT INTO learnings SELECT * FROM backup.learnings;
    INSERT INTO inquiries SELECT * FROM backup.inquiries;
    INSERT INTO looked_at SELECT * FROM backup.looked_at;
";

impl KnowledgeStore for SqliteStore {
    fn save_entry<'a>(
        &'a self,
        of: &'a Principal,
        entry: NewKnowledgeEntry,
    ) -> StoreFuture<'a, EntrySaved> {
        let of = of.to_string();
        async move {
            let kept = self.write(move |connection| {
                let change =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let kept = upsert_entry(&change, &of, &entry)?;
                change.commit()?;
                Ok(kept)
            });
            Ok(kept.await?)
        }
        .boxed()
    }

    fn entries<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, Vec<KnowledgeEntry>> {
        let of = of.to_string();
        async move {
            let found = self.read(move |connection| {
                let sql = format!(
                    "{SELECT_ENTRY} WHERE k.principal = ?1 AND NOT EXISTS (SELECT 1 FROM knowledge newer
                        WHERE newer.principal = k.principal AND newer.key = k.key AND newer.version > k.version)
                    ORDER BY k.id DESC"
                );
                connection.query_rows(&sql, [of], entry_name, entry)
            });
            Ok(found.await?)
        }
        .boxed()
    }

    fn history<'a>(
        &'a self,
        of: &'a Principal,
        key: &'a str,
    ) -> StoreFuture<'a, Vec<KnowledgeEntry>> {
        let (of, key) = (of.to_string(), key.to_owned());
        async move {
            let found = self.read(move |connection| {
                let sql = format!(
                    "{SELECT_ENTRY} WHERE k.principal = ?1 AND k.key = ?2 ORDER BY k.version DESC"
                );
                connection.query_rows(&sql, params![of, key], entry_name, entry)
            });
            Ok(found.await?)
        }
        .boxed()
    }

    fn forget<'a>(&'a self, of: &'a Principal, key: &'a str) -> StoreFuture<'a, usize> {
        let (of, key) = (of.to_string(), key.to_owned());
        async move {
            let gone = self
                .write(move |connection| {
                    let change =
                        connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                    let sql = "DELETE FROM knowledge WHERE principal = ?1 AND key = ?2";
                    let gone = change.execute(sql, params![of, key])?;
                    // The answer that it was made of goes with it.
                    let sql = "UPDATE inquiries SET answer = NULL, knowledge_key = NULL
                        WHERE principal = ?1 AND knowledge_key = ?2";
                    change.execute(sql, params![of, key])?;
                    change.commit()?;
                    Ok(gone)
                })
                .await?;
            if gone > 0 {
                self.checkpoint_wal().await;
            }
            Ok(gone)
        }
        .boxed()
    }

    fn save_learning<'a>(
        &'a self,
        of: &'a Principal,
        learning: NewLearning,
    ) -> StoreFuture<'a, LearningSaved> {
        let of = of.to_string();
        async move {
            Ok(self
                .write(move |connection| learn(connection, &of, &learning))
                .await?)
        }
        .boxed()
    }

    fn learnings<'a>(&'a self, of: &'a Principal) -> StoreFuture<'a, Vec<Learning>> {
        let of = of.to_string();
        async move {
            let found = self.read(move |connection| {
                let sql = format!("{SELECT_LEARNING} WHERE l.principal = ?1 ORDER BY l.id DESC");
                connection.query_rows(&sql, [of], learning_name, learning)
            });
            Ok(found.await?)
        }
        .boxed()
    }

    fn counted_through<'a>(&'a self, of: &'a SessionKey) -> StoreFuture<'a, u64> {
        let of = of.clone();
        async move {
            Ok(self
                .read(move |connection| counted_through(connection, &of))
                .await?)
        }
        .boxed()
    }

    fn record_outcomes<'a>(
        &'a self,
        of: &'a SessionKey,
        tally: OutcomeBatch,
    ) -> StoreFuture<'a, ()> {
        let of = of.clone();
        async move {
            Ok(self
                .write(move |connection| count_outcomes(connection, &of, &tally))
                .await?)
        }
        .boxed()
    }
}

pub(crate) const SELECT_ENTRY: &str =
    "SELECT k.key, k.version, k.category, k.content, k.tags, s.name, k.turn, k.source, k.at, k.label FROM knowledge k
    LEFT JOIN sessions s ON s.id = k.session";

pub(crate) const SELECT_LEARNING: &str =
    "SELECT l.id, l.trigger, l.fix, l.category, l.helped, l.failed, s.name, l.turn, l.source, l.at, l.label FROM learnings l
    LEFT JOIN sessions s ON s.id = l.session";

/// Within a change of the caller's.
pub(crate) fn upsert_entry(
    change: &Connection,
    of: &str,
    new: &NewKnowledgeEntry,
) -> rusqlite::Result<EntrySaved> {
    let sql = format!(
        "{SELECT_ENTRY} WHERE k.principal = ?1 AND k.key = ?2 ORDER BY k.version DESC LIMIT 1"
    );
    let known = change
        .prepare_cached(&sql)?
        .query_row(params![of, new.key], entry)
        .optional()?;
    if let Some(known) = &known
        && (known.category, &known.content, &known.tags) == (new.category, &new.content, &new.tags)
    {
        return Ok(EntrySaved::Same(known.version));
    }
    let version = known.as_ref().map_or(1, |known| known.version + 1);
    let tags = serde_json::to_string(&new.tags)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let sql = "INSERT INTO knowledge (principal, key, version, category, content, tags, session, turn, source, at, label)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, (SELECT id FROM sessions WHERE principal = ?1 AND name = ?7), ?8, ?9, ?10, ?11)";
    let (category, at) = (new.category.as_str(), event_rows::sortable_time(new.at));
    let session = new.source.session.as_ref().map(SessionId::as_str);
    let (turn, by) = (new.source.turn.as_str(), &new.source.by);
    change.prepare_cached(sql)?.execute(params![
        of,
        new.key,
        version,
        category,
        new.content,
        tags,
        session,
        turn,
        by,
        at,
        event_rows::label_json(&new.source.label)
    ])?;
    Ok(if version == 1 {
        EntrySaved::New
    } else {
        EntrySaved::Changed(version)
    })
}

pub(crate) fn entry_name(row: &Row<'_>) -> String {
    format!(
        "version {} of the knowledge `{}`",
        display_column(row, 1),
        display_column(row, 0)
    )
}

pub(crate) fn learning_name(row: &Row<'_>) -> String {
    format!("learning {}", display_column(row, 0))
}

pub(crate) fn entry(row: &Row<'_>) -> rusqlite::Result<KnowledgeEntry> {
    Ok(KnowledgeEntry {
        key: row.get(0)?,
        version: row.get(1)?,
        category: KnowledgeCategory::from_name(row.get_ref(2)?.as_str()?).unwrap_or_default(),
        content: row.get(3)?,
        tags: serde_json::from_str(row.get_ref(4)?.as_str()?).unwrap_or_default(),
        source: provenance(row, 5)?,
        at: timestamp(row, 8)?,
    })
}

/// Three columns, the session's name, the turn, and who; then the time, and the label.
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

fn learn(
    connection: &mut Connection,
    of: &str,
    new: &NewLearning,
) -> rusqlite::Result<LearningSaved> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let folded = new.trigger.to_lowercase();
    let sql = "SELECT id, fix, failed FROM learnings WHERE principal = ?1 AND folded = ?2";
    let known = |row: &Row<'_>| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, u32>(2)?,
        ))
    };
    let known = change
        .query_row(sql, params![of, folded], known)
        .optional()?;
    let (category, at) = (new.category.as_str(), event_rows::sortable_time(new.at));
    let session = new.source.session.as_ref().map(SessionId::as_str);
    let (turn, by) = (new.source.turn.as_str(), &new.source.by);
    let label = event_rows::label_json(&new.source.label);
    let learned = match known {
        Some((id, fix, 0)) if fix == new.fix => LearningSaved::Same(id as u64),
        Some((id, ..)) => {
            let sql = "UPDATE learnings SET trigger = ?3, fix = ?4, category = ?5, helped = 0, failed = 0,
                session = (SELECT id FROM sessions WHERE principal = ?1 AND name = ?6), turn = ?7, source = ?8, at = ?9, label = ?10
                WHERE principal = ?1 AND id = ?2";
            change.execute(
                sql,
                params![
                    of,
                    id,
                    new.trigger,
                    new.fix,
                    category,
                    session,
                    turn,
                    by,
                    at,
                    label
                ],
            )?;
            LearningSaved::Changed(id as u64)
        }
        None => {
            let sql =
                "INSERT INTO learnings (principal, trigger, folded, fix, category, session, turn, source, at, label)
                VALUES (?1, ?2, ?3, ?4, ?5, (SELECT id FROM sessions WHERE principal = ?1 AND name = ?6), ?7, ?8, ?9, ?10)";
            change.execute(
                sql,
                params![
                    of,
                    new.trigger,
                    folded,
                    new.fix,
                    category,
                    session,
                    turn,
                    by,
                    at,
                    label
                ],
            )?;
            LearningSaved::New(change.last_insert_rowid() as u64)
        }
    };
    change.commit()?;
    Ok(learned)
}

pub(crate) fn learning(row: &Row<'_>) -> rusqlite::Result<Learning> {
    Ok(Learning {
        id: row.get::<_, i64>(0)? as u64,
        trigger: row.get(1)?,
        fix: row.get(2)?,
        category: FailureCategory::from_name(row.get_ref(3)?.as_str()?).unwrap_or_default(),
        helped: row.get(4)?,
        failed: row.get(5)?,
        source: provenance(row, 6)?,
        at: timestamp(row, 9)?,
    })
}

fn counted_through(connection: &Connection, of: &SessionKey) -> rusqlite::Result<u64> {
    let sql = "SELECT l.outcomes FROM looked_at l JOIN sessions s ON s.id = l.session WHERE s.principal = ?1 AND s.name = ?2";
    let key = params![of.principal.as_str(), of.session.as_str()];
    let found = connection
        .prepare_cached(sql)?
        .query_row(key, |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(found.unwrap_or_default() as u64)
}

fn count_outcomes(
    connection: &mut Connection,
    of: &SessionKey,
    tally: &OutcomeBatch,
) -> rusqlite::Result<()> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(place) =
        event_rows::find_session(&change, of.principal.as_str(), of.session.as_str())?
    else {
        return Ok(());
    };
    if counted_through(&change, of)? != tally.after {
        return Ok(());
    }
    let sql = "INSERT INTO looked_at (session, outcomes) VALUES (?1, ?2) ON CONFLICT (session) DO UPDATE SET outcomes = ?2";
    change.execute(sql, params![place.id, tally.through as i64])?;
    for outcome in &tally.outcomes {
        let column = match outcome.effect {
            Effect::Helped => "helped",
            Effect::Failed => "failed",
        };
        let sql = format!(
            "UPDATE learnings SET {column} = {column} + 1 WHERE principal = ?1 AND id = ?2"
        );
        change.execute(
            &sql,
            params![of.principal.as_str(), outcome.learning as i64],
        )?;
    }
    change.commit()
}

/// What a session was made of happened elsewhere, and was looked at there.
pub(crate) fn mark_as_counted(
    change: &Connection,
    session: i64,
    events: usize,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO looked_at (session, outcomes, answers, gaps) VALUES (?1, ?2, ?2, ?2)";
    change
        .execute(sql, params![session, events as i64])
        .map(drop)
}
