//! Arguments of `lango memory`.

use std::num::NonZeroUsize;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum MemoryCommand {
    /// Show the number of memories, and the model that observes.
    Status,
    /// List observations, newest first.
    Observations(MemoryListArgs),
    /// List reflections, newest first.
    Reflections(MemoryListArgs),
    /// Show the source of a memory: its session, events and their text.
    Why {
        /// The id of the memory, for example o12 or r3.
        id: String,
    },
    /// Permanently forget memories by id or text; matches are shown first.
    Forget {
        /// Ids (o12, r3) or a text to match.
        #[arg(required = true, value_name = "ID|QUERY")]
        query: Vec<String>,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(clap::Args)]
pub struct MemoryListArgs {
    /// Only this session.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The maximum number of memories.
    #[arg(long, value_name = "N", default_value = "100")]
    pub limit: NonZeroUsize,
}
