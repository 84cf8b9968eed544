//! Arguments of `lango undo`, `lango trash` and `lango skill`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(clap::Args)]
pub struct UndoArgs {
    /// Only show what would be undone.
    #[arg(long, conflicts_with = "skip")]
    pub show: bool,
    /// Keep the last turn, so that the next undo applies to the turn before it.
    #[arg(long)]
    pub skip: bool,
}

#[derive(Subcommand)]
pub enum TrashCommand {
    /// List deleted files, newest first.
    List,
    /// Restore a file or folder to its original path.
    Restore {
        /// The id of the entry, or the end of its path.
        which: String,
    },
    /// Permanently delete the contents of the trash.
    Empty {
        /// Only entries deleted more than this many days ago.
        #[arg(long, value_name = "DAYS")]
        older_than: Option<u32>,
    },
}

#[derive(Subcommand)]
pub enum SkillCommand {
    /// List skills with their origin.
    List,
    /// Print a skill.
    Show {
        /// The name of the skill.
        name: String,
    },
    /// Check a skill for errors and suspicious content.
    Check {
        /// The folder that contains the SKILL.md.
        path: PathBuf,
    },
    /// Copy a skill to your user folder, after you confirm it.
    Add {
        /// The folder that contains the SKILL.md.
        path: PathBuf,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}
