//! Single facts: added and retired.

use lango_domain::event::Principal;
use lango_domain::graph::FactSource;
use lango_domain::text::one_line;
use lango_knowledge::graph::{AsOf, FactPattern, FactRetirement, Graph, Moment, NewFact};
use serde_json::{Map, Value, json};

use crate::args::TripleArgs;
use crate::output::{CliError, CommandOutput};

/// What may be said beside the three parts.
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
    extras: FactDetails,
) -> Result<CommandOutput, CliError> {
    let moment = |text: Option<String>| text.map(|text| text.parse::<Moment>()).transpose();
    let TripleArgs {
        subject,
        predicate,
        object,
    } = triple;
    let fact = NewFact {
        subject_type: extras.subject_type,
        object_type: extras.object_type,
        properties: parse_properties(&extras.properties)?,
        valid_from: moment(extras.from)?,
        valid_to: moment(extras.to)?,
        ..NewFact::new(subject, predicate, object)
    };
    let shown = one_line(&format!(
        "{} {} {}",
        fact.subject, fact.predicate, fact.object
    ));
    graph
        .assert(&Principal::local(), FactSource::User, &[fact])
        .await?;
    Ok(CommandOutput::new(
        format!("Kept: {shown}\n"),
        json!({ "facts": 1 }),
    ))
}

fn parse_properties(said: &[String]) -> Result<Map<String, Value>, CliError> {
    let pair = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| CliError::usage(format!("`{text}` is no KEY=VALUE")))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok((key.to_owned(), value))
    };
    said.iter().map(pair).collect()
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
    let view = graph.snapshot(&Principal::local()).await?;
    let (subject, object) = (view.find(&triple.subject)?, view.find(&triple.object)?);
    let predicate = view.find_predicate(&triple.predicate)?;
    let pattern = FactPattern {
        subject: Some(subject),
        predicate: Some(predicate),
        object: Some(object),
    };
    let ended = view.query(pattern, AsOf::At(at), usize::MAX).facts.len();
    if ended == 0 {
        return Err(CliError::usage("this fact does not hold at that time")
            .with_hint("`lango graph query NAME --ever` shows what is known"));
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
