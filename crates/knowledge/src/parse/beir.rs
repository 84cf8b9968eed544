//! Collections in the layout of BEIR, by which retrieval is measured: documents, queries, and which belong together.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct BeirDocument {
    #[serde(rename = "_id")]
    pub id: String,
    #[serde(default)]
    pub title: String,
    pub text: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct BeirQuery {
    #[serde(rename = "_id")]
    pub id: String,
    pub text: String,
}

/// How well a document answers a query; 0 says that it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeirJudgment {
    pub query: String,
    pub document: String,
    pub score: i32,
}

#[derive(Debug, Error)]
pub enum BeirError {
    #[error("{} cannot be read: {error}", path.display())]
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{}, line {line}: {reason}", path.display())]
    BadLine {
        path: PathBuf,
        line: usize,
        reason: String,
    },
}

/// What the lines of a file hold. A bad line is told, and the next one is read.
pub struct BeirLines<T> {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
    line: usize,
    /// Whoever cannot read on now cannot read on later.
    is_finished: bool,
    parse: fn(&str, usize) -> ParsedLine<T>,
}

/// Nothing for a line that holds nothing; words for one that is wrong.
type ParsedLine<T> = Result<Option<T>, String>;

/// The documents of a collection, from `corpus.jsonl`.
pub fn read_corpus(directory: &Path) -> Result<BeirLines<BeirDocument>, BeirError> {
    BeirLines::open(directory.join("corpus.jsonl"), from_json)
}

/// The queries of a collection, from `queries.jsonl`.
pub fn read_queries(directory: &Path) -> Result<BeirLines<BeirQuery>, BeirError> {
    BeirLines::open(directory.join("queries.jsonl"), from_json)
}

/// Which documents answer which queries: the part of `qrels/` that tests, else the one that develops, else `qrels.tsv`.
pub fn read_qrels(directory: &Path) -> Result<BeirLines<BeirJudgment>, BeirError> {
    let parts = ["test.tsv", "dev.tsv"].map(|name| directory.join("qrels").join(name));
    let path = parts.into_iter().find(|part| part.is_file());
    BeirLines::open(
        path.unwrap_or_else(|| directory.join("qrels.tsv")),
        from_columns,
    )
}

impl<T> BeirLines<T> {
    fn open(path: PathBuf, parse: fn(&str, usize) -> ParsedLine<T>) -> Result<Self, BeirError> {
        match File::open(&path) {
            Ok(file) => Ok(Self {
                path,
                lines: BufReader::new(file).lines(),
                line: 0,
                is_finished: false,
                parse,
            }),
            Err(error) => Err(BeirError::Io { path, error }),
        }
    }
}

impl<T> Iterator for BeirLines<T> {
    type Item = Result<T, BeirError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_finished {
            let read = self.lines.next()?;
            self.line += 1;
            let parsed = match read {
                Ok(text) => (self.parse)(text.trim_start_matches('\u{feff}').trim_end(), self.line),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    Err(error.to_string())
                }
                Err(error) => {
                    self.is_finished = true;
                    return Some(Err(BeirError::Io {
                        path: self.path.clone(),
                        error,
                    }));
                }
            };
            match parsed {
                Ok(None) => {}
                Ok(Some(item)) => return Some(Ok(item)),
                Err(why) => {
                    let (path, line) = (self.path.clone(), self.line);
                    return Some(Err(BeirError::BadLine {
                        path,
                        line,
                        reason: why,
                    }));
                }
            }
        }
        None
    }
}

fn from_json<T: DeserializeOwned>(line: &str, _: usize) -> ParsedLine<T> {
    if line.is_empty() {
        return Ok(None);
    }
    serde_json::from_str(line)
        .map(Some)
        .map_err(|error| error.to_string())
}

fn from_columns(line: &str, number: usize) -> ParsedLine<BeirJudgment> {
    let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
    match columns[..] {
        [""] => Ok(None),
        [query, document, score] => match score.parse() {
            Ok(score) => Ok(Some(BeirJudgment {
                query: query.to_owned(),
                document: document.to_owned(),
                score,
            })),
            // The names of the columns.
            Err(_) if number == 1 => Ok(None),
            Err(_) => Err(format!("the score `{score}` is not a whole number")),
        },
        _ => Err(format!(
            "{} columns instead of query-id, corpus-id and score",
            columns.len()
        )),
    }
}
