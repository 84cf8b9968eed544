//! Bulk import. One thread parses lines while another stores batches; other writers can write
//! between two batches.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use lango_domain::Label;
use lango_domain::event::Principal;
use lango_domain::graph::{FactSource, NewFactBatch};
use tokio::sync::mpsc;

use super::{FactFileFormat, FactLine, FactLineError, json_lines, ntriples, tsv};
use crate::batch::{BatchWriter, MAX_FACTS};
use crate::interner::normalize_spaces;
use crate::snapshot::GraphSnapshot;
use crate::{Graph, GraphError};

/// Most errors reported in full; the rest are only counted.
const MAX_REPORTED_ERRORS: usize = 100;
/// Number of parsed batches that may wait to be stored.
const BATCH_QUEUE_LEN: usize = 2;
/// Maximum length of a line in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub facts: usize,
    /// Facts that the graph already had from the same source.
    pub known: usize,
    /// Number of invalid lines. `errors` holds the first of them with their line numbers.
    pub skipped: usize,
    pub errors: Vec<(usize, FactLineError)>,
}

/// Number of facts stored so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportProgress {
    pub facts: usize,
}

/// Imports the valid lines of a file and reports the others with their line numbers.
pub async fn import(
    graph: &Graph,
    principal: &Principal,
    lines: Box<dyn BufRead + Send>,
    (format, source): (FactFileFormat, FactSource),
    progress: &(dyn Fn(ImportProgress) + Sync),
) -> Result<ImportReport, GraphError> {
    let snapshot = graph.snapshot(principal).await?;
    let (sender, mut receiver) = mpsc::channel(BATCH_QUEUE_LEN);
    let reader = tokio::task::spawn_blocking(move || {
        ImportReader::new(snapshot, source, sender).read_all(lines, format)
    });
    let mut facts = 0;
    while let Some((batch, count)) = receiver.recv().await {
        graph.append(principal, batch).await?;
        facts += count;
        progress(ImportProgress { facts });
    }
    let read_error = |error: &dyn std::fmt::Display| {
        GraphError::Failed(format!("the file could not be read: {error}"))
    };
    reader
        .await
        .map_err(|error| read_error(&error))?
        .map_err(|error| read_error(&error))
}

type ImportBatches = (Vec<NewFactBatch>, usize);

struct ImportReader {
    snapshot: GraphSnapshot,
    /// Sources that already have facts in the graph.
    known_sources: HashSet<String>,
    file: String,
    writers: HashMap<String, BatchWriter>,
    pending_facts: usize,
    sender: mpsc::Sender<ImportBatches>,
    report: ImportReport,
}

impl ImportReader {
    fn new(
        snapshot: GraphSnapshot,
        source: FactSource,
        sender: mpsc::Sender<ImportBatches>,
    ) -> Self {
        let known_sources = snapshot
            .sources()
            .map(|(source, _)| source.to_string())
            .collect();
        Self {
            snapshot,
            known_sources,
            file: normalize_spaces(&source.to_string()).into_owned(),
            writers: HashMap::new(),
            pending_facts: 0,
            sender,
            report: ImportReport::default(),
        }
    }

    fn read_all(
        mut self,
        mut lines: Box<dyn BufRead + Send>,
        format: FactFileFormat,
    ) -> std::io::Result<ImportReport> {
        let (mut bytes, mut columns) = (Vec::new(), tsv::TsvColumns::default());
        for number in 1.. {
            bytes.clear();
            if std::io::Read::take(&mut lines, MAX_LINE).read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let is_too_long = bytes.len() as u64 == MAX_LINE && !bytes.ends_with(b"\n");
            if is_too_long {
                lines.skip_until(b'\n')?;
            }
            let text = std::str::from_utf8(&bytes).map_err(|_| FactLineError::NotUtf8);
            let text = if is_too_long {
                Err(FactLineError::TooLong)
            } else {
                text
            };
            let text = text.map(|text| {
                text.trim_start_matches('\u{feff}')
                    .trim_end_matches(['\r', '\n'])
            });
            let line = match (text, format) {
                (Err(error), _) => Err(error),
                (Ok(text), FactFileFormat::Tsv) => match columns.read_header(text, number) {
                    Some(header) => header.map(|()| None),
                    None => columns.parse_line(text),
                },
                (Ok(text), FactFileFormat::NTriples) => ntriples::parse_line(text),
                (Ok(text), FactFileFormat::JsonLines) => json_lines::parse_line(text),
            };
            let added = line.and_then(|line| line.map_or(Ok(()), |line| self.add_line(&line)));
            if let Err(error) = added {
                self.report.skipped += 1;
                if self.report.errors.len() < MAX_REPORTED_ERRORS {
                    self.report.errors.push((number, error));
                }
            }
            // The receiver is dropped when storing a batch fails.
            if self.sender.is_closed() {
                break;
            }
        }
        self.send();
        Ok(self.report)
    }

    fn add_line(&mut self, line: &FactLine<'_>) -> Result<(), FactLineError> {
        let fact = line.fact_ref();
        fact.check()?;
        let source = if line.source.is_empty() {
            &*self.file
        } else {
            &*line.source
        };
        if !self.known_sources.is_empty()
            && self.known_sources.contains(source)
            && self.snapshot.contains_fact(&fact, source)
        {
            self.report.known += 1;
            return Ok(());
        }
        match self.writers.get_mut(source) {
            Some(writer) => writer.push(&fact),
            None => self
                .writers
                .entry(source.to_owned())
                .or_default()
                .push(&fact),
        }
        self.report.facts += 1;
        self.pending_facts += 1;
        if self.pending_facts == MAX_FACTS {
            self.send();
        }
        Ok(())
    }

    fn send(&mut self) {
        let mut writers: Vec<(String, BatchWriter)> = self.writers.drain().collect();
        writers.sort_by(|a, b| a.0.cmp(&b.0));
        // Imported facts are untrusted whatever source the file claims: the user did not state them.
        let batch = |(source, writer): (String, BatchWriter)| NewFactBatch {
            label: Label::untrusted(format!("imported facts ({source})")),
            source: FactSource::from(source.as_str()),
            body: writer.finish(),
        };
        let batches: Vec<NewFactBatch> = writers.into_iter().map(batch).collect();
        if !batches.is_empty() {
            let _ = self
                .sender
                .blocking_send((batches, std::mem::take(&mut self.pending_facts)));
        }
    }
}
