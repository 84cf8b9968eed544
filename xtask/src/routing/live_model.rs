//! Evaluates a real model: sends each request through the real orchestrator, up to its first decision.

use anyhow::{Context, Result, anyhow};
use futures::StreamExt;
use lango_app::{
    Assistant, AssistantOptions, Environment, LazyStores, LoadedConfig, Overrides, Recording,
    TurnSpec, new_session,
};
use lango_domain::Tool;
use lango_domain::event::{EventBody, Principal, Update};
use lango_engine::TurnRequest;
use lango_models::offline::weights::LABELS;
use lango_team::sample_tool_names;

use super::data::Sample;
use super::report::{NO_AGENT, Prediction};

/// Routes each sample with `provider`, and with `model` if one is given.
pub fn predict_all<'a>(
    samples: &'a [Sample],
    provider: &str,
    model: Option<&str>,
) -> Result<Vec<Prediction<'a>>> {
    let environment = Environment::from_process().context("the working folder")?;
    let model = model.map(|model| format!("agent.model={model}"));
    let set = std::iter::once(format!("agent.provider={provider}"))
        .chain(model)
        .collect();
    let loaded = LoadedConfig::load(&environment, &Overrides { config: None, set })
        .map_err(|error| anyhow!(error.message))?;
    let tools = sample_tool_names().into_iter().map(Tool::stub).collect();
    let stores = LazyStores::new(&loaded, &environment);
    let means = AssistantOptions {
        stores: &stores,
        tools,
        catalog: Default::default(),
        approver: None,
        recording: &Recording::Off,
        secrets: None,
        remote_agents: None,
    };
    let conversation = Assistant::open(&loaded, &environment, means)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut judged = Vec::new();
        for sample in samples {
            let said = first_decision(&conversation, &sample.text).await?;
            judged.push(Prediction {
                sample,
                predicted: said,
                confidence: 1.0,
            });
        }
        Ok(judged)
    })
}

/// Returns the agent that the orchestrator transfers to, or that it answers itself.
async fn first_decision(conversation: &Assistant, text: &str) -> Result<usize> {
    let (session, principal) = (new_session(), Principal::local());
    let request = TurnRequest::from_user(session, principal, text);
    let mut updates = conversation
        .runtime
        .start_turn(TurnSpec::request(request))?;
    while let Some(update) = updates.next().await {
        let Update::Event(event) = update else {
            continue;
        };
        match &event.body {
            EventBody::Transfer { to, .. } => {
                return Ok(LABELS
                    .iter()
                    .position(|label| *to == **label)
                    .unwrap_or(NO_AGENT));
            }
            EventBody::Answer(_) => return Ok(LABELS.len() - 1),
            EventBody::TurnFailed { message, .. } => return Err(anyhow!("{message}")),
            _ => {}
        }
    }
    Ok(NO_AGENT)
}
