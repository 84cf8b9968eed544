//! `lango-bench retrieval`: indexing and finding passages among many, beside SQLite's own full text search.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use lango_domain::documents::{NewDocument, NewPiece, Place, Unit};
use lango_domain::event::Principal;
use lango_knowledge::embedding::{Embedder, Hashed, Purpose};
use lango_knowledge::lexical::Lexical;
use lango_knowledge::library::{Library, Scope};
use lango_store::SqliteStore;
use serde_json::json;

/// Words of made-up text: a few are everywhere, most are rare.
const WORDS: u64 = 50_000;
const WORDS_IN_A_PIECE: usize = 150;
const PIECES_IN_A_DOCUMENT: usize = 50;

pub fn run(pieces: usize, queries: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let store = SqliteStore::open(lango_store::Place::File(folder.path().join("store.sqlite")))?;
        let words = folder.path().join("words");
        let library = Library::new(Arc::new(store), words.clone(), Some(Arc::new(Hashed::default())));
        let began = Instant::now();
        let mut chance = Chance(7);
        for document in 0..pieces.div_ceil(PIECES_IN_A_DOCUMENT) {
            library.put(&Principal::local(), vec![document_of(document, &mut chance)]).await?;
        }
        let written = began.elapsed().as_secs_f64();
        library.catch_up().await?;
        let all = began.elapsed().as_secs_f64();
        let bytes = bytes_below(folder.path());
        println!("{}", json!({ "bench": "index", "pieces": pieces, "pieces_per_s": pieces as f64 / all, "store_s": written, "derive_s": all - written, "disk_mb": bytes / 1_000_000 }));
        find(&library, &words, queries).await?;
        full_text(folder.path(), queries)
    })
}

async fn find(library: &Library, words: &std::path::Path, queries: usize) -> Result<()> {
    let scope = Scope { principal: Principal::local(), session: None, collections: None };
    let mut chance = Chance(11);
    let first = Instant::now();
    library.find("warm up", &scope, 5).await?;
    println!("{}", json!({ "bench": "first find", "ms": first.elapsed().as_secs_f64() * 1_000.0 }));
    let (mut whole, mut lexical_only, mut embed) = (Vec::new(), Vec::new(), Vec::new());
    let lexical = Lexical::open(words)?;
    let hashed = Hashed::default();
    for _ in 0..queries {
        let question = text(&mut chance, 5);
        let began = Instant::now();
        library.find(&question, &scope, 5).await?;
        whole.push(began.elapsed().as_secs_f64() * 1_000.0);
        let began = Instant::now();
        lexical.search(&question, None, 100)?;
        lexical_only.push(began.elapsed().as_secs_f64() * 1_000.0);
        let began = Instant::now();
        hashed.embed(vec![question], Purpose::Query).await?;
        embed.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    for (name, times) in [
        ("rag_retrieve", &mut whole),
        ("lexical part", &mut lexical_only),
        ("embedding a question", &mut embed),
    ] {
        let (p50, p99) = spread(times);
        println!("{}", json!({ "bench": name, "p50_ms": p50, "p99_ms": p99 }));
    }
    Ok(())
}

/// The same pieces and questions in FTS5.
fn full_text(folder: &std::path::Path, queries: usize) -> Result<()> {
    let connection = rusqlite::Connection::open(folder.join("store.sqlite"))?;
    connection.execute_batch("CREATE VIRTUAL TABLE beside USING fts5(text, content=''); INSERT INTO beside (rowid, text) SELECT id, text FROM pieces;")?;
    let mut query = connection.prepare(
        "SELECT rowid, bm25(beside) FROM beside WHERE beside MATCH ?1 ORDER BY bm25(beside) LIMIT 100",
    )?;
    let (mut chance, mut times) = (Chance(11), Vec::new());
    for _ in 0..queries {
        let question = text(&mut chance, 5).split(' ').collect::<Vec<_>>().join(" OR ");
        let began = Instant::now();
        let found: Vec<i64> =
            query.query_map([question], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        std::hint::black_box(found);
    }
    let (p50, p99) = spread(&mut times);
    println!("{}", json!({ "bench": "SQLite FTS5", "p50_ms": p50, "p99_ms": p99 }));
    Ok(())
}

fn document_of(number: usize, chance: &mut Chance) -> NewDocument {
    let place = |at: usize| Place { unit: Unit::Lines, first: at as u32 * 10 + 1, last: at as u32 * 10 + 10 };
    let piece = |at: usize| NewPiece {
        text: text(chance, WORDS_IN_A_PIECE),
        hash: String::new(),
        heading: String::new(),
        place: place(at),
    };
    NewDocument {
        collection: "bench".to_owned(),
        source: format!("document-{number}"),
        root: "bench".to_owned(),
        title: format!("Document {number}"),
        hash: number.to_string(),
        session: None,
        pieces: (0..PIECES_IN_A_DOCUMENT).map(piece).collect(),
    }
}

/// Words as they are spread in real text: the n-th is n times as rare as the first.
fn text(chance: &mut Chance, words: usize) -> String {
    let word = |chance: &mut Chance| format!("word{}", chance.skewed(WORDS));
    (0..words).map(|_| word(chance)).collect::<Vec<_>>().join(" ")
}

pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// One of so many; the n-th is n times as rare as the first.
    pub fn skewed(&mut self, all: u64) -> u64 {
        let share = (self.next() % 1_000_000) as f64 / 1_000_000.0;
        (all as f64).powf(share) as u64
    }
}

pub fn spread(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1))).copied()
    };
    (at(0.5).unwrap_or_default(), at(0.99).unwrap_or_default())
}

pub fn bytes_below(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata().context("its size") {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
