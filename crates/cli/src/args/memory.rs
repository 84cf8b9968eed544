//! What can be typed about memory.

use std::num::NonZeroUsize;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum MemoryCommand {
    /// Say how much is remembered, and who observes.
    Status,
    /// List observations, the newest first.
    Observations(MemoryListArgs),
    /// List reflections, the newest first.
    Reflections(MemoryListArgs),
    /// Show where a memory comes from: session, events and their words.
    Why {
        /// The memory's id, as in o12 or r3.
        id: String,
    },
    /// Forget for good: by id, or by words; what is found is shown first.
    Forget {
        /// Ids (o12, r3) or words.
        #[arg(required = true, value_name = "ID|QUERY")]
        what: Vec<String>,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(clap::Args)]
pub struct MemoryListArgs {
    /// Of this session only.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// How many.
    #[arg(long, value_name = "N", default_value = "100")]
    pub limit: NonZeroUsize,
}
