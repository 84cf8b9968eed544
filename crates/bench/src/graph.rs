//! `lango-bench graph`: taking in many facts, the space they take, and how long questions wait.

use std::io::{BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use lango_domain::event::Principal;
use lango_domain::graph::FactSource;
use lango_knowledge::graph::import_export::{self, FactFileFormat};
use lango_knowledge::graph::{AsOf, Direction, FactPattern, Graph, GraphSnapshot, Traversal};
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
    let made = folder.path().join("facts.tsv");
    if file.is_none() {
        write_facts(&made, triples)?;
    }
    let home = folder.path().join("home");
    let place = || StoreLocation::File(home.join("store.sqlite"));
    runtime.block_on(async {
        measure_import(&open(place())?, file.unwrap_or(&made), &home).await?;
        let began = Instant::now();
        let graph = open(place())?;
        let opened = began.elapsed().as_secs_f64() * 1e3;
        let memory = crate::measure::rss_mb()?;
        let began = Instant::now();
        let view = graph.snapshot(&Principal::local()).await?;
        let first = began.elapsed().as_secs_f64() * 1e3;
        let held = crate::measure::rss_mb()? - memory;
        println!(
            "{}",
            json!({ "bench": "open", "open_ms": opened, "first_question_ms": first, "memory_mb": held })
        );
        measure_query(&graph, &view, questions).await?;
        measure_traverse(&graph, &view, questions).await
    })
}

fn open(place: StoreLocation) -> Result<Graph> {
    Ok(Graph::new(
        Arc::new(SqliteStore::open(place)?),
        Arc::new(jiff::Timestamp::now),
    ))
}

/// Names as they are spread in real graphs: a few are in very many facts.
fn write_facts(file: &Path, triples: usize) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    let (names, mut chance) = ((triples as u64 / 5).max(10), Rng(17));
    for _ in 0..triples {
        let subject = chance.next() % names;
        let object = if chance.next().is_multiple_of(4) {
            chance.skewed(names)
        } else {
            chance.next() % names
        };
        writeln!(
            out,
            "Entity {subject}\trelation_{}\tEntity {object}",
            chance.skewed(PREDICATES)
        )?;
    }
    Ok(out.flush()?)
}

async fn measure_import(graph: &Graph, file: &Path, home: &Path) -> Result<()> {
    let lines = BufReader::with_capacity(
        1 << 18,
        std::fs::File::open(file).context("the file of facts")?,
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

async fn measure_query(graph: &Graph, view: &GraphSnapshot, questions: usize) -> Result<()> {
    let (mut chance, mut times, mut results) = (Rng(23), Vec::new(), 0);
    let facts = view.facts();
    for _ in 0..questions {
        let fact = facts[chance.next() as usize % facts.len()];
        let (subject, predicate) = (view.name(fact.subject), view.predicate_name(fact.predicate));
        let began = Instant::now();
        let view = graph.snapshot(&Principal::local()).await?;
        let pattern = FactPattern {
            subject: Some(view.find(subject)?),
            predicate: (chance.next().is_multiple_of(2))
                .then(|| view.find_predicate(predicate))
                .transpose()?,
            object: None,
        };
        let found = view.query(pattern, AsOf::At(graph.now()), 50);
        times.push(began.elapsed().as_secs_f64() * 1e6);
        results += found.facts.len();
    }
    print_times("graph_query", &mut times, results);
    Ok(())
}

async fn measure_traverse(graph: &Graph, view: &GraphSnapshot, questions: usize) -> Result<()> {
    let (mut chance, mut times, mut told, mut results) = (Rng(29), Vec::new(), Vec::new(), 0);
    let facts = view.facts();
    for _ in 0..questions {
        let name = view.name(facts[chance.next() as usize % facts.len()].subject);
        let began = Instant::now();
        let view = graph.snapshot(&Principal::local()).await?;
        let when = AsOf::At(graph.now());
        let walk = Traversal {
            depth: 3,
            predicates: Vec::new(),
            direction: Direction::Both,
            as_of: when,
            limit: 1_000,
        };
        let walked = view.traverse(view.find(name)?, &walk);
        times.push(began.elapsed().as_secs_f64() * 1e6);
        let text = lango_knowledge::graph::facts_json(&view, &walked.hits).to_string();
        told.push(began.elapsed().as_secs_f64() * 1e6);
        results += walked.hits.facts.len();
        std::hint::black_box(text);
    }
    print_times("3 hops, limit 1000", &mut times, results);
    print_times("the same as text with sources", &mut told, results);
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
