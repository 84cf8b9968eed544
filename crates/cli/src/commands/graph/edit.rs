//! Adds and retires single facts.

use lango_app::capability::graph::{AsOf, FactPattern, FactRetirement, Graph, Moment, NewFact};
use lango_domain::event::Principal;
use lango_domain::graph::FactSource;
use lango_text::sanitize::one_line;
use serde_json::{Map, Value, json};

use crate::args::TripleArgs;
use crate::output::{CliError, CommandOutput};

/// The optional details of a new fact.
pub struct FactDetails {
    pub subject_type: String,
    pub object_type: String,
    pub properties: Vec<String>,
    pub from: Option<String>,
    pub to: Option<String>,
}

pub async fn add(
    graph: &Graph,
    triple: TripleArgs,
    details: FactDetails,
) -> Result<CommandOutput, CliError> {
    let moment = |text: Option<String>| text.map(|text| text.parse::<Moment>()).transpose();
    let TripleArgs {
        subject,
        predicate,
        object,
    } = triple;
    let fact = NewFact {
        subject_type: details.subject_type,
        object_type: details.object_type,
        properties: parse_properties(&details.properties)?,
        valid_from: moment(details.from)?,
        valid_to: moment(details.to)?,
        ..NewFact::new(subject, predicate, object)
    };
    let triple = one_line(&format!(
        "{} {} {}",
        fact.subject, fact.predicate, fact.object
    ));
    graph
        .assert(&Principal::local(), FactSource::User, &[fact])
        .await?;
    Ok(CommandOutput::new(
        format!("Added: {triple}\n"),
        json!({ "facts": 1 }),
    ))
}

fn parse_properties(pairs: &[String]) -> Result<Map<String, Value>, CliError> {
    let pair = |text: &String| {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            CliError::usage(format!("invalid property `{text}`; expected KEY=VALUE"))
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok((key.to_owned(), value))
    };
    pairs.iter().map(pair).collect()
}

pub async fn retire(
    graph: &Graph,
    triple: TripleArgs,
    at: Option<&str>,
) -> Result<CommandOutput, CliError> {
    let at: Moment = at
        .map(str::parse)
        .transpose()?
        .unwrap_or_else(|| graph.now());
    let snapshot = graph.snapshot(&Principal::local()).await?;
    let (subject, object) = (
        snapshot.find(&triple.subject)?,
        snapshot.find(&triple.object)?,
    );
    let predicate = snapshot.find_predicate(&triple.predicate)?;
    let pattern = FactPattern {
        subject: Some(subject),
        predicate: Some(predicate),
        object: Some(object),
    };
    let ended = snapshot
        .query(pattern, AsOf::At(at), usize::MAX)
        .facts
        .len();
    if ended == 0 {
        return Err(CliError::usage("the fact is not valid at that time")
            .with_hint("`lango graph query NAME --ever` shows the validity of facts"));
    }
    let TripleArgs {
        subject,
        predicate,
        object,
    } = triple;
    graph
        .retire(
            &Principal::local(),
            FactSource::User,
            &[FactRetirement {
                subject,
                predicate,
                object,
                at,
            }],
        )
        .await?;
    Ok(CommandOutput::new(
        format!("Ended on {at}.\n"),
        json!({ "retired": ended, "valid_to": at.to_string() }),
    ))
}
