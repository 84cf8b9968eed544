//! What can be typed about documents.

use std::path::PathBuf;

use clap::Subcommand;
use lango_knowledge::rag_index::{DEFAULT_COLLECTION, parse_collection_name};

#[derive(Subcommand)]
pub enum IndexCommand {
    /// Take in files, folders and pages; what did not change costs nothing.
    Add {
        /// Files, folders, and addresses of pages.
        #[arg(required = true, value_name = "PATH|URL")]
        what: Vec<String>,
        /// The collection that they belong to.
        #[arg(long, value_name = "NAME", default_value = DEFAULT_COLLECTION, value_parser = parse_collection_name)]
        collection: String,
        /// Files and folders, or a folder with a corpus in the BEIR form.
        #[arg(long, default_value = "files")]
        format: CorpusFormat,
    },
    /// List the collections.
    List,
    /// Take documents out of the index; the files stay.
    Remove {
        /// Files, folders and addresses as they were added.
        #[arg(value_name = "PATH|URL")]
        what: Vec<String>,
        /// The collection that they belong to, `default` if not said; alone, all of it goes.
        #[arg(long, value_name = "NAME")]
        collection: Option<String>,
    },
    /// Look again at everything that was added from files: what changed is taken in, what is gone goes.
    Refresh,
    /// Find passages, and show what speaks for each.
    Search {
        /// What to look for.
        query: String,
        /// In this collection only.
        #[arg(long, value_name = "NAME")]
        collection: Option<String>,
        /// How many at most.
        #[arg(long, value_name = "N", default_value = "5")]
        limit: std::num::NonZeroUsize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CorpusFormat {
    Files,
    Beir,
}

#[derive(Subcommand)]
pub enum EvalCommand {
    /// Recall and nDCG over a folder with corpus.jsonl, queries.jsonl and qrels.
    Retrieval {
        /// The folder.
        directory: PathBuf,
    },
}
