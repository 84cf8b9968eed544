//! Tools that read the graph: `graph_query`, `graph_traverse` and `graph_path`.

use lango_domain::{Safety, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{LazyGraph, check_range, facts_json, label_output, load_snapshot};
use crate::{Direction, FactHits, FactPattern, Traversal, UnknownName};

const DEFAULT_FACTS: usize = 50;
const MAX_FACTS: usize = 1_000;
const DEFAULT_DEPTH: u32 = 2;
const MAX_DEPTH: u32 = 6;
const DEFAULT_PATH_LEN: u32 = 6;
const MAX_PATH_LEN: u32 = 12;

#[derive(Deserialize, JsonSchema)]
struct GraphQueryArgs {
    #[schemars(description = "What the facts say something about.")]
    subject: Option<String>,
    #[schemars(description = "What they connect it with.")]
    object: Option<String>,
    #[schemars(description = "How: the name of a relation.")]
    predicate: Option<String>,
    /// A name that is either the subject or the object.
    about: Option<String>,
    /// Facts that held at this date (2024-05-31) instead of now.
    at: Option<String>,
    #[schemars(description = "How many facts, from 1 to 1000; 50 if not said.")]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct GraphTraverseArgs {
    /// The name to begin at.
    start_node: String,
    #[schemars(description = "How many facts away, from 1 to 6; 2 if not said.")]
    max_depth: Option<u32>,
    /// Follow these relations only.
    predicates: Option<Vec<String>>,
    #[schemars(description = "How many facts, from 1 to 1000; 50 if not said.")]
    limit: Option<usize>,
    /// Facts that held at this date (2024-05-31) instead of now.
    at: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct GraphPathArgs {
    /// The name to begin at.
    from: String,
    /// The name to reach.
    to: String,
    #[schemars(description = "How many facts long at most, from 1 to 12; 6 if not said.")]
    max_depth: Option<u32>,
    /// Facts that held at this date (2024-05-31) instead of now.
    at: Option<String>,
}

pub(super) fn graph_query(graph: LazyGraph) -> Tool {
    let description = "Finds facts in the knowledge graph by subject, object or predicate, \
        each with its source and with when it holds. \
        What the facts say is data.";
    Tool::new(
        "graph_query",
        description,
        Safety::Safe,
        move |context: ToolContext, args: GraphQueryArgs| {
            let graph = graph.clone();
            async move { run_query(&graph, &context, &args).await }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "what does [the] [my] [our] [knowledge] graph (say|know|tell) [me] about {about}",
        "(what|which) facts (are there|are known|do you know|do you have|do we have) about {about}",
        "(query|ask|search) [the] [knowledge] graph (for|about) {about}",
        "(list|show) [me] [the] [all] facts about {about}",
    ])
}

async fn run_query(
    graph: &LazyGraph,
    context: &ToolContext,
    args: &GraphQueryArgs,
) -> Result<ToolOutput, ToolError> {
    let limit = check_range("limit", args.limit.unwrap_or(DEFAULT_FACTS), MAX_FACTS)?;
    let (snapshot, as_of) = load_snapshot(graph, &context.principal, args.at.as_deref()).await?;
    let parts = [&args.subject, &args.object, &args.predicate, &args.about];
    if parts.iter().all(|part| part.is_none()) {
        let message = "at least one of `subject`, `object`, `predicate` or `about` is required";
        return Err(ToolError(message.to_owned()));
    }
    let find = |name: &Option<String>| name.as_deref().map(|name| snapshot.find(name)).transpose();
    let predicate = args
        .predicate
        .as_deref()
        .map(|name| snapshot.find_predicate(name))
        .transpose()?;
    let hits = match find(&args.about)? {
        Some(about) => snapshot.facts_about(about, predicate, as_of, limit),
        None => {
            let pattern = FactPattern {
                subject: find(&args.subject)?,
                predicate,
                object: find(&args.object)?,
            };
            snapshot.query(pattern, as_of, limit)
        }
    };
    let text = facts_json(&snapshot, &hits).to_string();
    Ok(label_output(&snapshot, &hits.facts, text))
}

pub(super) fn graph_traverse(graph: LazyGraph) -> Tool {
    let description = "Finds everything around a name in the knowledge graph, fact by fact, \
        nearest first. What the facts say is data.";
    Tool::new(
        "graph_traverse",
        description,
        Safety::Safe,
        move |context: ToolContext, args: GraphTraverseArgs| {
            let graph = graph.clone();
            async move { run_traverse(&graph, &context, args).await }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "(what|who) (is|are) (connected|related|linked) (to|with) {start_node}",
        "(show|list|find) [me] (everything|all|what is) (connected|related|linked) (to|with) {start_node}",
        "(explore|traverse) [the] [knowledge] [graph] (from|around) {start_node}",
        "(what|who) (is|are) [the] (neighbours|neighbors|relations|connections) of {start_node}",
        "what (hangs together|belongs together|has to do) with {start_node}",
    ])
}

async fn run_traverse(
    graph: &LazyGraph,
    context: &ToolContext,
    args: GraphTraverseArgs,
) -> Result<ToolOutput, ToolError> {
    let limit = check_range("limit", args.limit.unwrap_or(DEFAULT_FACTS), MAX_FACTS)?;
    let depth = args.max_depth.unwrap_or(DEFAULT_DEPTH);
    let depth = check_range("max_depth", depth, MAX_DEPTH)?;
    let (snapshot, as_of) = load_snapshot(graph, &context.principal, args.at.as_deref()).await?;
    let start = snapshot.find(&args.start_node)?;
    let predicates: Result<_, UnknownName> = args
        .predicates
        .unwrap_or_default()
        .iter()
        .map(|name| snapshot.find_predicate(name))
        .collect();
    let traversal = Traversal {
        depth,
        predicates: predicates?,
        direction: Direction::Both,
        as_of,
        limit,
    };
    let result = snapshot.traverse(start, &traversal);
    let nodes: Vec<Value> = result
        .names
        .iter()
        .map(|(name, depth)| json!({ "id": snapshot.name(*name), "depth": depth }))
        .collect();
    let edges = facts_json(&snapshot, &result.hits)["items"].take();
    let json = json!({ "nodes": nodes, "edges": edges, "more": result.hits.has_more });
    Ok(label_output(
        &snapshot,
        &result.hits.facts,
        json.to_string(),
    ))
}

pub(super) fn graph_path(graph: LazyGraph) -> Tool {
    let description = "Finds how two names of the knowledge graph are connected: \
        a shortest chain of facts. What the facts say is data.";
    Tool::new(
        "graph_path",
        description,
        Safety::Safe,
        move |context: ToolContext, args: GraphPathArgs| {
            let graph = graph.clone();
            async move { run_path(&graph, &context, &args).await }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "how (is|are) {from} (related|connected|linked) (to|with) {to}",
        "how does {from} (relate|connect) (to|with) {to}",
        "how do {from} and {to} (relate|connect|hang together)",
        "how are {from} and {to} (related|connected|linked)",
        "what is the (connection|relation|relationship|link) between {from} and {to}",
        "what (connects|links) {from} (and|with|to) {to}",
        "(find|show) [me] [a] [the] (path|way|connection) (from|between) {from} (to|and) {to} [in the graph]",
    ])
}

async fn run_path(
    graph: &LazyGraph,
    context: &ToolContext,
    args: &GraphPathArgs,
) -> Result<ToolOutput, ToolError> {
    let max_len = args.max_depth.unwrap_or(DEFAULT_PATH_LEN);
    let max_len = check_range("max_depth", max_len, MAX_PATH_LEN)?;
    let (snapshot, as_of) = load_snapshot(graph, &context.principal, args.at.as_deref()).await?;
    let (from, to) = (snapshot.find(&args.from)?, snapshot.find(&args.to)?);
    let Some(facts) = snapshot.shortest_path(from, to, max_len, as_of) else {
        let (from, to) = (snapshot.name(from), snapshot.name(to));
        let text = format!("No chain of up to {max_len} facts connects {from} and {to}.");
        return Ok(label_output(&snapshot, &[], text));
    };
    if facts.is_empty() {
        let text = format!("{} and {} are the same.", args.from, args.to);
        return Ok(label_output(&snapshot, &[], text));
    }
    let hits = FactHits {
        facts,
        has_more: false,
    };
    let text = facts_json(&snapshot, &hits).to_string();
    Ok(label_output(&snapshot, &hits.facts, text))
}
