//! Queries, traversals and paths.

use std::collections::HashMap;

use lango_app::capability::graph::{
    AsOf, Direction, FactHits, FactPattern, Graph, GraphSnapshot, Traversal, TraversalResult,
    facts_json,
};
use lango_text::sanitize::one_line;
use serde_json::json;

use super::{parse_as_of, snapshot};
use crate::args::{FactQueryArgs, GraphDirection, PathArgs, TraverseArgs};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub async fn query(graph: &Graph, args: &FactQueryArgs) -> Result<CommandOutput, CliError> {
    let snapshot = snapshot(graph).await?;
    let as_of = if args.ever {
        AsOf::AnyTime
    } else {
        parse_as_of(graph, args.at.as_deref())?
    };
    let find = |name: &Option<String>| name.as_deref().map(|name| snapshot.find(name)).transpose();
    let predicate = args
        .predicate
        .as_deref()
        .map(|name| snapshot.find_predicate(name))
        .transpose()?;
    let limit = args.limit.get();
    let hits = match find(&args.name)? {
        Some(name) => snapshot.facts_about(name, predicate, as_of, limit),
        None => {
            let pattern = FactPattern {
                subject: find(&args.subject)?,
                predicate,
                object: find(&args.object)?,
            };
            snapshot.query(pattern, as_of, limit)
        }
    };
    Ok(facts_output(&snapshot, &hits))
}

pub async fn traverse(graph: &Graph, args: &TraverseArgs) -> Result<CommandOutput, CliError> {
    let snapshot = snapshot(graph).await?;
    let predicates = args
        .predicates
        .iter()
        .map(|name| snapshot.find_predicate(name))
        .collect::<Result<_, _>>()?;
    let direction = match args.direction {
        GraphDirection::Both => Direction::Both,
        GraphDirection::Out => Direction::Out,
        GraphDirection::In => Direction::In,
    };
    let traversal = Traversal {
        depth: args.depth.get(),
        predicates,
        direction,
        as_of: parse_as_of(graph, args.at.as_deref())?,
        limit: args.limit.get(),
    };
    let result = snapshot.traverse(snapshot.find(&args.name)?, &traversal);
    Ok(traversal_output(&snapshot, &result))
}

pub async fn path(graph: &Graph, args: &PathArgs) -> Result<CommandOutput, CliError> {
    let snapshot = snapshot(graph).await?;
    let (from, to) = (snapshot.find(&args.from)?, snapshot.find(&args.to)?);
    let as_of = parse_as_of(graph, args.at.as_deref())?;
    match snapshot.shortest_path(from, to, args.depth.get(), as_of) {
        Some(facts) => {
            let hits = FactHits {
                facts,
                has_more: false,
            };
            Ok(facts_output(&snapshot, &hits))
        }
        None => {
            let (from, to) = (one_line(snapshot.name(from)), one_line(snapshot.name(to)));
            let plain = format!(
                "No path of up to {} facts connects {from} and {to}.\n",
                args.depth
            );
            Ok(CommandOutput::new(plain, json!({ "items": [] })))
        }
    }
}

fn facts_output(snapshot: &GraphSnapshot, hits: &FactHits) -> CommandOutput {
    let mut plain: String = hits
        .facts
        .iter()
        .map(|fact| fact_line(snapshot, *fact) + "\n")
        .collect();
    if hits.facts.is_empty() {
        plain.push_str("No facts found.\n");
    }
    CommandOutput::new(plain, facts_json(snapshot, hits)).with_warnings(truncation_warnings(hits))
}

fn truncation_warnings(hits: &FactHits) -> Vec<String> {
    if !hits.has_more {
        return Vec::new();
    }
    let count = hits.facts.len();
    vec![format!(
        "only the first {count} facts are shown; use --limit to show more"
    )]
}

fn fact_line(snapshot: &GraphSnapshot, fact: u32) -> String {
    let item = snapshot.fact_item(fact);
    let validity = match (&item.valid_from, &item.valid_to) {
        (None, None) => String::new(),
        (from, to) => {
            let date = |date: &Option<String>| date.clone().unwrap_or_default();
            format!("  [{} – {}]", date(from), date(to))
        }
    };
    let (subject, predicate, object) = (
        one_line(item.subject),
        one_line(item.predicate),
        one_line(item.object),
    );
    let source = styled(DIM, one_line(&item.source));
    format!(
        "{}  {predicate}  {}{validity}  {source}",
        styled(NAME, subject),
        styled(NAME, object)
    )
}

fn traversal_output(snapshot: &GraphSnapshot, result: &TraversalResult) -> CommandOutput {
    let depths: HashMap<u32, u32> = result.names.iter().copied().collect();
    let mut plain = String::new();
    for fact in &result.hits.facts {
        let ends = [snapshot.fact(*fact).subject, snapshot.fact(*fact).object];
        let depth = ends.iter().filter_map(|name| depths.get(name)).min();
        plain.push_str(&"  ".repeat(depth.copied().unwrap_or_default() as usize));
        plain.push_str(&fact_line(snapshot, *fact));
        plain.push('\n');
    }
    if result.hits.facts.is_empty() {
        plain.push_str("No connected facts found.\n");
    }
    let node = |(name, depth): &(u32, u32)| {
        let kind = Some(snapshot.entity_type(*name)).filter(|kind| !kind.is_empty());
        json!({ "id": snapshot.name(*name), "depth": depth, "type": kind })
    };
    let nodes: Vec<_> = result.names.iter().map(node).collect();
    let edges = facts_json(snapshot, &result.hits)["items"].take();
    let json = json!({ "nodes": nodes, "edges": edges, "more": result.hits.has_more });
    CommandOutput::new(plain, json).with_warnings(truncation_warnings(&result.hits))
}
