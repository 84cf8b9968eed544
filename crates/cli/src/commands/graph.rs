//! `lango graph …`: the knowledge graph.

mod edit;
mod import_export;
mod query;

use lango_app::capability::graph::{
    AsOf, DateError, Direction, Graph, GraphError, GraphSnapshot, Traversal, UnknownName, diagram,
};
use lango_app::open_graph;
use lango_domain::event::Principal;
use lango_domain::graph::{FactSource, FactSourceFilter};
use lango_text::sanitize::one_line;
use serde_json::json;

use super::{CommandContext, runtime};
use crate::args::{DiagramFormat, GlobalArgs, GraphCommand, GraphShowArgs};
use crate::output::{CliError, CommandOutput};

/// The maximum number of predicates, names and sources that `stats` lists.
const MAX_COUNTED: usize = 20;

pub fn run(global: &GlobalArgs, command: GraphCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let graph = open_graph(context.stores.open()?);
    runtime()?.block_on(run_command(&context, &graph, command))
}

async fn run_command(
    context: &CommandContext,
    graph: &Graph,
    command: GraphCommand,
) -> Result<CommandOutput, CliError> {
    match command {
        GraphCommand::Import { files, format } => {
            import_export::import(context, graph, &files, format).await
        }
        GraphCommand::Export { file, format } => {
            import_export::export(context, graph, file, format).await
        }
        GraphCommand::Add {
            triple,
            subject_type,
            object_type,
            properties,
            from,
            to,
        } => {
            let details = edit::FactDetails {
                subject_type,
                object_type,
                properties,
                from,
                to,
            };
            edit::add(graph, triple, details).await
        }
        GraphCommand::Retire { triple, at } => edit::retire(graph, triple, at.as_deref()).await,
        GraphCommand::Forget { source } => forget(graph, &source).await,
        GraphCommand::Query(args) => query::query(graph, &args).await,
        GraphCommand::Traverse(args) => query::traverse(graph, &args).await,
        GraphCommand::Path(args) => query::path(graph, &args).await,
        GraphCommand::Show(args) => show(graph, &args).await,
        GraphCommand::Stats => stats(graph).await,
    }
}

fn parse_as_of(graph: &Graph, at: Option<&str>) -> Result<AsOf, CliError> {
    let date = at.map(str::parse).transpose()?;
    Ok(AsOf::At(date.unwrap_or_else(|| graph.now())))
}

async fn snapshot(graph: &Graph) -> Result<GraphSnapshot, CliError> {
    Ok(graph.snapshot(&Principal::local()).await?)
}

async fn forget(graph: &Graph, source: &str) -> Result<CommandOutput, CliError> {
    let filter = FactSourceFilter::One(FactSource::from(source));
    if !graph.forget_source(&Principal::local(), filter).await? {
        let message = format!("no facts come from the source `{}`", one_line(source));
        return Err(CliError::usage(message).with_hint("`lango graph stats` lists the sources"));
    }
    Ok(CommandOutput::new(
        "Forgotten.\n",
        json!({ "forgotten": source }),
    ))
}

async fn show(graph: &Graph, args: &GraphShowArgs) -> Result<CommandOutput, CliError> {
    let snapshot = snapshot(graph).await?;
    let traversal = Traversal {
        depth: args.depth.get(),
        predicates: Vec::new(),
        direction: Direction::Both,
        as_of: parse_as_of(graph, args.at.as_deref())?,
        limit: args.limit.get(),
    };
    let start = match args.name.as_deref() {
        Some(name) => snapshot.find(name)?,
        None => match snapshot.stats(traversal.as_of, 1).busiest.first() {
            Some(busiest) => snapshot.find(&busiest.name)?,
            None => return Err(empty_graph_error()),
        },
    };
    let diagram = diagram::build_diagram(&snapshot, &snapshot.traverse(start, &traversal));
    let (format, text) = match args.format {
        DiagramFormat::Svg => ("svg", diagram::render_svg(&diagram)),
        DiagramFormat::Dot => ("dot", diagram::render_dot(&diagram)),
    };
    Ok(CommandOutput::new(
        text.clone(),
        json!({ "format": format, "picture": text }),
    ))
}

fn empty_graph_error() -> CliError {
    CliError::usage("the graph is empty").with_hint(
        "add facts with `lango graph import FILE` or `lango graph add SUBJECT PREDICATE OBJECT`",
    )
}

async fn stats(graph: &Graph) -> Result<CommandOutput, CliError> {
    let as_of = parse_as_of(graph, None)?;
    let stats = snapshot(graph).await?.stats(as_of, MAX_COUNTED);
    let mut plain = format!(
        "{} names, {} facts, {} of them valid now.\n",
        stats.names, stats.facts, stats.holding
    );
    for (title, counts) in [
        ("Predicates", &stats.predicates),
        ("Names with the most facts", &stats.busiest),
        ("Sources", &stats.sources),
    ] {
        if !counts.is_empty() {
            plain.push_str(&format!("\n{title}\n"));
        }
        for count in counts {
            plain.push_str(&format!("{:>9}  {}\n", count.facts, one_line(&count.name)));
        }
    }
    let json = serde_json::to_value(stats).unwrap_or_default();
    Ok(CommandOutput::new(plain, json))
}

impl From<GraphError> for CliError {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Fact(error) => Self::usage(error.to_string()),
            other => Self::store(other.to_string()).with_hint("run `lango doctor` for details"),
        }
    }
}

impl From<UnknownName> for CliError {
    fn from(error: UnknownName) -> Self {
        let near: Vec<String> = error.near.iter().map(|name| format!("`{name}`")).collect();
        let hint = match near.is_empty() {
            true => "`lango graph stats` lists the names with the most facts".to_owned(),
            false => format!("did you mean {}?", near.join(" or ")),
        };
        Self::usage(error.to_string()).with_hint(hint)
    }
}

impl From<DateError> for CliError {
    fn from(error: DateError) -> Self {
        Self::usage(error.to_string())
    }
}
