//! Measures routing: with the committed weights, with weights trained without the writer of a request, or with a real
//! model through the real orchestrator.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context, Result};
use lango_domain::Tool;
use lango_models::offline::weights::{LABELS, RoutingWeights};
use lango_models::offline::{OfflineRouter, Routing, RoutingDecision};
use lango_team::{Config, build_agent_tree, sample_tool_names};

use super::data::{self, Sample};
use super::live_model;
use super::report::{NO_AGENT, Prediction, accuracy, format_report};
use super::train::{built_in_samples, train_model};

/// `cargo xtask eval routing [--cross] [--all-misses] [--provider P [--model M]]`.
pub fn run(options: &[String]) -> Result<()> {
    let has = |name: &str| options.iter().any(|option| option == name);
    if has("--cross") {
        return cross_validate(has("--all-misses"));
    }
    let samples = data::read("measure")?;
    let value = |name: &str| {
        let at = options.iter().position(|option| option == name)?;
        options.get(at + 1).map(String::as_str)
    };
    if let Some(provider) = value("--provider") {
        print!(
            "{}",
            format_report(
                &live_model::predict_all(&samples, provider, value("--model"))?,
                has("--all-misses")
            )
        );
        return Ok(());
    }
    let router = full_team_router()?;
    router.route("warm up");
    let began = Instant::now();
    let judged: Vec<Prediction<'_>> = samples
        .iter()
        .map(|sample| to_prediction(sample, &router.route(&sample.text)))
        .collect();
    let took = began.elapsed();
    print!("{}", format_report(&judged, has("--all-misses")));
    println!(
        "\n{:.3} ms a decision",
        took.as_secs_f64() * 1e3 / samples.len() as f64
    );
    Ok(())
}

/// Cross-validates: leaves out one writer at a time, trains on the others, and evaluates the writer left out.
fn cross_validate(all_misses: bool) -> Result<()> {
    let samples = data::read("train")?;
    let router = full_team_router()?;
    let writers: BTreeSet<&str> = samples
        .iter()
        .map(|sample| sample.source.as_str())
        .collect();
    let mut judged = Vec::new();
    for writer in writers {
        let mut others: Vec<Sample> = samples
            .iter()
            .filter(|sample| sample.source != writer)
            .cloned()
            .collect();
        others.extend(built_in_samples());
        let bytes: &'static [u8] = Box::leak(train_model(&others).into_boxed_slice());
        let learned = RoutingWeights::from_bytes(bytes);
        let own = samples.iter().filter(|sample| sample.source == writer);
        let own: Vec<Prediction<'_>> = own
            .map(|sample| to_prediction(sample, &router.route_with(&sample.text, &learned)))
            .collect();
        eprintln!("{writer}: {:.1} %", 100.0 * accuracy(&own));
        judged.extend(own);
    }
    print!("{}", format_report(&judged, all_misses));
    Ok(())
}

fn to_prediction<'a>(sample: &'a Sample, routing: &Routing) -> Prediction<'a> {
    let label = match &routing.decision {
        RoutingDecision::Agent(agent) => agent.as_str(),
        RoutingDecision::Direct => "direct",
        RoutingDecision::NoAgent { .. } => "",
    };
    let said = LABELS
        .iter()
        .position(|known| *known == label)
        .unwrap_or(NO_AGENT);
    Prediction {
        sample,
        predicted: said,
        confidence: routing.confidence,
    }
}

/// Builds the orchestrator prompt of a team with one tool of each kind.
fn full_team_router() -> Result<OfflineRouter> {
    let tools = sample_tool_names().into_iter().map(Tool::stub).collect();
    let tree = build_agent_tree(Config {
        tools,
        ..Config::default()
    })
    .context("the built-in team")?;
    Ok(OfflineRouter::from_prompt(&tree.root.prompt.render()))
}
