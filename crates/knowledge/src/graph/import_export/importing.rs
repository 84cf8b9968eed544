//! Many facts at once: lines are read on one thread and kept on another, in batches between which others can write.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use lango_domain::Label;
use lango_domain::event::Principal;
use lango_domain::graph::{FactSource, NewFactBatch};
use tokio::sync::mpsc;

use super::{FactFileFormat, FactLine, FactLineError, json_lines, ntriples, tsv};
use crate::graph::batch::{BatchWriter, MAX_FACTS};
use crate::graph::interner::normalize_spaces;
use crate::graph::snapshot::GraphSnapshot;
use crate::graph::{Graph, GraphError};

/// So many mistakes are told; the others are counted.
const MAX_REPORTED_ERRORS: usize = 100;
/// So many batches wait to be kept.
const BATCH_QUEUE_LEN: usize = 2;
/// No line is longer.
const MAX_LINE: u64 = 1 << 20;

/// What came of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub facts: usize,
    /// Facts that the same source had told already.
    pub known: usize,
    /// Lines that are no facts, the first of them with what is wrong.
    pub skipped: usize,
    pub errors: Vec<(usize, FactLineError)>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportProgress {
    pub facts: usize,
}

/// Keeps the facts of a file that can be read; the others are told with their lines.
pub async fn import(
    graph: &Graph,
    of: &Principal,
    lines: Box<dyn BufRead + Send>,
    (format, source): (FactFileFormat, FactSource),
    progress: &(dyn Fn(ImportProgress) + Sync),
) -> Result<ImportReport, GraphError> {
    let view = graph.snapshot(of).await?;
    let (sender, mut received) = mpsc::channel(BATCH_QUEUE_LEN);
    let reading = tokio::task::spawn_blocking(move || {
        ImportReader::new(view, source, sender).read_all(lines, format)
    });
    let mut facts = 0;
    while let Some((batch, count)) = received.recv().await {
        graph.append(of, batch).await?;
        facts += count;
        progress(ImportProgress { facts });
    }
    let broken = |error: &dyn std::fmt::Display| {
        GraphError::Failed(format!("the file cannot be read: {error}"))
    };
    reading
        .await
        .map_err(|error| broken(&error))?
        .map_err(|error| broken(&error))
}

type ImportBatches = (Vec<NewFactBatch>, usize);

struct ImportReader {
    snapshot: GraphSnapshot,
    /// Sources that told something before.
    known_sources: HashSet<String>,
    file: String,
    writers: HashMap<String, BatchWriter>,
    pending_facts: usize,
    sender: mpsc::Sender<ImportBatches>,
    report: ImportReport,
}

impl ImportReader {
    fn new(view: GraphSnapshot, source: FactSource, sender: mpsc::Sender<ImportBatches>) -> Self {
        let known = view
            .sources()
            .map(|(source, _)| source.to_string())
            .collect();
        let (open, imported) = (HashMap::new(), ImportReport::default());
        Self {
            snapshot: view,
            known_sources: known,
            file: normalize_spaces(&source.to_string()).into_owned(),
            writers: open,
            pending_facts: 0,
            sender,
            report: imported,
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
            let is_cut = bytes.len() as u64 == MAX_LINE && !bytes.ends_with(b"\n");
            if is_cut {
                lines.skip_until(b'\n')?;
            }
            let text = std::str::from_utf8(&bytes).map_err(|_| FactLineError::NotUtf8);
            let text = if is_cut {
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
                    Some(named) => named.map(|()| None),
                    None => columns.parse_line(text),
                },
                (Ok(text), FactFileFormat::NTriples) => ntriples::parse_line(text),
                (Ok(text), FactFileFormat::JsonLines) => json_lines::parse_line(text),
            };
            let kept = line.and_then(|line| line.map_or(Ok(()), |line| self.add_line(&line)));
            if let Err(mistake) = kept {
                self.report.skipped += 1;
                if self.report.errors.len() < MAX_REPORTED_ERRORS {
                    self.report.errors.push((number, mistake));
                }
            }
            // Whoever keeps them has given up.
            if self.sender.is_closed() {
                break;
            }
        }
        self.send();
        Ok(self.report)
    }

    fn add_line(&mut self, line: &FactLine<'_>) -> Result<(), FactLineError> {
        let told = line.fact_ref();
        told.check()?;
        let source = if line.source.is_empty() {
            &*self.file
        } else {
            &*line.source
        };
        if !self.known_sources.is_empty()
            && self.known_sources.contains(source)
            && self.snapshot.contains_fact(&told, source)
        {
            self.report.known += 1;
            return Ok(());
        }
        match self.writers.get_mut(source) {
            Some(writing) => writing.push(&told),
            None => self
                .writers
                .entry(source.to_owned())
                .or_default()
                .push(&told),
        }
        self.report.facts += 1;
        self.pending_facts += 1;
        if self.pending_facts == MAX_FACTS {
            self.send();
        }
        Ok(())
    }

    fn send(&mut self) {
        let mut open: Vec<(String, BatchWriter)> = self.writers.drain().collect();
        open.sort_by(|a, b| a.0.cmp(&b.0));
        // Whatever source a file claims, its facts are not the user's own words.
        let batch = |(source, writing): (String, BatchWriter)| NewFactBatch {
            label: Label::untrusted(format!("imported facts ({source})")),
            source: FactSource::from(source.as_str()),
            body: writing.finish(),
        };
        let batches: Vec<NewFactBatch> = open.into_iter().map(batch).collect();
        if !batches.is_empty() {
            let _ = self
                .sender
                .blocking_send((batches, std::mem::take(&mut self.pending_facts)));
        }
    }
}
