//! `lango-bench retrieval`: indexing and finding passages among many, beside SQLite's own full text search.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use lango_domain::documents::{NewDocument, NewChunk, DocumentSpan, SpanUnit};
use lango_domain::event::Principal;
use lango_knowledge::embedding::{Embedder, HashedEmbedder, EmbedPurpose};
use lango_knowledge::lexical::LexicalIndex;
use lango_knowledge::document_index::{DocumentIndex, SearchScope};
use lango_knowledge::vectors::VectorMatrix;
use lango_store::SqliteStore;
use serde_json::{Value, json};

use crate::rng::Rng;
use crate::measure::{bytes_named, spread};

/// Words of made-up text: a few are everywhere, most are rare.
const WORDS: u64 = 50_000;
const WORDS_IN_A_PIECE: usize = 150;
const WORDS_IN_A_QUESTION: usize = 5;
const PIECES_IN_A_DOCUMENT: usize = 50;
/// As many as a folder is read in at one time.
const DOCUMENTS_AT_ONCE: usize = 32;
/// One document in so many is in the narrow collection.
const NARROW: usize = 100;
/// What models that measure meanings have.
const DIMENSIONS: usize = 384;

pub fn run(pieces: usize, queries: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        index(&open(folder.path())?, folder.path(), pieces).await?;
        find(folder.path(), queries).await
    })?;
    full_text(folder.path(), queries)?;
    scan(pieces, queries)
}

/// As a new process finds it.
fn open(folder: &Path) -> Result<DocumentIndex> {
    let store = SqliteStore::open(lango_store::StoreLocation::File(folder.join("store.sqlite")))?;
    Ok(DocumentIndex::new(Arc::new(store), folder.join("words"), Some(Arc::new(HashedEmbedder::default()))))
}

async fn index(library: &DocumentIndex, folder: &Path, pieces: usize) -> Result<()> {
    let (mut chance, mut stored) = (Rng(7), Duration::ZERO);
    let documents: Vec<usize> = (0..pieces.div_ceil(PIECES_IN_A_DOCUMENT)).collect();
    for numbers in documents.chunks(DOCUMENTS_AT_ONCE) {
        let documents = numbers.iter().map(|number| document_of(*number, &mut chance)).collect();
        let began = Instant::now();
        library.ingest_documents(&Principal::local(), documents).await?;
        stored += began.elapsed();
    }
    let (began, cpu) = (Instant::now(), crate::measure::cpu_seconds()?);
    library.sync().await?;
    let (derived, cpu) = (began.elapsed(), crate::measure::cpu_seconds()? - cpu);
    show(json!({
        "bench": "index", "pieces": pieces, "pieces_per_s": pieces as f64 / (stored + derived).as_secs_f64(),
        "store_s": stored.as_secs_f64(), "derive_s": derived.as_secs_f64(), "derive_cpu_s": cpu,
        "store_mb": megabytes(folder, "store.sqlite"), "derived_mb": megabytes(&folder.join("words"), ""),
        "rss_mb": crate::measure::rss_mb()?,
    }));
    Ok(())
}

async fn find(folder: &Path, queries: usize) -> Result<()> {
    let library = open(folder)?;
    let everywhere = SearchScope { principal: Principal::local(), session: None, collections: None };
    let began = Instant::now();
    library.search("warm up", &everywhere, 5).await?;
    show(json!({ "bench": "first question", "ms": milliseconds(began) }));
    let narrow = SearchScope { collections: Some(vec!["narrow".to_owned()]), ..everywhere.clone() };
    let lexical = LexicalIndex::open(&folder.join("words"))?;
    let names: Vec<String> =
        lexical.collections()?.iter().filter(|name| name.contains("narrow")).cloned().collect();
    let questions = [("", WORDS), (", frequent words", 50)];
    for (kind, rarest) in questions {
        let mut chance = Rng(11);
        let (mut whole, mut within, mut words, mut words_within) = (vec![], vec![], vec![], vec![]);
        for _ in 0..queries {
            let question = text(&mut chance, WORDS_IN_A_QUESTION, rarest);
            let began = Instant::now();
            library.search(&question, &everywhere, 5).await?;
            whole.push(milliseconds(began));
            let began = Instant::now();
            library.search(&question, &narrow, 5).await?;
            within.push(milliseconds(began));
            let began = Instant::now();
            lexical.search(&question, None, 100)?;
            words.push(milliseconds(began));
            let began = Instant::now();
            lexical.search(&question, Some(&names), 100)?;
            words_within.push(milliseconds(began));
        }
        show_times(&format!("rag_retrieve{kind}"), &mut whole);
        show_times(&format!("rag_retrieve in a narrow collection{kind}"), &mut within);
        show_times(&format!("its lexical part{kind}"), &mut words);
        show_times(&format!("its lexical part in a narrow collection{kind}"), &mut words_within);
    }
    embed(queries).await?;
    show(json!({ "bench": "memory after questions", "rss_mb": crate::measure::rss_mb()? }));
    Ok(())
}

async fn embed(queries: usize) -> Result<()> {
    let (hashed, mut chance, mut times) = (HashedEmbedder::default(), Rng(11), Vec::new());
    for _ in 0..queries {
        let question = text(&mut chance, WORDS_IN_A_QUESTION, WORDS);
        let began = Instant::now();
        hashed.embed(vec![question], EmbedPurpose::Query).await?;
        times.push(milliseconds(began));
    }
    show_times("embedding a question", &mut times);
    Ok(())
}

