//! Arguments of `lango graph`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum GraphCommand {
    /// Import facts (subject, predicate, object) from files. Invalid lines are reported and
    /// skipped.
    Import {
        /// The files; - for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// The file format [default: from the file extension].
        #[arg(long)]
        format: Option<FactFormat>,
    },
    /// Print every fact, in a stable order.
    Export {
        /// Write to this file instead.
        file: Option<PathBuf>,
        /// The output format; N-Triples contain only current facts, without sources and validity.
        #[arg(long)]
        format: Option<FactFormat>,
    },
    /// Find facts by subject, predicate or object.
    Query(FactQueryArgs),
    /// Find the neighborhood of a name, nearest facts first.
    Traverse(TraverseArgs),
    /// Find the shortest path between two names.
    Path(PathArgs),
    /// Add one fact.
    Add {
        #[command(flatten)]
        triple: TripleArgs,
        /// The type of the subject.
        #[arg(long, value_name = "TYPE", default_value = "")]
        subject_type: String,
        /// The type of the object.
        #[arg(long, value_name = "TYPE", default_value = "")]
        object_type: String,
        /// A property of the fact; the value may be JSON. Can be repeated.
        #[arg(long = "property", value_name = "KEY=VALUE")]
        properties: Vec<String>,
        /// The first day on which the fact is valid.
        #[arg(long, value_name = "DATE")]
        from: Option<String>,
        /// The first day on which the fact is no longer valid.
        #[arg(long, value_name = "DATE")]
        to: Option<String>,
    },
    /// End the validity of a fact; its history is kept.
    Retire {
        #[command(flatten)]
        triple: TripleArgs,
        /// The day on which it ends, instead of now.
        #[arg(long, value_name = "DATE")]
        at: Option<String>,
    },
    /// Delete every fact of a source, including its history.
    Forget {
        /// The source, as printed by `lango graph query`.
        source: String,
    },
    /// Show the number of facts, predicates and sources.
    Stats,
    /// Draw the neighborhood of a name: `lango graph show berlin > berlin.svg`.
    Show(GraphShowArgs),
}

#[derive(clap::Args)]
pub struct FactQueryArgs {
    /// A name that is the subject or the object.
    #[arg(required_unless_present_any = ["subject", "predicate", "object"])]
    pub name: Option<String>,
    /// With this subject.
    #[arg(long, conflicts_with = "name")]
    pub subject: Option<String>,
    /// With this predicate.
    #[arg(long)]
    pub predicate: Option<String>,
    /// With this object.
    #[arg(long, conflicts_with = "name")]
    pub object: Option<String>,
    /// Show facts that were valid on this date instead of now.
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
    /// Also show facts that are no longer or not yet valid.
    #[arg(long, conflicts_with = "at")]
    pub ever: bool,
    /// The maximum number of facts.
    #[arg(long, default_value = "100")]
    pub limit: NonZeroUsize,
}

#[derive(clap::Args)]
pub struct TraverseArgs {
    /// The name to start from.
    pub name: String,
    /// The maximum distance, in facts.
    #[arg(long, default_value = "2")]
    pub depth: NonZeroU32,
    /// Follow only this predicate; can be repeated.
    #[arg(long = "predicate", value_name = "PREDICATE")]
    pub predicates: Vec<String>,
    /// The direction in which facts are followed.
    #[arg(long, default_value = "both")]
    pub direction: GraphDirection,
    /// Show facts that were valid on this date instead of now.
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
    /// The maximum number of facts.
    #[arg(long, default_value = "1000")]
    pub limit: NonZeroUsize,
}

#[derive(clap::Args)]
pub struct PathArgs {
    /// The name to start from.
    pub from: String,
    /// The name to reach.
    pub to: String,
    /// The maximum length of the path, in facts.
    #[arg(long, default_value = "6")]
    pub depth: NonZeroU32,
    /// Show facts that were valid on this date instead of now.
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
}

#[derive(clap::Args)]
pub struct GraphShowArgs {
    /// The name in the center [default: the name with the most facts].
    pub name: Option<String>,
    /// The maximum distance, in facts.
    #[arg(long, default_value = "2")]
    pub depth: NonZeroU32,
    /// The maximum number of facts.
    #[arg(long, default_value = "60")]
    pub limit: NonZeroUsize,
    /// An SVG image, or DOT text for Graphviz.
    #[arg(long, default_value = "svg")]
    pub format: DiagramFormat,
    /// Show facts that were valid on this date instead of now.
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
}

#[derive(clap::Args)]
pub struct TripleArgs {
    /// The subject of the fact.
    pub subject: String,
    /// The predicate of the fact.
    pub predicate: String,
    /// The object of the fact.
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
