//! `lango-bench retrieval`: indexing and searching many chunks, compared with SQLite FTS5.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use lango_documents::document_index::DocumentIndex;
use lango_documents::embedding::{EmbedPurpose, Embedder, HashedEmbedder};
use lango_documents::lexical::LexicalIndex;
use lango_documents::vectors::VectorMatrix;
use lango_domain::documents::SearchScope;
use lango_domain::documents::{DocumentSpan, NewChunk, NewDocument, SpanUnit};
use lango_domain::event::Principal;
use lango_store::SqliteStore;
use serde_json::{Value, json};

use crate::measure::{bytes_with_prefix, p50_p99};
use crate::rng::Rng;

/// Number of distinct words in the generated text. A few are frequent, most are rare.
const VOCABULARY_SIZE: u64 = 50_000;
const WORDS_PER_CHUNK: usize = 150;
const WORDS_PER_QUERY: usize = 5;
const CHUNKS_PER_DOCUMENT: usize = 50;
/// Number of documents per batch, as when a folder is ingested.
const DOCUMENT_BATCH_SIZE: usize = 32;
/// Every n-th document is in the narrow collection.
const NARROW_INTERVAL: usize = 100;
/// A common size of embedding vectors.
const DIMENSIONS: usize = 384;

pub fn run(chunks: usize, queries: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        measure_index(&open(folder.path())?, folder.path(), chunks).await?;
        measure_search(folder.path(), queries).await
    })?;
    measure_fts5(folder.path(), queries)?;
    measure_vector_scan(chunks, queries)
}

/// Opens the index as a new process does.
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

async fn measure_index(index: &DocumentIndex, folder: &Path, chunks: usize) -> Result<()> {
    let (mut rng, mut stored) = (Rng(7), Duration::ZERO);
    let documents: Vec<usize> = (0..chunks.div_ceil(CHUNKS_PER_DOCUMENT)).collect();
    for numbers in documents.chunks(DOCUMENT_BATCH_SIZE) {
        let documents = numbers
            .iter()
            .map(|number| random_document(*number, &mut rng))
            .collect();
        let began = Instant::now();
        index
            .ingest_documents(&Principal::local(), documents)
            .await?;
        stored += began.elapsed();
    }
    let (began, cpu) = (Instant::now(), crate::measure::cpu_seconds()?);
    index.sync().await?;
    let (derived, cpu) = (began.elapsed(), crate::measure::cpu_seconds()? - cpu);
    print_json(json!({
        "bench": "index", "pieces": chunks, "pieces_per_s": chunks as f64 / (stored + derived).as_secs_f64(),
        "store_s": stored.as_secs_f64(), "derive_s": derived.as_secs_f64(), "derive_cpu_s": cpu,
        "store_mb": megabytes(folder, "store.sqlite"), "derived_mb": megabytes(&folder.join("words"), ""),
        "rss_mb": crate::measure::rss_mb()?,
    }));
    Ok(())
}

async fn measure_search(folder: &Path, queries: usize) -> Result<()> {
    let index = open(folder)?;
    let wide = SearchScope {
        principal: Principal::local(),
        session: None,
        collections: None,
    };
    let began = Instant::now();
    index.search("warm up", &wide, 5).await?;
    print_json(json!({ "bench": "first question", "ms": elapsed_ms(began) }));
    let narrow = SearchScope {
        collections: Some(vec!["narrow".to_owned()]),
        ..wide.clone()
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
        let mut rng = Rng(11);
        let (mut wide_times, mut narrow_times, mut lexical_times, mut narrow_lexical_times) =
            (vec![], vec![], vec![], vec![]);
        for _ in 0..queries {
            let question = random_text(&mut rng, WORDS_PER_QUERY, rarest);
            let began = Instant::now();
            index.search(&question, &wide, 5).await?;
            wide_times.push(elapsed_ms(began));
            let began = Instant::now();
            index.search(&question, &narrow, 5).await?;
            narrow_times.push(elapsed_ms(began));
            let began = Instant::now();
            lexical.search(&question, None, 100)?;
            lexical_times.push(elapsed_ms(began));
            let began = Instant::now();
            lexical.search(&question, Some(&names), 100)?;
            narrow_lexical_times.push(elapsed_ms(began));
        }
        print_times(&format!("rag_retrieve{kind}"), &mut wide_times);
        print_times(
            &format!("rag_retrieve in a narrow collection{kind}"),
            &mut narrow_times,
        );
        print_times(&format!("its lexical part{kind}"), &mut lexical_times);
        print_times(
            &format!("its lexical part in a narrow collection{kind}"),
            &mut narrow_lexical_times,
        );
    }
    measure_embedding(queries).await?;
    print_json(json!({ "bench": "memory after questions", "rss_mb": crate::measure::rss_mb()? }));
    Ok(())
}