/// The same pieces and questions in FTS5.
fn full_text(folder: &Path, queries: usize) -> Result<()> {
    let connection = rusqlite::Connection::open(folder.join("store.sqlite"))?;
    let began = Instant::now();
    connection.execute_batch("CREATE VIRTUAL TABLE beside USING fts5(text, content=''); INSERT INTO beside (rowid, text) SELECT id, text FROM pieces;")?;
    show(json!({ "bench": "SQLite FTS5, index", "s": began.elapsed().as_secs_f64() }));
    let mut query = connection.prepare(
        "SELECT rowid, bm25(beside) FROM beside WHERE beside MATCH ?1 ORDER BY bm25(beside) LIMIT 100",
    )?;
    for (kind, rarest) in [("", WORDS), (", frequent words", 50)] {
        let (mut chance, mut times) = (Rng(11), Vec::new());
        for _ in 0..queries {
            let question = text(&mut chance, WORDS_IN_A_QUESTION, rarest);
            let question = question.split(' ').collect::<Vec<_>>().join(" OR ");
            let began = Instant::now();
            let found: Vec<i64> =
                query.query_map([question], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            times.push(milliseconds(began));
            std::hint::black_box(found);
        }
        show_times(&format!("SQLite FTS5{kind}"), &mut times);
    }
    Ok(())
}

/// The scan of small numbers against the same scan of the numbers themselves.
fn scan(rows: usize, queries: usize) -> Result<()> {
    const WANTED: usize = 10;
    let mut chance = Rng(13);
    let mut vectors = VectorMatrix::new(DIMENSIONS);
    let rows: Vec<Vec<f32>> = (0..rows).map(|_| direction(&mut chance)).collect();
    for (id, row) in (0..).zip(&rows) {
        vectors.put(id, 0, row)?;
    }
    let (mut times, mut right, mut all) = (Vec::new(), 0, 0);
    for _ in 0..queries {
        let query = direction(&mut chance);
        let began = Instant::now();
        let found = vectors.search(&query, WANTED, None)?;
        times.push(milliseconds(began));
        let mut exact: Vec<(f32, u64)> = rows.iter().map(|row| dot(row, &query)).zip(0..).collect();
        exact.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        all += WANTED.min(exact.len());
        right += exact.iter().take(WANTED).filter(|(_, id)| found.iter().any(|(hit, _)| hit == id)).count();
    }
    let (p50, p99) = spread(&mut times);
    let memory = vectors.memory() as f64 / 1e6;
    show(json!({
        "bench": "vector scan", "dimensions": DIMENSIONS, "rows": rows.len(), "p50_ms": p50, "p99_ms": p99,
        "recall@10": right as f64 / all.max(1) as f64, "of": all, "memory_mb": memory,
    }));
    Ok(())
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(x, y)| x * y).sum()
}

/// A vector that is one long, spread like noise: nothing is nearer than by chance, which is the hardest case.
fn direction(chance: &mut Rng) -> Vec<f32> {
    let mut number = || (0..4).map(|_| (chance.next() % 65_536) as f32 / 65_536.0 - 0.5).sum::<f32>();
    let vector: Vec<f32> = (0..DIMENSIONS).map(|_| number()).collect();
    let length = dot(&vector, &vector).sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

fn document_of(number: usize, chance: &mut Rng) -> NewDocument {
    let place = |at: usize| DocumentSpan { unit: SpanUnit::Lines, first: at as u32 * 10 + 1, last: at as u32 * 10 + 10 };
    let piece = |at: usize| NewChunk {
        text: text(chance, WORDS_IN_A_PIECE, WORDS),
        hash: String::new(),
        heading: String::new(),
        place: place(at),
    };
    let is_narrow = number.is_multiple_of(NARROW);
    NewDocument {
        collection: (if is_narrow { "narrow" } else { "wide" }).to_owned(),
        source: format!("document-{number}"),
        root: "bench".to_owned(),
        title: format!("Document {number}"),
        hash: number.to_string(),
        session: None,
        pieces: (0..PIECES_IN_A_DOCUMENT).map(piece).collect(),
    }
}

/// Words as they are spread in real text: the n-th is n times as rare as the first.
fn text(chance: &mut Rng, words: usize, rarest: u64) -> String {
    let mut text = String::with_capacity(words * 8);
    for _ in 0..words {
        if !text.is_empty() {
            text.push(' ');
        }
        word(chance.skewed(rarest), &mut text);
    }
    text
}

/// Frequent ones are short.
fn word(rank: u64, text: &mut String) {
    let (consonants, vowels) = (b"bdfgklmnprstvz", b"aeiou");
    let mut rest = rank;
    loop {
        text.push(char::from(consonants[(rest % 14) as usize]));
        text.push(char::from(vowels[(rest / 14 % 5) as usize]));
        rest /= 70;
        if rest == 0 {
            break;
        }
    }
    text.push(char::from(consonants[(rank / 7 % 14) as usize]));
}

fn show(line: Value) {
    println!("{line}");
}

fn show_times(name: &str, times: &mut [f64]) {
    let (p50, p99) = spread(times);
    show(json!({ "bench": name, "p50_ms": p50, "p99_ms": p99 }));
}

fn milliseconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1_000.0
}

/// Of the files below a folder whose name begins so.
fn megabytes(folder: &Path, begins: &str) -> u64 {
    bytes_named(folder, begins) / 1_000_000
}
