//! Many facts at once: lines are read on one thread and kept on another, in batches between which others can write.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use lango_domain::Label;
use lango_domain::event::Principal;
use lango_domain::graph::{NewFactBatch, FactSource};
use tokio::sync::mpsc;

use super::{BadLine, Format, Line, json_lines, ntriples, tsv};
use crate::graph::batch::{MOST_FACTS, Writing};
use crate::graph::names::tidy;
use crate::graph::view::View;
use crate::graph::{Graph, GraphError};

/// So many mistakes are told; the others are counted.
const MOST_TOLD: usize = 100;
/// So many batches wait to be kept.
const WAITING: usize = 2;
/// No line is longer.
const MOST_LINE: u64 = 1 << 20;

/// What came of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub facts: usize,
    /// Facts that the same source had told already.
    pub known: usize,
    /// Lines that are no facts, the first of them with what is wrong.
    pub skipped: usize,
    pub mistakes: Vec<(usize, BadLine)>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub facts: usize,
}

/// Keeps the facts of a file that can be read; the others are told with their lines.
pub async fn import(
    graph: &Graph,
    of: &Principal,
    lines: Box<dyn BufRead + Send>,
    (format, source): (Format, FactSource),
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Imported, GraphError> {
    let view = graph.view(of).await?;
    let (sender, mut received) = mpsc::channel(WAITING);
    let reading = tokio::task::spawn_blocking(move || Reading::new(view, source, sender).all(lines, format));
    let mut facts = 0;
    while let Some((batch, count)) = received.recv().await {
        graph.append(of, batch).await?;
        facts += count;
        progress(Progress { facts });
    }
    let broken =
        |error: &dyn std::fmt::Display| GraphError::Broken(format!("the file cannot be read: {error}"));
    reading.await.map_err(|error| broken(&error))?.map_err(|error| broken(&error))
}

type Batches = (Vec<NewFactBatch>, usize);

struct Reading {
    view: View,
    /// Sources that told something before.
    known: HashSet<String>,
    file: String,
    open: HashMap<String, Writing>,
    waiting: usize,
    sender: mpsc::Sender<Batches>,
    imported: Imported,
}

impl Reading {
    fn new(view: View, source: FactSource, sender: mpsc::Sender<Batches>) -> Self {
        let known = view.sources().map(|(source, _)| source.to_string()).collect();
        let (open, imported) = (HashMap::new(), Imported::default());
        Self { view, known, file: tidy(&source.to_string()).into_owned(), open, waiting: 0, sender, imported }
    }

    fn all(mut self, mut lines: Box<dyn BufRead + Send>, format: Format) -> std::io::Result<Imported> {
        let (mut bytes, mut columns) = (Vec::new(), tsv::Columns::default());
        for number in 1.. {
            bytes.clear();
            if std::io::Read::take(&mut lines, MOST_LINE).read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let is_cut = bytes.len() as u64 == MOST_LINE && !bytes.ends_with(b"\n");
            if is_cut {
                lines.skip_until(b'\n')?;
            }
            let text = std::str::from_utf8(&bytes).map_err(|_| BadLine::NoText);
            let text = if is_cut { Err(BadLine::TooLong) } else { text };
            let text = text.map(|text| text.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']));
            let line = match (text, format) {
                (Err(error), _) => Err(error),
                (Ok(text), Format::Tsv) => match columns.take_names(text, number) {
                    Some(named) => named.map(|()| None),
                    None => columns.read(text),
                },
                (Ok(text), Format::NTriples) => ntriples::read(text),
                (Ok(text), Format::JsonLines) => json_lines::read(text),
            };
            let kept = line.and_then(|line| line.map_or(Ok(()), |line| self.keep(&line)));
            if let Err(mistake) = kept {
                self.imported.skipped += 1;
                if self.imported.mistakes.len() < MOST_TOLD {
                    self.imported.mistakes.push((number, mistake));
                }
            }
            // Whoever keeps them has given up.
            if self.sender.is_closed() {
                break;
            }
        }
        self.send();
        Ok(self.imported)
    }

    fn keep(&mut self, line: &Line<'_>) -> Result<(), BadLine> {
        let told = line.told();
        told.check()?;
        let source = if line.source.is_empty() { &*self.file } else { &*line.source };
        if !self.known.is_empty() && self.known.contains(source) && self.view.knows(&told, source) {
            self.imported.known += 1;
            return Ok(());
        }
        match self.open.get_mut(source) {
            Some(writing) => writing.push(&told),
            None => self.open.entry(source.to_owned()).or_default().push(&told),
        }
        self.imported.facts += 1;
        self.waiting += 1;
        if self.waiting == MOST_FACTS {
            self.send();
        }
        Ok(())
    }

    fn send(&mut self) {
        let mut open: Vec<(String, Writing)> = self.open.drain().collect();
        open.sort_by(|a, b| a.0.cmp(&b.0));
        // Whatever source a file claims, its facts are not the user's own words.
        let batch = |(source, writing): (String, Writing)| NewFactBatch {
            label: Label::untrusted(format!("imported facts ({source})")),
            source: FactSource::from(source.as_str()),
            body: writing.finish(),
        };
        let batches: Vec<NewFactBatch> = open.into_iter().map(batch).collect();
        if !batches.is_empty() {
            let _ = self.sender.blocking_send((batches, std::mem::take(&mut self.waiting)));
        }
    }
}
