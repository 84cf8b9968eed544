//! The librarian's tools for the knowledge graph.

mod edit;
mod query;

use lango_domain::event::Principal;
use lango_domain::{LabeledText, Tool, ToolError, ToolOutput};
use serde_json::{Value, json};

use super::{AsOf, DateError, FactHits, Graph, GraphError, GraphSnapshot, Moment, UnknownName};
use lango_domain::lazy::Lazy;

pub type LazyGraph = Lazy<Graph, GraphError>;

fn tool_error(error: GraphError) -> ToolError {
    match error {
        GraphError::Fact(error) => ToolError(format!("invalid fact: {error}")),
        other => ToolError(format!("the knowledge graph is not available: {other}")),
    }
}

impl From<UnknownName> for ToolError {
    fn from(error: UnknownName) -> Self {
        Self(error.to_string())
    }
}

impl From<DateError> for ToolError {
    fn from(error: DateError) -> Self {
        Self(error.to_string())
    }
}

pub fn tools(graph: &LazyGraph) -> Vec<Tool> {
    let graph = || graph.clone();
    vec![
        query::graph_query(graph()),
        query::graph_traverse(graph()),
        query::graph_path(graph()),
        edit::graph_add_fact(graph()),
        edit::graph_retire_fact(graph()),
    ]
}

/// Returns the current facts and the moment to query them at, which defaults to now.
async fn load_snapshot(
    graph: &LazyGraph,
    principal: &Principal,
    at: Option<&str>,
) -> Result<(GraphSnapshot, AsOf), ToolError> {
    let graph = graph.get().await.map_err(tool_error)?;
    let at: Option<Moment> = at.map(str::parse).transpose()?;
    let snapshot = graph.snapshot(principal).await.map_err(tool_error)?;
    Ok((snapshot, AsOf::At(at.unwrap_or_else(|| graph.now()))))
}

fn check_range<N: PartialOrd + From<u8> + std::fmt::Display>(
    name: &str,
    number: N,
    max: N,
) -> Result<N, ToolError> {
    if number < N::from(1) || number > max {
        return Err(ToolError(format!("`{name}` must be from 1 to {max}")));
    }
    Ok(number)
}

fn label_output(snapshot: &GraphSnapshot, facts: &[u32], text: String) -> ToolOutput {
    ToolOutput::from_labeled(LabeledText {
        text,
        label: snapshot.label(facts),
    })
}

/// Returns facts in the JSON form that every command and tool uses.
pub fn facts_json(snapshot: &GraphSnapshot, hits: &FactHits) -> Value {
    let items: Vec<_> = hits
        .facts
        .iter()
        .map(|fact| snapshot.fact_item(*fact))
        .collect();
    match hits.has_more {
        true => json!({ "items": items, "more": true }),
        false => json!({ "items": items }),
    }
}
