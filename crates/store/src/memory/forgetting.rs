//! Taking memories out for good.

use std::collections::BTreeSet;

use lango_domain::event::TurnId;
use lango_domain::memory::{Memory, MemoryId};
use rusqlite::{Connection, TransactionBehavior, params};

use super::{Owned, remembered};

/// In one change: the observations, every reflection that was made of one of them, and a mark on their events. What such a
/// reflection told of other observations is told by those again.
pub fn forget(connection: &mut Connection, of: &str, ids: &[MemoryId]) -> rusqlite::Result<Vec<Memory>> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut gone = Vec::new();
    for id in meant(&change, of, ids)? {
        let values = params![of, id as i64];
        gone.extend(remembered::observations(&change, "principal = ?1 AND id = ?2", values)?);
    }
    let mut reflections = BTreeSet::new();
    for id in ids {
        reflections.extend(match id {
            MemoryId::Reflection(id) => Some(*id as i64),
            MemoryId::Observation(_) => None,
        });
    }
    for memory in &gone {
        mark(&change, of, memory)?;
        reflections.extend(made_of(&change, memory)?);
    }
    let observed = gone.len();
    for id in &reflections {
        gone.extend(remembered::reflections(&change, "principal = ?1 AND id = ?2", params![of, id])?);
    }
    take_out(&change, &gone[..observed], &gone[observed..])?;
    change.commit()?;
    Ok(gone)
}

/// The observations that are meant; a reflection stands for what it condenses.
fn meant(connection: &Connection, of: &str, ids: &[MemoryId]) -> rusqlite::Result<BTreeSet<u64>> {
    let mut meant = BTreeSet::new();
    for id in ids {
        match id {
            MemoryId::Observation(id) => _ = meant.insert(*id),
            MemoryId::Reflection(id) => {
                let condition = "principal = ?1 AND id = ?2";
                let found = remembered::reflections(connection, condition, params![of, *id as i64])?;
                meant.extend(found.into_iter().flat_map(|reflection| reflection.condenses));
            }
        }
    }
    Ok(meant)
}

fn made_of(connection: &Connection, memory: &Memory) -> rusqlite::Result<Vec<i64>> {
    let MemoryId::Observation(id) = memory.id else { return Ok(Vec::new()) };
    let sql = "SELECT reflection FROM reflection_sources WHERE observation = ?1";
    connection.prepare_cached(sql)?.query_map([id as i64], |row| row.get(0))?.collect()
}

fn mark(connection: &Connection, of: &str, memory: &Memory) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO forgotten_events (principal, turn, seq)
        SELECT ?1, e.turn, e.seq FROM events e JOIN sessions s ON s.id = e.session
        WHERE s.principal = ?1 AND s.name = ?2 AND e.seq = ?3";
    let mut mark = connection.prepare_cached(sql)?;
    for seq in &memory.sources {
        mark.execute(params![of, memory.session.as_str(), *seq as i64])?;
    }
    Ok(())
}

fn take_out(
    connection: &Connection,
    observations: &[Memory],
    reflections: &[Memory],
) -> rusqlite::Result<()> {
    for memory in reflections {
        let MemoryId::Reflection(id) = memory.id else { continue };
        connection.prepare_cached("DELETE FROM reflections WHERE id = ?1")?.execute([id as i64])?;
    }
    for memory in observations {
        let MemoryId::Observation(id) = memory.id else { continue };
        connection.prepare_cached("DELETE FROM observations WHERE id = ?1")?.execute([id as i64])?;
    }
    let sql = "UPDATE observations SET is_condensed = 0 WHERE id = ?1
        AND NOT EXISTS (SELECT 1 FROM reflection_sources WHERE observation = ?1)";
    let mut bring_back = connection.prepare_cached(sql)?;
    for id in reflections.iter().flat_map(|reflection| &reflection.condenses) {
        bring_back.execute([*id as i64])?;
    }
    Ok(())
}

pub fn forgotten(connection: &Connection, of: &str, events: &[(TurnId, u64)]) -> rusqlite::Result<Vec<u64>> {
    let sql = "SELECT count(*) FROM forgotten_events WHERE principal = ?1 AND turn = ?2 AND seq = ?3";
    let mut query = connection.prepare_cached(sql)?;
    let mut found = Vec::new();
    for (turn, seq) in events {
        let marks: i64 = query.query_row(params![of, turn.as_str(), *seq as i64], |row| row.get(0))?;
        if marks > 0 {
            found.push(*seq);
        }
    }
    Ok(found)
}

/// Whether one of a session's events is marked.
pub fn touches_forgotten(connection: &Connection, of: &Owned, seqs: &[u64]) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM forgotten_events f JOIN events e ON e.turn = f.turn AND e.seq = f.seq
        JOIN sessions s ON s.id = e.session
        WHERE f.principal = ?1 AND s.principal = ?1 AND s.name = ?2 AND e.seq = ?3";
    let mut query = connection.prepare_cached(sql)?;
    for seq in seqs {
        let marks: i64 = query.query_row(params![of.principal, of.session, *seq as i64], |row| row.get(0))?;
        if marks > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
