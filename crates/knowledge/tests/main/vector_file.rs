//! The file of vectors: any number of processes read it, one writes, and it may be torn, replaced or deleted.

use std::fs;
use std::path::{Path, PathBuf};

use lango_domain::documents::ChunkOwner;
use lango_domain::event::{Principal, SessionId};
use lango_knowledge::vectors::{VectorError, VectorFile, VectorFileError, VectorRecord};
use tempfile::TempDir;

fn owner(name: &str) -> ChunkOwner {
    ChunkOwner {
        principal: Principal::new(name),
        collection: "문서".to_owned(),
        session: Some(SessionId::new("s")),
    }
}

fn vector_record(id: u64, whose: &str, vector: &[f32]) -> VectorRecord {
    VectorRecord {
        id,
        owner: owner(whose),
        vector: vector.to_vec(),
    }
}

fn open(folder: &Path) -> VectorFile {
    let mut kept = VectorFile::new(folder, "embedder/1");
    kept.refresh().unwrap();
    kept
}

fn append(kept: &mut VectorFile, upto: u64, removed: Vec<u64>, rows: Vec<VectorRecord>) {
    let lock = kept.try_lock().unwrap().unwrap();
    kept.append(&lock, upto, removed, rows).unwrap();
}

fn found(kept: &VectorFile, whose: &str) -> Vec<u64> {
    let hits = kept
        .search(&[1.0, 0.5, 0.0], 10, |owner| {
            owner.principal.as_str() == whose
        })
        .unwrap();
    hits.into_iter().map(|(id, _)| id).collect()
}

fn file(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .find(|path| path.extension().is_some_and(|ending| ending == "vectors"))
        .unwrap()
}

#[test]
fn what_one_process_writes_another_reads() {
    let folder = TempDir::new().unwrap();
    let (mut one, mut other) = (open(folder.path()), open(folder.path()));
    append(
        &mut one,
        3,
        vec![],
        vec![
            vector_record(1, "a", &[1.0, 0.0, 0.0]),
            vector_record(2, "b", &[1.0, 0.0, 0.0]),
        ],
    );
    append(
        &mut one,
        4,
        vec![],
        vec![vector_record(3, "a", &[0.0, 1.0, 0.0])],
    );
    other.refresh().unwrap();
    for kept in [&one, &other, &open(folder.path())] {
        assert_eq!(
            (kept.applied_through(), found(kept, "a"), found(kept, "b")),
            (4, vec![1, 3], vec![2])
        );
        assert!(found(kept, "c").is_empty());
    }
    // A piece can come back with other words, as after a backup was restored.
    append(
        &mut other,
        9,
        vec![1, 77],
        vec![vector_record(2, "a", &[0.0, 0.0, 1.0])],
    );
    one.refresh().unwrap();
    assert_eq!(
        (one.applied_through(), found(&one, "a"), found(&one, "b")),
        (9, vec![3, 2], vec![])
    );
}

#[test]
fn one_writes_at_a_time() {
    let folder = TempDir::new().unwrap();
    let (one, other) = (open(folder.path()), open(folder.path()));
    let lock = one.try_lock().unwrap();
    assert!(lock.is_some() && other.try_lock().unwrap().is_none());
    drop(lock);
    assert!(other.try_lock().unwrap().is_some());
}

