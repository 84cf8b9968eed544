//! Arguments of `lango index` and `lango eval`.

use std::path::PathBuf;

use clap::Subcommand;
use lango_app::capability::documents::rag_index::{DEFAULT_COLLECTION, parse_collection_name};

#[derive(Subcommand)]
pub enum IndexCommand {
    /// Add files, folders and web pages; unchanged documents are skipped.
    Add {
        /// Files, folders and URLs.
        #[arg(required = true, value_name = "PATH|URL")]
        targets: Vec<String>,
        /// The collection to add to.
        #[arg(long, value_name = "NAME", default_value = DEFAULT_COLLECTION, value_parser = parse_collection_name)]
        collection: String,
        /// The input format: files and folders, or a folder with a BEIR corpus.
        #[arg(long, default_value = "files")]
        format: CorpusFormat,
    },
    /// List the collections.
    List,
    /// Remove documents from the index; the files stay.
    Remove {
        /// Files, folders and URLs, as they were added.
        #[arg(value_name = "PATH|URL")]
        targets: Vec<String>,
        /// The collection, `default` if not given; without paths, the whole collection is removed.
        #[arg(long, value_name = "NAME")]
        collection: Option<String>,
    },
    /// Update documents that were added from files, and remove those whose files are gone.
    Refresh,
    /// Search for passages, with a score for each.
    Search {
        /// The search query.
        query: String,
        /// Search only this collection.
        #[arg(long, value_name = "NAME")]
        collection: Option<String>,
        /// The maximum number of passages.
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
    /// Measure recall and nDCG on a folder with corpus.jsonl, queries.jsonl and qrels.
    Retrieval {
        /// The folder of the evaluation data.
        directory: PathBuf,
    },
}
