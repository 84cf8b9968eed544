//! Tools that change the graph: `graph_add_fact` and `graph_retire_fact`.

use lango_domain::graph::{FactProvenance, FactSource};
use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{LazyGraph, facts_json, load_snapshot, tool_error};
use crate::{AsOf, FactPattern, FactRetirement, Moment, NewFact};

#[derive(Deserialize, JsonSchema)]
struct GraphAddFactArgs {
    #[schemars(description = "What the fact is about.")]
    subject: String,
    #[schemars(description = "How it is connected: a relation such as `works_at`.")]
    predicate: String,
    #[schemars(description = "What it is connected with.")]
    object: String,
    #[schemars(description = "What kind of thing the subject is: person, city.")]
    #[serde(default)]
    subject_type: String,
    #[schemars(description = "What kind of thing the object is.")]
    #[serde(default)]
    object_type: String,
    #[schemars(description = "What else is known about the fact.")]
    #[serde(default)]
    properties: Map<String, Value>,
    /// The first day on which it holds: 2024-05-31, or 2024.
    valid_from: Option<String>,
    /// The first day on which it does not hold any more.
    valid_to: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct GraphRetireFactArgs {
    /// The subject of the fact, as `graph_query` gives it.
    subject: String,
    /// Its predicate.
    predicate: String,
    /// Its object.
    object: String,
    /// The first day on which it does not hold any more; today if not said.
    valid_to: Option<String>,
}

pub(super) fn graph_add_fact(graph: LazyGraph) -> Tool {
    let description = "Adds a fact to the knowledge graph: subject, predicate, object. \
        Only what the user said or a source supports.";
    Tool::new(
        "graph_add_fact",
        description,
        Safety::Moderate,
        move |context: ToolContext, args: GraphAddFactArgs| {
            let graph = graph.clone();
            async move { run_add(&graph, &context, args).await }
        },
    )
    .with_intent(|_, args: GraphAddFactArgs| async move {
        let text = fact_text(&parse_fact(args)?);
        Ok(Intent {
            level: Safety::Moderate,
            shows: format!("add the fact: {text}"),
            subject: text,
            pattern: None,
        })
    })
    .with_phrases([
        "add [the] [a] [this] [new] fact [that] {subject:word} {predicate:word} {object}",
        "add [the] [a] [this] [new] fact [that] {subject} is [the] [a] {predicate:word} of {object}",
        "add {subject:word} {predicate:word} {object} to [the] [my] [knowledge] graph",
        "(tell|teach) [the] [my] [knowledge] graph that {subject:word} {predicate:word} {object}",
    ])
}

async fn run_add(
    graph: &LazyGraph,
    context: &ToolContext,
    args: GraphAddFactArgs,
) -> Result<String, ToolError> {
    let graph = graph.get().await.map_err(tool_error)?;
    let fact = parse_fact(args)?;
    let text = fact_text(&fact);
    graph
        .assert(&context.principal, provenance(context), &[fact])
        .await
        .map_err(tool_error)?;
    Ok(format!("Kept: {text}."))
}

pub(super) fn graph_retire_fact(graph: LazyGraph) -> Tool {
    let description = "Says that a fact of the knowledge graph does not hold any more, \
        from a day on. That it held stays known.";
    Tool::new(
        "graph_retire_fact",
        description,
        Safety::Moderate,
        move |context: ToolContext, args: GraphRetireFactArgs| {
            let graph = graph.clone();
            async move { run_retire(&graph, &context, &args).await }
        },
    )
    .with_intent(|_, args: GraphRetireFactArgs| async move {
        let text = format!("{} {} {}", args.subject, args.predicate, args.object);
        Ok(Intent {
            level: Safety::Moderate,
            shows: format!("end the fact: {text}"),
            subject: text,
            pattern: None,
        })
    })
    .with_phrases([
        "(retire|end|withdraw) [the] [a] [this] fact [that] {subject:word} {predicate:word} {object}",
        "(retire|end|withdraw) [the] [a] [this] fact [that] {subject} is [the] [a] {predicate:word} of {object}",
        "[the] fact [that] {subject:word} {predicate:word} {object} (does not hold|is not true|is no longer true) [any more]",
    ])
}

async fn run_retire(
    graph: &LazyGraph,
    context: &ToolContext,
    args: &GraphRetireFactArgs,
) -> Result<String, ToolError> {
    let valid_to = args.valid_to.as_deref();
    let at = valid_to.map(str::parse).transpose()?;
    let (snapshot, as_of) = load_snapshot(graph, &context.principal, valid_to).await?;
    let graph = graph.get().await.map_err(tool_error)?;
    let at = at.unwrap_or_else(|| graph.now());
    let (subject, object) = (snapshot.find(&args.subject)?, snapshot.find(&args.object)?);
    let predicate = snapshot.find_predicate(&args.predicate)?;
    let pattern = FactPattern {
        subject: Some(subject),
        predicate: Some(predicate),
        object: Some(object),
    };
    if snapshot.query(pattern, as_of, 1).facts.is_empty() {
        let pattern = FactPattern {
            predicate: None,
            ..pattern
        };
        let known = facts_json(&snapshot, &snapshot.query(pattern, AsOf::AnyTime, 5));
        return Err(ToolError(format!(
            "the graph has no such fact that is valid then; known facts: {}",
            known["items"]
        )));
    }
    let (subject, object) = (snapshot.name(subject), snapshot.name(object));
    let predicate = snapshot.predicate_name(predicate);
    let retirement = FactRetirement {
        subject: subject.to_owned(),
        predicate: predicate.to_owned(),
        object: object.to_owned(),
        at,
    };
    graph
        .retire(&context.principal, provenance(context), &[retirement])
        .await
        .map_err(tool_error)?;
    Ok(format!("Ended on {at}: {subject} {predicate} {object}."))
}

fn parse_fact(args: GraphAddFactArgs) -> Result<NewFact, ToolError> {
    let moment = |text: Option<String>| text.map(|text| text.parse::<Moment>()).transpose();
    Ok(NewFact {
        subject: args.subject,
        predicate: args.predicate,
        object: args.object,
        subject_type: args.subject_type,
        object_type: args.object_type,
        properties: args.properties,
        valid_from: moment(args.valid_from)?,
        valid_to: moment(args.valid_to)?,
    })
}

fn fact_text(fact: &NewFact) -> String {
    let from = fact
        .valid_from
        .map(|from| format!(", from {from}"))
        .unwrap_or_default();
    let to = fact
        .valid_to
        .map(|to| format!(", until {to}"))
        .unwrap_or_default();
    format!(
        "{} {} {}{from}{to}",
        fact.subject, fact.predicate, fact.object
    )
}

fn provenance(context: &ToolContext) -> FactProvenance {
    let source = FactSource::Session {
        session: context.session.clone(),
        event: context.call.to_string(),
    };
    FactProvenance {
        source,
        label: context.label.clone(),
    }
}
