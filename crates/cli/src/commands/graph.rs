//! `lango graph …`: facts and how they hang together.

mod edit;
mod import_export;

use lango_app::open_graph;
use lango_domain::event::Principal;
use lango_domain::graph::{FactSource, FactSourceFilter};
use lango_domain::text::one_line;
use lango_knowledge::graph::{
    AsOf, DateError, Direction, FactHits, FactPattern, Graph, GraphError, GraphSnapshot, Traversal,
    TraversalResult, UnknownName, diagram, facts_json,
};
use serde_json::json;

use super::{CommandContext, runtime};
use crate::args::{DiagramFormat, GlobalArgs, GraphCommand, GraphDirection};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// So many of each kind are counted by name.
const MAX_COUNTED: usize = 20;

pub fn run(global: &GlobalArgs, command: GraphCommand) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::load(global)?;
    let graph = open_graph(setting.store.open()?);
    runtime()?.block_on(async {
        match command {
            GraphCommand::Import { files, format } => {
                import_export::import(&setting, &graph, &files, format).await
            }
            GraphCommand::Export { file, format } => {
                import_export::export(&setting, &graph, file, format).await
            }
            GraphCommand::Add {
                triple,
                subject_type,
                object_type,
                properties,
                from,
                to,
            } => {
                let extras = edit::FactDetails {
                    subject_type,
                    object_type,
                    properties,
                    from,
                    to,
                };
                edit::add(&graph, triple, extras).await
            }
            GraphCommand::Retire { triple, at } => {
                edit::retire(&graph, triple, at.as_deref()).await
            }
            GraphCommand::Forget { source } => forget(&graph, &source).await,
            question => run_query(&graph, question).await,
        }
    })
}

async fn run_query(graph: &Graph, question: GraphCommand) -> Result<CommandOutput, CliError> {
    let view = graph.snapshot(&Principal::local()).await?;
    let when = |at: &Option<String>| parse_when(graph, at.as_deref());
    match question {
        GraphCommand::Query {
            name,
            subject,
            predicate,
            object,
            at,
            ever,
            limit,
        } => {
            let when = if ever { AsOf::AnyTime } else { when(&at)? };
            let number =
                |name: &Option<String>| name.as_deref().map(|name| view.find(name)).transpose();
            let predicate = predicate
                .as_deref()
                .map(|name| view.find_predicate(name))
                .transpose()?;
            let found = match number(&name)? {
                Some(name) => view.facts_about(name, predicate, when, limit.get()),
                None => {
                    let pattern = FactPattern {
                        subject: number(&subject)?,
                        predicate,
                        object: number(&object)?,
                    };
                    view.query(pattern, when, limit.get())
                }
            };
            Ok(facts_output(&view, &found))
        }
        GraphCommand::Traverse {
            name,
            depth,
            predicates,
            direction,
            at,
            limit,
        } => {
            let predicates = predicates
                .iter()
                .map(|name| view.find_predicate(name))
                .collect::<Result<_, _>>()?;
            let direction = match direction {
                GraphDirection::Both => Direction::Both,
                GraphDirection::Out => Direction::Out,
                GraphDirection::In => Direction::In,
            };
            let walk = Traversal {
                depth: depth.get(),
                predicates,
                direction,
                as_of: when(&at)?,
                limit: limit.get(),
            };
            Ok(traversal_output(
                &view,
                &view.traverse(view.find(&name)?, &walk),
            ))
        }
        GraphCommand::Path {
            from,
            to,
            depth,
            at,
        } => {
            let (from, to) = (view.find(&from)?, view.find(&to)?);
            match view.shortest_path(from, to, depth.get(), when(&at)?) {
                Some(facts) => Ok(facts_output(
                    &view,
                    &FactHits {
                        facts,
                        has_more: false,
                    },
                )),
                None => {
                    let (from, to) = (one_line(view.name(from)), one_line(view.name(to)));
                    let plain =
                        format!("No chain of up to {depth} facts connects {from} and {to}.\n");
                    Ok(CommandOutput::new(plain, json!({ "items": [] })))
                }
            }
        }
        GraphCommand::Show {
            name,
            depth,
            limit,
            format,
            at,
        } => {
            let (depth, limit) = (depth.get(), limit.get());
            let walk = Traversal {
                depth,
                predicates: Vec::new(),
                direction: Direction::Both,
                as_of: when(&at)?,
                limit,
            };
            show(&view, name.as_deref(), &walk, format)
        }
        _ => Ok(stats(&view, parse_when(graph, None)?)),
    }
}

fn parse_when(graph: &Graph, at: Option<&str>) -> Result<AsOf, CliError> {
    Ok(AsOf::At(
        at.map(str::parse)
            .transpose()?
            .unwrap_or_else(|| graph.now()),
    ))
}

async fn forget(graph: &Graph, source: &str) -> Result<CommandOutput, CliError> {
    let range = FactSourceFilter::One(FactSource::from(source));
    if !graph.forget_source(&Principal::local(), range).await? {
        let hint = "`lango graph stats` names the sources";
        return Err(
            CliError::usage(format!("nothing comes from `{}`", one_line(source))).with_hint(hint),
        );
    }
    Ok(CommandOutput::new(
        "Forgotten.\n",
        json!({ "forgotten": source }),
    ))
}

