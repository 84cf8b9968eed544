//! The vector file: any number of processes read it, one writes, and it may be truncated, replaced
//! or deleted.

use std::fs;
use std::path::{Path, PathBuf};

use lango_documents::vectors::{VectorError, VectorFile, VectorFileError, VectorRecord};
use lango_domain::documents::ChunkOwner;
use lango_domain::event::{Principal, SessionId};
use tempfile::TempDir;

fn owner(name: &str) -> ChunkOwner {
    ChunkOwner {
        principal: Principal::new(name),
        collection: "문서".to_owned(),
        session: Some(SessionId::new("s")),
    }
}

fn vector_record(id: u64, principal: &str, vector: &[f32]) -> VectorRecord {
    VectorRecord {
        id,
        owner: owner(principal),
        vector: vector.to_vec(),
    }
}

fn open(folder: &Path) -> VectorFile {
    let mut file = VectorFile::new(folder, "embedder/1");
    file.refresh().unwrap();
    file
}

fn append(file: &mut VectorFile, through: u64, removed: Vec<u64>, rows: Vec<VectorRecord>) {
    let lock = file.try_lock().unwrap().unwrap();
    file.append(&lock, through, removed, rows).unwrap();
}

fn search_ids(file: &VectorFile, principal: &str) -> Vec<u64> {
    let hits = file
        .search(&[1.0, 0.5, 0.0], 10, |owner| {
            owner.principal.as_str() == principal
        })
        .unwrap();
    hits.into_iter().map(|(id, _)| id).collect()
}

fn vector_path(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "vectors")
        })
        .unwrap()
}

#[test]
fn a_process_reads_what_another_writes() {
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
    for file in [&one, &other, &open(folder.path())] {
        assert_eq!(
            (
                file.applied_through(),
                search_ids(file, "a"),
                search_ids(file, "b")
            ),
            (4, vec![1, 3], vec![2])
        );
        assert!(search_ids(file, "c").is_empty());
    }
    // A chunk can come back with a different text, as after restoring a backup.
    append(
        &mut other,
        9,
        vec![1, 77],
        vec![vector_record(2, "a", &[0.0, 0.0, 1.0])],
    );
    one.refresh().unwrap();
    assert_eq!(
        (
            one.applied_through(),
            search_ids(&one, "a"),
            search_ids(&one, "b")
        ),
        (9, vec![3, 2], vec![])
    );
}

#[test]
fn only_one_writer_at_a_time() {
    let folder = TempDir::new().unwrap();
    let (one, other) = (open(folder.path()), open(folder.path()));
    let lock = one.try_lock().unwrap();
    assert!(lock.is_some() && other.try_lock().unwrap().is_none());
    drop(lock);
    assert!(other.try_lock().unwrap().is_some());
}

/// After a crash, the batches before the damage are read, and the next writer continues after them.
#[test]
fn reads_a_truncated_file_up_to_the_damage() {
    let folder = TempDir::new().unwrap();
    let mut file = open(folder.path());
    append(
        &mut file,
        1,
        vec![],
        vec![vector_record(1, "a", &[1.0, 0.0, 0.0])],
    );
    let first = fs::metadata(vector_path(folder.path())).unwrap().len() as usize;
    append(
        &mut file,
        2,
        vec![],
        vec![vector_record(2, "a", &[0.0, 1.0, 0.0])],
    );
    let whole = fs::read(vector_path(folder.path())).unwrap();
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
        fs::write(vector_path(folder.path()), &whole[..length]).unwrap();
        let mut truncated = open(folder.path());
        let left = if length >= first { 1 } else { 0 };
        assert_eq!(truncated.applied_through(), left, "{length} bytes");
        append(
            &mut truncated,
            2,
            vec![],
            vec![vector_record(2, "a", &[0.0, 1.0, 0.0])],
        );
        assert_eq!(open(folder.path()).applied_through(), 2, "{length} bytes");
        assert_eq!(
            search_ids(&open(folder.path()), "a").contains(&1),
            left == 1
        );
    }
    for at in [0, 9, first + 3, first + 12, first + 40, whole.len() - 1] {
        let mut corrupt = whole.clone();
        corrupt[at] ^= 0x41;
        fs::write(vector_path(folder.path()), corrupt).unwrap();
        assert_eq!(
            open(folder.path()).applied_through(),
            u64::from(at >= first),
            "byte {at}"
        );
    }
}

#[test]
fn starts_over_when_the_file_is_deleted_or_replaced() {
    let folder = TempDir::new().unwrap();
    let index_folder = folder.path().join("words");
    let mut file = open(&index_folder);
    append(
        &mut file,
        5,
        vec![],
        vec![vector_record(1, "a", &[1.0, 0.0, 0.0])],
    );
    let lock = file.try_lock().unwrap().unwrap();
    fs::remove_dir_all(&index_folder).unwrap();
    file.append(
        &lock,
        6,
        vec![],
        vec![vector_record(2, "a", &[1.0, 0.0, 0.0])],
    )
    .unwrap();
    assert!(
        !index_folder.exists(),
        "deleting does not wait for the writer"
    );
    file.refresh().unwrap();
    assert_eq!(
        (file.applied_through(), search_ids(&file, "a")),
        (0, vec![])
    );
    append(
        &mut open(&index_folder),
        7,
        vec![],
        vec![vector_record(3, "a", &[1.0, 0.0, 0.0])],
    );
    file.refresh().unwrap();
    assert_eq!(
        (file.applied_through(), search_ids(&file, "a")),
        (7, vec![3])
    );
}

#[test]
fn rejects_vectors_of_other_lengths_and_embedders() {
    let folder = TempDir::new().unwrap();
    let mut file = open(folder.path());
    append(
        &mut file,
        1,
        vec![],
        vec![vector_record(1, "a", &[1.0, 0.0, 0.0])],
    );
    let lock = file.try_lock().unwrap().unwrap();
    let result = file.append(&lock, 2, vec![], vec![vector_record(2, "a", &[1.0, 0.0])]);
    let expected = VectorError::Dimensions {
        expected: 3,
        found: 2,
    };
    assert!(matches!(result, Err(VectorFileError::Vector(error)) if error == expected));
    let result = file.append(
        &lock,
        2,
        vec![],
        vec![vector_record(2, "a", &[1.0, f32::NAN, 0.0])],
    );
    assert!(matches!(
        result,
        Err(VectorFileError::Vector(VectorError::NotFinite))
    ));
    assert_eq!(
        (
            file.applied_through(),
            search_ids(&open(folder.path()), "a")
        ),
        (1, vec![1])
    );
    let mut other = VectorFile::new(folder.path(), "embedder/2");
    other.refresh().unwrap();
    assert_eq!(other.applied_through(), 0);
}

#[test]
fn compacts_removed_rows() {
    let folder = TempDir::new().unwrap();
    let (mut file, mut other) = (open(folder.path()), open(folder.path()));
    let many = 6_000;
    for round in 0..4 {
        let rows = (0..many)
            .map(|id| vector_record(id, "a", &[1.0, id as f32, 0.0]))
            .collect();
        append(&mut file, round + 1, vec![], rows);
        other.refresh().unwrap();
    }
    append(&mut file, 9, (1..many).collect(), vec![]);
    other.refresh().unwrap();
    let one_round = many * (16 + 2 * 32);
    assert!(fs::metadata(vector_path(folder.path())).unwrap().len() < 3 * one_round);
    for file in [&file, &other, &open(folder.path())] {
        assert_eq!(
            (file.applied_through(), search_ids(file, "a")),
            (9, vec![0])
        );
    }
}