async fn measure_embedding(queries: usize) -> Result<()> {
    let (hashed, mut rng, mut times) = (HashedEmbedder::default(), Rng(11), Vec::new());
    for _ in 0..queries {
        let question = random_text(&mut rng, WORDS_PER_QUERY, VOCABULARY_SIZE);
        let began = Instant::now();
        hashed.embed(vec![question], EmbedPurpose::Query).await?;
        times.push(elapsed_ms(began));
    }
    print_times("embedding a question", &mut times);
    Ok(())
}

/// Measures the same chunks and queries in FTS5.
fn measure_fts5(folder: &Path, queries: usize) -> Result<()> {
    let connection = rusqlite::Connection::open(folder.join("store.sqlite"))?;
    let began = Instant::now();
    connection.execute_batch("CREATE VIRTUAL TABLE baseline USING fts5(text, content=''); INSERT INTO baseline (rowid, text) SELECT id, text FROM pieces;")?;
    print_json(json!({ "bench": "SQLite FTS5, index", "s": began.elapsed().as_secs_f64() }));
    let mut query = connection.prepare(
        "SELECT rowid, bm25(baseline) FROM baseline WHERE baseline MATCH ?1 ORDER BY bm25(baseline) LIMIT 100",
    )?;
    for (kind, rarest) in [("", VOCABULARY_SIZE), (", frequent words", 50)] {
        let (mut rng, mut times) = (Rng(11), Vec::new());
        for _ in 0..queries {
            let question = random_text(&mut rng, WORDS_PER_QUERY, rarest);
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

/// Measures the scan of quantized vectors, and its recall against an exact scan.
fn measure_vector_scan(rows: usize, queries: usize) -> Result<()> {
    const TOP_K: usize = 10;
    let mut rng = Rng(13);
    let mut vectors = VectorMatrix::new(DIMENSIONS);
    let rows: Vec<Vec<f32>> = (0..rows).map(|_| random_unit_vector(&mut rng)).collect();
    for (id, row) in (0..).zip(&rows) {
        vectors.put(id, 0, row)?;
    }
    let (mut times, mut recalled, mut all) = (Vec::new(), 0, 0);
    for _ in 0..queries {
        let query = random_unit_vector(&mut rng);
        let began = Instant::now();
        let found = vectors.search(&query, TOP_K, None)?;
        times.push(elapsed_ms(began));
        let mut exact: Vec<(f32, u64)> = rows.iter().map(|row| dot(row, &query)).zip(0..).collect();
        exact.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        all += TOP_K.min(exact.len());
        recalled += exact
            .iter()
            .take(TOP_K)
            .filter(|(_, id)| found.iter().any(|(hit, _)| hit == id))
            .count();
    }
    let (p50, p99) = p50_p99(&mut times);
    let memory = vectors.memory_bytes() as f64 / 1e6;
    print_json(json!({
        "bench": "vector scan", "dimensions": DIMENSIONS, "rows": rows.len(), "p50_ms": p50, "p99_ms": p99,
        "recall@10": recalled as f64 / all.max(1) as f64, "of": all, "memory_mb": memory,
    }));
    Ok(())
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(x, y)| x * y).sum()
}

/// Returns a random unit vector. Random vectors have no structure, which is the hardest case for
/// quantization.
fn random_unit_vector(rng: &mut Rng) -> Vec<f32> {
    let mut number = || {
        (0..4)
            .map(|_| (rng.next() % 65_536) as f32 / 65_536.0 - 0.5)
            .sum::<f32>()
    };
    let vector: Vec<f32> = (0..DIMENSIONS).map(|_| number()).collect();
    let length = dot(&vector, &vector).sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

fn random_document(number: usize, rng: &mut Rng) -> NewDocument {
    let span = |at: usize| DocumentSpan {
        unit: SpanUnit::Lines,
        first: at as u32 * 10 + 1,
        last: at as u32 * 10 + 10,
    };
    let chunk = |at: usize| NewChunk {
        text: random_text(rng, WORDS_PER_CHUNK, VOCABULARY_SIZE),
        hash: String::new(),
        heading: String::new(),
        span: span(at),
    };
    let is_narrow = number.is_multiple_of(NARROW_INTERVAL);
    NewDocument {
        collection: (if is_narrow { "narrow" } else { "wide" }).to_owned(),
        source: format!("document-{number}"),
        root: "bench".to_owned(),
        title: format!("Document {number}"),
        hash: number.to_string(),
        session: None,
        chunks: (0..CHUNKS_PER_DOCUMENT).map(chunk).collect(),
    }
}

/// Generates text with word frequencies as in real text: the n-th word is n times as rare as the
/// first.
fn random_text(rng: &mut Rng, words: usize, rarest: u64) -> String {
    let mut text = String::with_capacity(words * 8);
    for _ in 0..words {
        if !text.is_empty() {
            text.push(' ');
        }
        push_word(rng.skewed(rarest), &mut text);
    }
    text
}

/// Appends the word of a rank. Frequent words are short.
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

/// Returns the size of the files below a folder whose names start with `prefix`.
fn megabytes(folder: &Path, prefix: &str) -> u64 {
    bytes_with_prefix(folder, prefix) / 1_000_000
}
