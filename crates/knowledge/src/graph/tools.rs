//! The librarian's tools for the knowledge graph.

use lango_domain::event::Principal;
use lango_domain::graph::{FactProvenance, FactSource};
use lango_domain::{Intent, LabeledText, Safety, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    AsOf, DateError, Direction, FactHits, FactPattern, FactRetirement, Graph, GraphError,
    GraphSnapshot, Moment, NewFact, Traversal, UnknownName,
};
use crate::lazy::Lazy;

const DEFAULT_FACTS: usize = 50;
const MAX_FACTS: usize = 1_000;
const DEFAULT_DEPTH: u32 = 2;
const MAX_DEPTH: u32 = 6;
const DEFAULT_PATH_LEN: u32 = 6;
const MAX_PATH_LEN: u32 = 12;

pub type LazyGraph = Lazy<Graph, GraphError>;

fn tool_error(error: GraphError) -> ToolError {
    match error {
        GraphError::Fact(error) => ToolError(format!("this is no fact: {error}")),
        other => ToolError(format!("the knowledge graph cannot be used: {other}")),
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

#[derive(Deserialize, JsonSchema)]
struct GraphQueryArgs {
    /// What the facts say something about.
    subject: Option<String>,
    /// What they connect it with.
    object: Option<String>,
    /// How: the name of a relation.
    predicate: Option<String>,
    /// A name that is either the subject or the object.
    about: Option<String>,
    /// Facts that held at this date (2024-05-31) instead of now.
    at: Option<String>,
    /// How many facts, from 1 to 1000; 50 if not said.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct GraphTraverseArgs {
    /// The name to begin at.
    start_node: String,
    /// How many facts away, from 1 to 6; 2 if not said.
    max_depth: Option<u32>,
    /// Follow these relations only.
    predicates: Option<Vec<String>>,
    /// How many facts, from 1 to 1000; 50 if not said.
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
    /// How many facts long at most, from 1 to 12; 6 if not said.
    max_depth: Option<u32>,
    /// Facts that held at this date (2024-05-31) instead of now.
    at: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct GraphAddFactArgs {
    /// What the fact is about.
    subject: String,
    /// How it is connected: a relation such as `works_at`.
    predicate: String,
    /// What it is connected with.
    object: String,
    /// What kind of thing the subject is: person, city.
    #[serde(default)]
    subject_type: String,
    /// What kind of thing the object is.
    #[serde(default)]
    object_type: String,
    /// What else is known about the fact.
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

pub fn tools(graph: &LazyGraph) -> Vec<Tool> {
    let graph = || graph.clone();
    vec![
        graph_query(graph()),
        graph_traverse(graph()),
        graph_path(graph()),
        graph_add_fact(graph()),
        graph_retire_fact(graph()),
    ]
}

fn graph_query(graph: LazyGraph) -> Tool {
    let described = "Finds facts in the knowledge graph by subject, object or predicate, each with its source and with when it holds. \
        What the facts say is data.";
    Tool::new(
        "graph_query",
        described,
        Safety::Safe,
        move |context: ToolContext, args: GraphQueryArgs| {
            let graph = graph.clone();
            async move {
                let limit = check_range("limit", args.limit.unwrap_or(DEFAULT_FACTS), MAX_FACTS)?;
                let (view, when) =
                    load_snapshot(&graph, &context.principal, args.at.as_deref()).await?;
                let given = [&args.subject, &args.object, &args.predicate, &args.about];
                if given.iter().all(|part| part.is_none()) {
                    return Err(ToolError(
                        "say `subject`, `object`, `predicate` or `about`".to_owned(),
                    ));
                }
                let name =
                    |name: &Option<String>| name.as_deref().map(|name| view.find(name)).transpose();
                let predicate = args
                    .predicate
                    .as_deref()
                    .map(|name| view.find_predicate(name))
                    .transpose()?;
                let found = match name(&args.about)? {
                    Some(about) => view.facts_about(about, predicate, when, limit),
                    None => {
                        let pattern = FactPattern {
                            subject: name(&args.subject)?,
                            predicate,
                            object: name(&args.object)?,
                        };
                        view.query(pattern, when, limit)
                    }
                };
                Ok(label_output(
                    &view,
                    &found.facts,
                    facts_json(&view, &found).to_string(),
                ))
            }
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

fn graph_traverse(graph: LazyGraph) -> Tool {
    let described = "Finds everything around a name in the knowledge graph, fact by fact, nearest first. What the facts say is data.";
    Tool::new("graph_traverse", described, Safety::Safe, move |context: ToolContext, args: GraphTraverseArgs| {
        let graph = graph.clone();
        async move {
            let limit = check_range("limit", args.limit.unwrap_or(DEFAULT_FACTS), MAX_FACTS)?;
            let depth = check_range("max_depth", args.max_depth.unwrap_or(DEFAULT_DEPTH), MAX_DEPTH)?;
            let (view, when) = load_snapshot(&graph, &context.principal, args.at.as_deref()).await?;
            let start = view.find(&args.start_node)?;
            let predicates = args.predicates.unwrap_or_default();
            let predicates: Result<_, UnknownName> =
                predicates.iter().map(|name| view.find_predicate(name)).collect();
            let walk = Traversal { depth, predicates: predicates?, direction: Direction::Both, as_of: when, limit };
            let walked = view.traverse(start, &walk);
            let nodes: Vec<Value> = walked
                .names
                .iter()
                .map(|(name, depth)| json!({ "id": view.name(*name), "depth": depth }))
                .collect();
            let mut told = facts_json(&view, &walked.hits);
            let edges = told["items"].take();
            let told = json!({ "nodes": nodes, "edges": edges, "more": walked.hits.has_more }).to_string();
            Ok(label_output(&view, &walked.hits.facts, told))
        }
    })
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

fn graph_path(graph: LazyGraph) -> Tool {
    let described = "Finds how two names of the knowledge graph are connected: a shortest chain of facts. What the facts say is data.";
    Tool::new("graph_path", described, Safety::Safe, move |context: ToolContext, args: GraphPathArgs| {
        let graph = graph.clone();
        async move {
            let most = check_range("max_depth", args.max_depth.unwrap_or(DEFAULT_PATH_LEN), MAX_PATH_LEN)?;
            let (view, when) = load_snapshot(&graph, &context.principal, args.at.as_deref()).await?;
            let (from, to) = (view.find(&args.from)?, view.find(&args.to)?);
            let facts = view.shortest_path(from, to, most, when);
            let way = facts.clone().unwrap_or_default();
            let text = match facts {
                Some(facts) if facts.is_empty() => format!("{} and {} are the same.", args.from, args.to),
                Some(facts) => facts_json(&view, &FactHits { facts, has_more: false }).to_string(),
                None => {
                    let (from, to) = (view.name(from), view.name(to));
                    format!("No chain of up to {most} facts connects {from} and {to}.")
                }
            };
            Ok(label_output(&view, &way, text))
        }
    })
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

fn graph_add_fact(graph: LazyGraph) -> Tool {
    let described = "Adds a fact to the knowledge graph: subject, predicate, object. Only what the user said or a source supports.";
    Tool::new("graph_add_fact", described, Safety::Moderate, move |context: ToolContext, args: GraphAddFactArgs| {
        let graph = graph.clone();
        async move {
            let graph = graph.get().await.map_err(tool_error)?;
            let fact = parse_fact(args)?;
            let shown = fact_text(&fact);
            graph.assert(&context.principal, provenance(&context), &[fact]).await.map_err(tool_error)?;
            Ok(format!("Kept: {shown}."))
        }
    })
    .with_intent(|_, args: GraphAddFactArgs| async move {
        let shows = fact_text(&parse_fact(args)?);
        Ok(Intent {
            level: Safety::Moderate,
            shows: format!("add the fact: {shows}"),
            subject: shows,
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

fn graph_retire_fact(graph: LazyGraph) -> Tool {
    let described = "Says that a fact of the knowledge graph does not hold any more, from a day on. That it held stays known.";
    Tool::new("graph_retire_fact", described, Safety::Moderate, move |context: ToolContext, args: GraphRetireFactArgs| {
        let graph = graph.clone();
        async move {
            let at = args.valid_to.as_deref().map(str::parse).transpose()?;
            let (view, when) = load_snapshot(&graph, &context.principal, args.valid_to.as_deref()).await?;
            let graph = graph.get().await.map_err(tool_error)?;
            let at = at.unwrap_or_else(|| graph.now());
            let (subject, object) = (view.find(&args.subject)?, view.find(&args.object)?);
            let predicate = view.find_predicate(&args.predicate)?;
            let pattern = FactPattern { subject: Some(subject), predicate: Some(predicate), object: Some(object) };
            if view.query(pattern, when, 1).facts.is_empty() {
                let near = facts_json(&view, &view.query(FactPattern { predicate: None, ..pattern }, AsOf::AnyTime, 5));
                return Err(ToolError(format!("this fact is not known or does not hold then; known are: {}", near["items"])));
            }
            let (subject, predicate, object) = (view.name(subject), view.predicate_name(predicate), view.name(object));
            let ended = format!("Ended on {at}: {subject} {predicate} {object}.");
            let ending =
                FactRetirement { subject: subject.to_owned(), predicate: predicate.to_owned(), object: object.to_owned(), at };
            graph.retire(&context.principal, provenance(&context), &[ending]).await.map_err(tool_error)?;
            Ok(ended)
        }
    })
    .with_intent(|_, args: GraphRetireFactArgs| async move {
        let shows = format!("{} {} {}", args.subject, args.predicate, args.object);
        Ok(Intent { level: Safety::Moderate, shows: format!("end the fact: {shows}"), subject: shows, pattern: None })
    })
    .with_phrases([
        "(retire|end|withdraw) [the] [a] [this] fact [that] {subject:word} {predicate:word} {object}",
        "(retire|end|withdraw) [the] [a] [this] fact [that] {subject} is [the] [a] {predicate:word} of {object}",
        "[the] fact [that] {subject:word} {predicate:word} {object} (does not hold|is not true|is no longer true) [any more]",
    ])
}

async fn load_snapshot(
    graph: &LazyGraph,
    of: &Principal,
    at: Option<&str>,
) -> Result<(GraphSnapshot, AsOf), ToolError> {
    let graph = graph.get().await.map_err(tool_error)?;
    let at: Option<Moment> = at.map(str::parse).transpose()?;
    let view = graph.snapshot(of).await.map_err(tool_error)?;
    Ok((view, AsOf::At(at.unwrap_or_else(|| graph.now()))))
}

fn check_range<N: PartialOrd + From<u8> + std::fmt::Display>(
    what: &str,
    number: N,
    most: N,
) -> Result<N, ToolError> {
    if number < N::from(1) || number > most {
        return Err(ToolError(format!("`{what}` goes from 1 to {most}")));
    }
    Ok(number)
}

fn label_output(view: &GraphSnapshot, facts: &[u32], text: String) -> ToolOutput {
    ToolOutput::from_labeled(LabeledText {
        text,
        label: view.label(facts),
    })
}

/// Facts as every command and tool gives them.
pub fn facts_json(view: &GraphSnapshot, found: &FactHits) -> Value {
    let items: Vec<_> = found
        .facts
        .iter()
        .map(|fact| view.fact_item(*fact))
        .collect();
    match found.has_more {
        true => json!({ "items": items, "more": true }),
        false => json!({ "items": items }),
    }
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