fn facts_output(view: &GraphSnapshot, found: &FactHits) -> CommandOutput {
    let mut plain: String = found
        .facts
        .iter()
        .map(|fact| fact_line(view, *fact) + "\n")
        .collect();
    if found.facts.is_empty() {
        plain.push_str("Nothing is known.\n");
    }
    CommandOutput::new(plain, facts_json(view, found)).with_warnings(truncation_warnings(found))
}

fn truncation_warnings(found: &FactHits) -> Vec<String> {
    let words = format!(
        "there are more than these {}; --limit shows them",
        found.facts.len()
    );
    if found.has_more {
        vec![words]
    } else {
        Vec::new()
    }
}

fn fact_line(view: &GraphSnapshot, fact: u32) -> String {
    let item = view.fact_item(fact);
    let when = match (&item.valid_from, &item.valid_to) {
        (None, None) => String::new(),
        (from, to) => {
            let shown = |moment: &Option<String>| moment.clone().unwrap_or_default();
            format!("  [{} – {}]", shown(from), shown(to))
        }
    };
    let (subject, predicate, object) = (
        one_line(item.subject),
        one_line(item.predicate),
        one_line(item.object),
    );
    let source = styled(DIM, one_line(&item.source));
    format!(
        "{}  {predicate}  {}{when}  {source}",
        styled(NAME, subject),
        styled(NAME, object)
    )
}

fn traversal_output(view: &GraphSnapshot, walked: &TraversalResult) -> CommandOutput {
    let depths: std::collections::HashMap<u32, u32> = walked.names.iter().copied().collect();
    let mut plain = String::new();
    for fact in &walked.hits.facts {
        let ends = [view.fact(*fact).subject, view.fact(*fact).object];
        let depth = ends
            .iter()
            .filter_map(|name| depths.get(name))
            .min()
            .copied()
            .unwrap_or_default();
        plain.push_str(&"  ".repeat(depth as usize));
        plain.push_str(&fact_line(view, *fact));
        plain.push('\n');
    }
    if walked.hits.facts.is_empty() {
        plain.push_str("Nothing is connected with it.\n");
    }
    let node = |(name, depth): &(u32, u32)| {
        let kind = Some(view.entity_type(*name)).filter(|kind| !kind.is_empty());
        json!({ "id": view.name(*name), "depth": depth, "type": kind })
    };
    let nodes: Vec<_> = walked.names.iter().map(node).collect();
    let edges = facts_json(view, &walked.hits)["items"].take();
    let json = json!({ "nodes": nodes, "edges": edges, "more": walked.hits.has_more });
    CommandOutput::new(plain, json).with_warnings(truncation_warnings(&walked.hits))
}

fn show(
    view: &GraphSnapshot,
    name: Option<&str>,
    walk: &Traversal,
    format: DiagramFormat,
) -> Result<CommandOutput, CliError> {
    let start = match name {
        Some(name) => view.find(name)?,
        None => match view.stats(walk.as_of, 1).busiest.first() {
            Some(busiest) => view.find(&busiest.name)?,
            None => return Err(empty_graph_error()),
        },
    };
    let sketch = diagram::build_diagram(view, &view.traverse(start, walk));
    let (kind, text) = match format {
        DiagramFormat::Svg => ("svg", diagram::render_svg(&sketch)),
        DiagramFormat::Dot => ("dot", diagram::render_dot(&sketch)),
    };
    Ok(CommandOutput::new(
        text.clone(),
        json!({ "format": kind, "picture": text }),
    ))
}

fn empty_graph_error() -> CliError {
    CliError::usage("the graph is empty")
        .with_hint("`lango graph import FILE` or `lango graph add SUBJECT PREDICATE OBJECT`")
}

fn stats(view: &GraphSnapshot, when: AsOf) -> CommandOutput {
    let stats = view.stats(when, MAX_COUNTED);
    let mut plain = format!(
        "{} names, {} facts, {} of them hold now.\n",
        stats.names, stats.facts, stats.holding
    );
    for (title, counts) in [
        ("Predicates", &stats.predicates),
        ("Names with most facts", &stats.busiest),
        ("Sources", &stats.sources),
    ] {
        if !counts.is_empty() {
            plain.push_str(&format!("\n{title}\n"));
        }
        for count in counts {
            plain.push_str(&format!("{:>9}  {}\n", count.facts, one_line(&count.name)));
        }
    }
    CommandOutput::new(plain, serde_json::to_value(stats).unwrap_or_default())
}

impl From<GraphError> for CliError {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Fact(error) => Self::usage(error.to_string()),
            other => Self::store(other.to_string()).with_hint("`lango doctor` looks into it"),
        }
    }
}

impl From<UnknownName> for CliError {
    fn from(error: UnknownName) -> Self {
        let near: Vec<String> = error.near.iter().map(|name| format!("`{name}`")).collect();
        let hint = match near.is_empty() {
            true => "`lango graph stats` names the busiest".to_owned(),
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
