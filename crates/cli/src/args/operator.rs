//! What can be typed about files and skills.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(clap::Args)]
pub struct UndoArgs {
    /// Only show what would be taken back.
    #[arg(long, conflicts_with = "skip")]
    pub show: bool,
    /// Leave the last turn as it is, so that the next undo goes further back.
    #[arg(long)]
    pub skip: bool,
}

#[derive(Subcommand)]
pub enum TrashCommand {
    /// List what was deleted, the newest first.
    List,
    /// Bring something back to where it was.
    Restore {
        /// Its id, or the end of its path.
        which: String,
    },
    /// Remove what is in the trash for good.
    Empty {
        /// Only what was deleted more than so many days ago.
        #[arg(long, value_name = "DAYS")]
        older_than: Option<u32>,
    },
}

#[derive(Subcommand)]
pub enum SkillCommand {
    /// List them, with where they come from.
    List,
    /// Show what a skill says.
    Show {
        /// The skill's name.
        name: String,
    },
    /// Look for mistakes and for what is worth a second look.
    Check {
        /// The folder that holds the SKILL.md.
        path: PathBuf,
    },
    /// Copy a skill into your own folder, after you have looked at it.
    Add {
        /// The folder that holds the SKILL.md.
        path: PathBuf,
        /// Take it in without a question.
        #[arg(long)]
        yes: bool,
    },
}
