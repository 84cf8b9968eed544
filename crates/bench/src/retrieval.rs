//! `lango-bench retrieval`: indexing and finding passages among many, beside SQLite's own full text search.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use lango_domain::documents::{DocumentSpan, NewChunk, NewDocument, SpanUnit};
use lango_domain::event::Principal;
use lango_knowledge::document_index::{DocumentIndex, SearchScope};
use lango_knowledge::embedding::{EmbedPurpose, Embedder, HashedEmbedder};
use lango_knowledge::lexical::LexicalIndex;
use lango_knowledge::vectors::VectorMatrix;
use lango_store::SqliteStore;
use serde_json::{Value, json};

use crate::measure::{bytes_with_prefix, p50_p99};
use crate::rng::Rng;

/// Words of made-up text: a few are everywhere, most are rare.
const VOCABULARY_SIZE: u64 = 50_000;
const WORDS_PER_CHUNK: usize = 150;
const WORDS_PER_QUERY: usize = 5;
const CHUNKS_PER_DOCUMENT: usize = 50;
/// As many as a folder is read in at one time.
const DOCUMENT_BATCH_SIZE: usize = 32;
/// One document in so many is in the narrow collection.
const NARROW_INTERVAL: usize = 100;
/// What models that measure meanings have.
const DIMENSIONS: usize = 384;

pub fn run(pieces: usize, queries: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        measure_index(&open(folder.path())?, folder.path(), pieces).await?;
        measure_search(folder.path(), queries).await
    })?;
    measure_fts5(folder.path(), queries)?;
    measure_vector_scan(pieces, queries)
}

/// As a new process finds it.
fn open(folder: &Path) -> Result<DocumentIndex> {
    let store = SqliteStore::open(lango_store::StoreLocation::File(
        folder.join("store.sqlite"),
    ))?;
    Ok(DocumentIndex::new(
        Arc::new(store),
        folder.join("words"),
        Some(Arc::new(HashedEmbedder::default())),
    ))
}

async fn measure_index(library: &DocumentIndex, folder: &Path, pieces: usize) -> Result<()> {
    let (mut chance, mut stored) = (Rng(7), Duration::ZERO);
    let documents: Vec<usize> = (0..pieces.div_ceil(CHUNKS_PER_DOCUMENT)).collect();
    for numbers in documents.chunks(DOCUMENT_BATCH_SIZE) {
        let documents = numbers
            .iter()
            .map(|number| random_document(*number, &mut chance))
            .collect();
        let began = Instant::now();
        library
            .ingest_documents(&Principal::local(), documents)
            .await?;
        stored += began.elapsed();
    }
    let (began, cpu) = (Instant::now(), crate::measure::cpu_seconds()?);
    library.sync().await?;
    let (derived, cpu) = (began.elapsed(), crate::measure::cpu_seconds()? - cpu);
    print_json(json!({
        "bench": "index", "pieces": pieces, "pieces_per_s": pieces as f64 / (stored + derived).as_secs_f64(),
        "store_s": stored.as_secs_f64(), "derive_s": derived.as_secs_f64(), "derive_cpu_s": cpu,
        "store_mb": megabytes(folder, "store.sqlite"), "derived_mb": megabytes(&folder.join("words"), ""),
        "rss_mb": crate::measure::rss_mb()?,
    }));
    Ok(())
}

async fn measure_search(folder: &Path, queries: usize) -> Result<()> {
    let library = open(folder)?;
    let everywhere = SearchScope {
        principal: Principal::local(),
        session: None,
        collections: None,
    };
    let began = Instant::now();
    library.search("warm up", &everywhere, 5).await?;
    print_json(json!({ "bench": "first question", "ms": elapsed_ms(began) }));
    let narrow = SearchScope {
        collections: Some(vec!["narrow".to_owned()]),
        ..everywhere.clone()
    };
    let lexical = LexicalIndex::open(&folder.join("words"))?;
    let names: Vec<String> = lexical
        .collections()?
        .iter()
        .filter(|name| name.contains("narrow"))
        .cloned()
        .collect();
    let questions = [("", VOCABULARY_SIZE), (", frequent words", 50)];
    for (kind, rarest) in questions {
        let mut chance = Rng(11);
        let (mut whole, mut within, mut words, mut words_within) = (vec![], vec![], vec![], vec![]);
        for _ in 0..queries {
            let question = random_text(&mut chance, WORDS_PER_QUERY, rarest);
            let began = Instant::now();
            library.search(&question, &everywhere, 5).await?;
            whole.push(elapsed_ms(began));
            let began = Instant::now();
            library.search(&question, &narrow, 5).await?;
            within.push(elapsed_ms(began));
            let began = Instant::now();
            lexical.search(&question, None, 100)?;
            words.push(elapsed_ms(began));
            let began = Instant::now();
            lexical.search(&question, Some(&names), 100)?;
            words_within.push(elapsed_ms(began));
        }
        print_times(&format!("rag_retrieve{kind}"), &mut whole);
        print_times(
            &format!("rag_retrieve in a narrow collection{kind}"),
            &mut within,
        );
        print_times(&format!("its lexical part{kind}"), &mut words);
        print_times(
            &format!("its lexical part in a narrow collection{kind}"),
            &mut words_within,
        );
    }
    measure_embedding(queries).await?;
    print_json(json!({ "bench": "memory after questions", "rss_mb": crate::measure::rss_mb()? }));
    Ok(())
}

