//! `lango-bench graph`: importing many facts, their size, and the latency of queries.

use std::io::{BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use lango_domain::event::Principal;
use lango_domain::graph::FactSource;
use lango_graph::import_export::{self, FactFileFormat};
use lango_graph::{AsOf, Direction, FactPattern, Graph, GraphSnapshot, Traversal};
use lango_store::{SqliteStore, StoreLocation};
use serde_json::json;

use crate::measure::{folder_bytes, p50_p99};
use crate::rng::Rng;

const PREDICATES: u64 = 40;

pub fn run(triples: usize, questions: usize, file: Option<&Path>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let generated = folder.path().join("facts.tsv");
    if file.is_none() {
        write_facts(&generated, triples)?;
    }
    let home = folder.path().join("home");
    let location = || StoreLocation::File(home.join("store.sqlite"));
    runtime.block_on(async {
        measure_import(&open(location())?, file.unwrap_or(&generated), &home).await?;
        let began = Instant::now();
        let graph = open(location())?;
        let opened = began.elapsed().as_secs_f64() * 1e3;
        let memory = crate::measure::rss_mb()?;
        let began = Instant::now();
        let snapshot = graph.snapshot(&Principal::local()).await?;
        let first = began.elapsed().as_secs_f64() * 1e3;
        let memory_mb = crate::measure::rss_mb()? - memory;
        println!(
            "{}",
            json!({ "bench": "open", "open_ms": opened, "first_question_ms": first, "memory_mb": memory_mb })
        );
        measure_query(&graph, &snapshot, questions).await?;
        measure_traverse(&graph, &snapshot, questions).await
    })
}

fn open(location: StoreLocation) -> Result<Graph> {
    Ok(Graph::new(
        Arc::new(SqliteStore::open(location)?),
        Arc::new(jiff::Timestamp::now),
    ))
}

/// Writes facts with a distribution as in real graphs: a few names occur in very many facts.
fn write_facts(file: &Path, triples: usize) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    let (names, mut rng) = ((triples as u64 / 5).max(10), Rng(17));
    for _ in 0..triples {
        let subject = rng.next() % names;
        let object = if rng.next().is_multiple_of(4) {
            rng.skewed(names)
        } else {
            rng.next() % names
        };
        writeln!(
            out,
            "Entity {subject}\trelation_{}\tEntity {object}",
            rng.skewed(PREDICATES)
        )?;
    }
    Ok(out.flush()?)
}

async fn measure_import(graph: &Graph, file: &Path, home: &Path) -> Result<()> {
    let lines = BufReader::with_capacity(
        1 << 18,
        std::fs::File::open(file).context("could not open the file of facts")?,
    );
    let source = FactSource::Import(file.display().to_string());
    let began = Instant::now();
    let imported = import_export::import(
        graph,
        &Principal::local(),
        Box::new(lines),
        (FactFileFormat::Tsv, source),
        &|_| (),
    )
    .await?;
    let seconds = began.elapsed().as_secs_f64();
    let (facts, skipped) = (imported.facts, imported.skipped);
    println!(
        "{}",
        json!({ "bench": "load", "facts": facts, "skipped": skipped, "facts_per_s": facts as f64 / seconds, "disk_mb": folder_bytes(home) as f64 / 1e6 })
    );
    Ok(())
}

async fn measure_query(graph: &Graph, snapshot: &GraphSnapshot, questions: usize) -> Result<()> {
    let (mut rng, mut times, mut results) = (Rng(23), Vec::new(), 0);
    let facts = snapshot.facts();
    for _ in 0..questions {
        let fact = facts[rng.next() as usize % facts.len()];
        let (subject, predicate) = (
            snapshot.name(fact.subject),
            snapshot.predicate_name(fact.predicate),
        );
        let began = Instant::now();
        let snapshot = graph.snapshot(&Principal::local()).await?;
        let pattern = FactPattern {
            subject: Some(snapshot.find(subject)?),
            predicate: (rng.next().is_multiple_of(2))
                .then(|| snapshot.find_predicate(predicate))
                .transpose()?,
            object: None,
        };
        let found = snapshot.query(pattern, AsOf::At(graph.now()), 50);
        times.push(began.elapsed().as_secs_f64() * 1e6);
        results += found.facts.len();
    }
    print_times("graph_query", &mut times, results);
    Ok(())
}

async fn measure_traverse(graph: &Graph, snapshot: &GraphSnapshot, questions: usize) -> Result<()> {
    let (mut rng, mut times, mut times_with_text, mut results) =
        (Rng(29), Vec::new(), Vec::new(), 0);
    let facts = snapshot.facts();
    for _ in 0..questions {
        let name = snapshot.name(facts[rng.next() as usize % facts.len()].subject);
        let began = Instant::now();
        let snapshot = graph.snapshot(&Principal::local()).await?;
        let when = AsOf::At(graph.now());
        let traversal = Traversal {
            depth: 3,
            predicates: Vec::new(),
            direction: Direction::Both,
            as_of: when,
            limit: 1_000,
        };
        let result = snapshot.traverse(snapshot.find(name)?, &traversal);
        times.push(began.elapsed().as_secs_f64() * 1e6);
        let text = lango_graph::facts_json(&snapshot, &result.hits).to_string();
        times_with_text.push(began.elapsed().as_secs_f64() * 1e6);
        results += result.hits.facts.len();
        std::hint::black_box(text);
    }
    print_times("3 hops, limit 1000", &mut times, results);
    print_times(
        "the same as text with sources",
        &mut times_with_text,
        results,
    );
    Ok(())
}

fn print_times(bench: &str, times: &mut [f64], results: usize) {
    let mean = results as f64 / times.len().max(1) as f64;
    let (p50, p99) = p50_p99(times);
    println!(
        "{}",
        json!({ "bench": bench, "p50_us": p50, "p99_us": p99, "facts_each": mean })
    );
}
