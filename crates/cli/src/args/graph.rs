//! What can be typed about the knowledge graph.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum GraphCommand {
    /// Take in the facts of files: subject, predicate, object. Lines that are none are reported and left out.
    Import {
        /// The files; - for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// What they are; by the ends of their names when not given.
        #[arg(long)]
        format: Option<FactFormat>,
    },
    /// Print every fact, in an order that stays the same.
    Export {
        /// Write into this file instead.
        file: Option<PathBuf>,
        /// Lines of columns, N-Triples (without sources and validity: what holds now), or lines of JSON.
        #[arg(long)]
        format: Option<FactFormat>,
    },
    /// Find facts by their parts.
    Query {
        /// A name that is their subject or their object.
        #[arg(required_unless_present_any = ["subject", "predicate", "object"])]
        name: Option<String>,
        /// With this subject.
        #[arg(long, conflicts_with = "name")]
        subject: Option<String>,
        /// With this predicate.
        #[arg(long)]
        predicate: Option<String>,
        /// With this object.
        #[arg(long, conflicts_with = "name")]
        object: Option<String>,
        /// As it was then, instead of now.
        #[arg(long, value_name = "DATE")]
        at: Option<String>,
        /// Also what held before or will hold.
        #[arg(long, conflicts_with = "at")]
        ever: bool,
        /// So many at most.
        #[arg(long, default_value = "100")]
        limit: NonZeroUsize,
    },
    /// Find everything around a name, nearest first.
    Traverse {
        /// The name to begin at.
        name: String,
        /// So many facts away.
        #[arg(long, default_value = "2")]
        depth: NonZeroU32,
        /// Along this predicate only; may be given several times.
        #[arg(long = "predicate", value_name = "PREDICATE")]
        predicates: Vec<String>,
        /// Which way facts are followed.
        #[arg(long, default_value = "both")]
        direction: GraphDirection,
        /// As it was then, instead of now.
        #[arg(long, value_name = "DATE")]
        at: Option<String>,
        /// So many facts at most.
        #[arg(long, default_value = "1000")]
        limit: NonZeroUsize,
    },
    /// Find how two names are connected.
    Path {
        /// The name to begin at.
        from: String,
        /// The name to reach.
        to: String,
        /// So many facts long at most.
        #[arg(long, default_value = "6")]
        depth: NonZeroU32,
        /// As it was then, instead of now.
        #[arg(long, value_name = "DATE")]
        at: Option<String>,
    },
    /// Add one fact.
    Add {
        #[command(flatten)]
        triple: TripleArgs,
        /// What kind of thing the subject is.
        #[arg(long, value_name = "TYPE", default_value = "")]
        subject_type: String,
        /// What kind of thing the object is.
        #[arg(long, value_name = "TYPE", default_value = "")]
        object_type: String,
        /// What else is known about it; the value may be JSON. May be given several times.
        #[arg(long = "property", value_name = "KEY=VALUE")]
        properties: Vec<String>,
        /// The first day on which it holds.
        #[arg(long, value_name = "DATE")]
        from: Option<String>,
        /// The first day on which it does not hold any more.
        #[arg(long, value_name = "DATE")]
        to: Option<String>,
    },
    /// Say that a fact does not hold any more; that it did stays known.
    Retire {
        #[command(flatten)]
        triple: TripleArgs,
        /// From this day on instead of now.
        #[arg(long, value_name = "DATE")]
        at: Option<String>,
    },
    /// Take out everything that a source told, as if it had never been told.
    Forget {
        /// As `lango graph query` shows it.
        source: String,
    },
    /// Show how much there is, and of what.
    Stats,
    /// Draw what is around a name: `lango graph show berlin > berlin.svg`.
    Show {
        /// The name in the middle; the one with most facts when none is given.
        name: Option<String>,
        /// So many facts away.
        #[arg(long, default_value = "2")]
        depth: NonZeroU32,
        /// So many facts at most.
        #[arg(long, default_value = "60")]
        limit: NonZeroUsize,
        /// A picture, or a text for Graphviz.
        #[arg(long, default_value = "svg")]
        format: DiagramFormat,
        /// As it was then, instead of now.
        #[arg(long, value_name = "DATE")]
        at: Option<String>,
    },
}

#[derive(clap::Args)]
pub struct TripleArgs {
    /// What the fact is about.
    pub subject: String,
    /// How it is connected.
    pub predicate: String,
    /// What it is connected with.
    pub object: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FactFormat {
    Tsv,
    #[value(alias = "ntriples")]
    Nt,
    #[value(alias = "json")]
    Jsonl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GraphDirection {
    Both,
    Out,
    In,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DiagramFormat {
    Svg,
    Dot,
}