/// Whatever a crash leaves, the batches before it count, and the next writer goes on behind them.
#[test]
fn a_torn_file_is_read_up_to_the_tear() {
    let folder = TempDir::new().unwrap();
    let mut kept = open(folder.path());
    append(
        &mut kept,
        1,
        vec![],
        vec![vector_record(1, "a", &[1.0, 0.0, 0.0])],
    );
    let first = fs::metadata(file(folder.path())).unwrap().len() as usize;
    append(
        &mut kept,
        2,
        vec![],
        vec![vector_record(2, "a", &[0.0, 1.0, 0.0])],
    );
    let whole = fs::read(file(folder.path())).unwrap();
    for length in [
        0,
        5,
        8,
        20,
        first - 1,
        first,
        first + 1,
        first + 16,
        whole.len() - 1,
    ] {
        fs::write(file(folder.path()), &whole[..length]).unwrap();
        let mut torn = open(folder.path());
        let left = if length >= first { 1 } else { 0 };
        assert_eq!(torn.applied_through(), left, "{length} bytes");
        append(
            &mut torn,
            2,
            vec![],
            vec![vector_record(2, "a", &[0.0, 1.0, 0.0])],
        );
        assert_eq!(open(folder.path()).applied_through(), 2, "{length} bytes");
        assert_eq!(found(&open(folder.path()), "a").contains(&1), left == 1);
    }
    for at in [0, 9, first + 3, first + 12, first + 40, whole.len() - 1] {
        let mut broken = whole.clone();
        broken[at] ^= 0x41;
        fs::write(file(folder.path()), broken).unwrap();
        assert_eq!(
            open(folder.path()).applied_through(),
            u64::from(at >= first),
            "byte {at}"
        );
    }
}

#[test]
fn a_file_that_is_deleted_or_replaced_begins_anew() {
    let folder = TempDir::new().unwrap();
    let words = folder.path().join("words");
    let mut kept = open(&words);
    append(
        &mut kept,
        5,
        vec![],
        vec![vector_record(1, "a", &[1.0, 0.0, 0.0])],
    );
    let lock = kept.try_lock().unwrap().unwrap();
    fs::remove_dir_all(&words).unwrap();
    kept.append(
        &lock,
        6,
        vec![],
        vec![vector_record(2, "a", &[1.0, 0.0, 0.0])],
    )
    .unwrap();
    assert!(
        !words.exists(),
        "whoever deletes it need not wait for its writer"
    );
    kept.refresh().unwrap();
    assert_eq!((kept.applied_through(), found(&kept, "a")), (0, vec![]));
    append(
        &mut open(&words),
        7,
        vec![],
        vec![vector_record(3, "a", &[1.0, 0.0, 0.0])],
    );
    kept.refresh().unwrap();
    assert_eq!((kept.applied_through(), found(&kept, "a")), (7, vec![3]));
}

#[test]
fn vectors_of_other_lengths_or_embedders_stay_out() {
    let folder = TempDir::new().unwrap();
    let mut kept = open(folder.path());
    append(
        &mut kept,
        1,
        vec![],
        vec![vector_record(1, "a", &[1.0, 0.0, 0.0])],
    );
    let lock = kept.try_lock().unwrap().unwrap();
    let refused = kept.append(&lock, 2, vec![], vec![vector_record(2, "a", &[1.0, 0.0])]);
    let expected = VectorError::Dimensions {
        expected: 3,
        found: 2,
    };
    assert!(matches!(refused, Err(VectorFileError::Vector(error)) if error == expected));
    let refused = kept.append(
        &lock,
        2,
        vec![],
        vec![vector_record(2, "a", &[1.0, f32::NAN, 0.0])],
    );
    assert!(matches!(
        refused,
        Err(VectorFileError::Vector(VectorError::NotFinite))
    ));
    assert_eq!(
        (kept.applied_through(), found(&open(folder.path()), "a")),
        (1, vec![1])
    );
    let mut other = VectorFile::new(folder.path(), "embedder/2");
    other.refresh().unwrap();
    assert_eq!(other.applied_through(), 0);
}

#[test]
fn what_is_gone_takes_no_room_for_ever() {
    let folder = TempDir::new().unwrap();
    let (mut kept, mut other) = (open(folder.path()), open(folder.path()));
    let many = 6_000;
    for round in 0..4 {
        let rows = (0..many)
            .map(|id| vector_record(id, "a", &[1.0, id as f32, 0.0]))
            .collect();
        append(&mut kept, round + 1, vec![], rows);
        other.refresh().unwrap();
    }
    append(&mut kept, 9, (1..many).collect(), vec![]);
    other.refresh().unwrap();
    let one_round = many * (16 + 2 * 32);
    assert!(fs::metadata(file(folder.path())).unwrap().len() < 3 * one_round);
    for kept in [&kept, &other, &open(folder.path())] {
        assert_eq!((kept.applied_through(), found(kept, "a")), (9, vec![0]));
    }
}