async fn measure_embedding(queries: usize) -> Result<()> {
    let (hashed, mut chance, mut times) = (HashedEmbedder::default(), Rng(11), Vec::new());
    for _ in 0..queries {
        let question = random_text(&mut chance, WORDS_PER_QUERY, VOCABULARY_SIZE);
        let began = Instant::now();
        hashed.embed(vec![question], EmbedPurpose::Query).await?;
        times.push(elapsed_ms(began));
    }
    print_times("embedding a question", &mut times);
    Ok(())
}

/// The same pieces and questions in FTS5.
fn measure_fts5(folder: &Path, queries: usize) -> Result<()> {
    let connection = rusqlite::Connection::open(folder.join("store.sqlite"))?;
    let began = Instant::now();
    connection.execute_batch("CREATE VIRTUAL TABLE beside USING fts5(text, content=''); INSERT INTO beside (rowid, text) SELECT id, text FROM pieces;")?;
    print_json(json!({ "bench": "SQLite FTS5, index", "s": began.elapsed().as_secs_f64() }));
    let mut query = connection.prepare(
        "SELECT rowid, bm25(beside) FROM beside WHERE beside MATCH ?1 ORDER BY bm25(beside) LIMIT 100",
    )?;
    for (kind, rarest) in [("", VOCABULARY_SIZE), (", frequent words", 50)] {
        let (mut chance, mut times) = (Rng(11), Vec::new());
        for _ in 0..queries {
            let question = random_text(&mut chance, WORDS_PER_QUERY, rarest);
            let question = question.split(' ').collect::<Vec<_>>().join(" OR ");
            let began = Instant::now();
            let found: Vec<i64> = query
                .query_map([question], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            times.push(elapsed_ms(began));
            std::hint::black_box(found);
        }
        print_times(&format!("SQLite FTS5{kind}"), &mut times);
    }
    Ok(())
}

/// The scan of small numbers against the same scan of the numbers themselves.
fn measure_vector_scan(rows: usize, queries: usize) -> Result<()> {
    const TOP_K: usize = 10;
    let mut chance = Rng(13);
    let mut vectors = VectorMatrix::new(DIMENSIONS);
    let rows: Vec<Vec<f32>> = (0..rows).map(|_| random_unit_vector(&mut chance)).collect();
    for (id, row) in (0..).zip(&rows) {
        vectors.put(id, 0, row)?;
    }
    let (mut times, mut right, mut all) = (Vec::new(), 0, 0);
    for _ in 0..queries {
        let query = random_unit_vector(&mut chance);
        let began = Instant::now();
        let found = vectors.search(&query, TOP_K, None)?;
        times.push(elapsed_ms(began));
        let mut exact: Vec<(f32, u64)> = rows.iter().map(|row| dot(row, &query)).zip(0..).collect();
        exact.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        all += TOP_K.min(exact.len());
        right += exact
            .iter()
            .take(TOP_K)
            .filter(|(_, id)| found.iter().any(|(hit, _)| hit == id))
            .count();
    }
    let (p50, p99) = p50_p99(&mut times);
    let memory = vectors.memory_bytes() as f64 / 1e6;
    print_json(json!({
        "bench": "vector scan", "dimensions": DIMENSIONS, "rows": rows.len(), "p50_ms": p50, "p99_ms": p99,
        "recall@10": right as f64 / all.max(1) as f64, "of": all, "memory_mb": memory,
    }));
    Ok(())
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(x, y)| x * y).sum()
}

/// A vector that is one long, spread like noise: nothing is nearer than by chance, which is the hardest case.
fn random_unit_vector(chance: &mut Rng) -> Vec<f32> {
    let mut number = || {
        (0..4)
            .map(|_| (chance.next() % 65_536) as f32 / 65_536.0 - 0.5)
            .sum::<f32>()
    };
    let vector: Vec<f32> = (0..DIMENSIONS).map(|_| number()).collect();
    let length = dot(&vector, &vector).sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

fn random_document(number: usize, chance: &mut Rng) -> NewDocument {
    let place = |at: usize| DocumentSpan {
        unit: SpanUnit::Lines,
        first: at as u32 * 10 + 1,
        last: at as u32 * 10 + 10,
    };
    let piece = |at: usize| NewChunk {
        text: random_text(chance, WORDS_PER_CHUNK, VOCABULARY_SIZE),
        hash: String::new(),
        heading: String::new(),
        span: place(at),
    };
    let is_narrow = number.is_multiple_of(NARROW_INTERVAL);
    NewDocument {
        collection: (if is_narrow { "narrow" } else { "wide" }).to_owned(),
        source: format!("document-{number}"),
        root: "bench".to_owned(),
        title: format!("Document {number}"),
        hash: number.to_string(),
        session: None,
        chunks: (0..CHUNKS_PER_DOCUMENT).map(piece).collect(),
    }
}

/// Words as they are spread in real text: the n-th is n times as rare as the first.
fn random_text(chance: &mut Rng, words: usize, rarest: u64) -> String {
    let mut text = String::with_capacity(words * 8);
    for _ in 0..words {
        if !text.is_empty() {
            text.push(' ');
        }
        push_word(chance.skewed(rarest), &mut text);
    }
    text
}

/// Frequent ones are short.
fn push_word(rank: u64, text: &mut String) {
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

fn print_json(line: Value) {
    println!("{line}");
}

fn print_times(name: &str, times: &mut [f64]) {
    let (p50, p99) = p50_p99(times);
    print_json(json!({ "bench": name, "p50_ms": p50, "p99_ms": p99 }));
}

fn elapsed_ms(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1_000.0
}

/// Of the files below a folder whose name begins so.
fn megabytes(folder: &Path, begins: &str) -> u64 {
    bytes_with_prefix(folder, begins) / 1_000_000
}
