//! What can be typed about documents.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum IndexCommand {
    /// Take in files, folders and pages; what did not change costs nothing.
    Add {
        /// Paths and addresses.
        #[arg(required = true, value_name = "PATH|URL")]
        what: Vec<String>,
        /// The collection that they belong to.
        #[arg(long, default_value = "default")]
        collection: String,
        /// Files and folders, or a folder with a corpus in the BEIR form.
        #[arg(long, default_value = "files")]
        format: Corpus,
    },
    /// List the collections.
    List,
    /// Take documents out; all of the collection when none is named.
    Remove {
        /// Paths and addresses as they were added.
        #[arg(value_name = "PATH|URL")]
        what: Vec<String>,
        /// The collection that they belong to.
        #[arg(long, default_value = "default")]
        collection: String,
    },
    /// Look again at everything that was added from files.
    Refresh,
    /// Find passages, and show what speaks for each.
    Search {
        /// What to look for.
        query: String,
        /// In this collection only.
        #[arg(long)]
        collection: Option<String>,
        /// How many.
        #[arg(long, default_value = "5")]
        limit: std::num::NonZeroUsize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Corpus {
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
