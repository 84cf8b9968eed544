//! Reads collections in the BEIR layout, a benchmark for retrieval: documents, queries and
//! relevance judgments.

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

/// The relevance of a document for a query; 0 means not relevant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeirJudgment {
    pub query: String,
    pub document: String,
    pub score: i32,
}

#[derive(Debug, Error)]
pub enum BeirError {
    #[error("cannot read {}: {error}", path.display())]
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

/// An iterator over the records of a file. An invalid line yields an error, and iteration
/// continues.
pub struct BeirLines<T> {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
    line: usize,
    /// Set after an I/O error, which ends the iteration.
    is_finished: bool,
    parse: fn(&str, usize) -> ParsedLine<T>,
}

/// `None` for an empty line; the error is a text for the user.
type ParsedLine<T> = Result<Option<T>, String>;

/// Reads the documents of a collection from `corpus.jsonl`.
pub fn read_corpus(directory: &Path) -> Result<BeirLines<BeirDocument>, BeirError> {
    BeirLines::open(directory.join("corpus.jsonl"), from_json)
}

/// Reads the queries of a collection from `queries.jsonl`.
pub fn read_queries(directory: &Path) -> Result<BeirLines<BeirQuery>, BeirError> {
    BeirLines::open(directory.join("queries.jsonl"), from_json)
}

/// Reads the relevance judgments from `qrels/test.tsv`, else `qrels/dev.tsv`, else `qrels.tsv`.
pub fn read_qrels(directory: &Path) -> Result<BeirLines<BeirJudgment>, BeirError> {
    let splits = ["test.tsv", "dev.tsv"].map(|name| directory.join("qrels").join(name));
    let path = splits.into_iter().find(|path| path.is_file());
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
            let line = self.lines.next()?;
            self.line += 1;
            let parsed = match line {
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
                Err(reason) => {
                    let (path, line) = (self.path.clone(), self.line);
                    return Some(Err(BeirError::BadLine { path, line, reason }));
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
            // The header with the names of the columns.
            Err(_) if number == 1 => Ok(None),
            Err(_) => Err(format!("the score `{score}` is not an integer")),
        },
        _ => Err(format!(
            "{} columns; expected query-id, corpus-id and score",
            columns.len()
        )),
    }
}
