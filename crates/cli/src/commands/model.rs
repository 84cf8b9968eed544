//! `lango model …`: lists models and checks that they respond.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use lango_app::SelectedModel;
use lango_app::offline::{CONNECT_HINT, OFFLINE_DESCRIPTION};
use lango_app::selected_models;
use lango_domain::TeamMode;
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest};
use serde_json::{Value, json};

use super::{CommandContext, runtime};
use crate::args::{GlobalArgs, ModelCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn run(global: &GlobalArgs, command: &ModelCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    match command {
        ModelCommand::List => Ok(list(&context)),
        ModelCommand::Check => check(&context),
    }
}

fn list(context: &CommandContext) -> CommandOutput {
    let selection = selected_models(&context.loaded, &context.environment);
    let models = selection.as_deref().unwrap_or_default();
    let mut items: Vec<Value> = models
        .iter()
        .map(|(agent, selected)| model_json(agent, selected))
        .collect();
    for id in context.loaded.settings.providers.keys() {
        if !models.iter().any(|(_, selected)| selected.provider == *id) {
            items.push(
                json!({ "provider": id, "model": null, "selected": false, "why": "it is configured" }),
            );
        }
    }
    let mut plain = String::new();
    for (agent, selected) in models {
        let name = styled(NAME, format!("{}/{}", selected.provider, selected.model));
        let agent = if agent == "default" {
            String::new()
        } else {
            format!("{agent}: ")
        };
        let price = selected.price.map_or("unknown".to_owned(), |price| {
            format!(
                "${} in, ${} out per million tokens",
                price.input, price.output
            )
        });
        let _ = writeln!(plain, "{agent}{name} {}", styled(DIM, &selected.reason));
        if selected.is_offline() {
            let _ = writeln!(plain, "  {OFFLINE_DESCRIPTION}\n  {CONNECT_HINT}");
            continue;
        }
        let _ = writeln!(
            plain,
            "  at {}\n  window {} tokens, price {price}",
            selected.display_url(),
            selected.window
        );
    }
    if let Err(error) = &selection {
        let _ = writeln!(plain, "No model: {error}.");
    }
    CommandOutput::new(plain, json!({ "items": items }))
}

fn model_json(agent: &str, selected: &SelectedModel) -> Value {
    json!({
        "provider": selected.provider,
        "model": selected.model,
        "for": agent,
        "base_url": selected.display_url(),
        "note": selected.is_offline().then_some(OFFLINE_DESCRIPTION),
        "key": selected.key.is_some(),
        "window": selected.window,
        "price": selected.price,
        "selected": agent == "default",
        "why": selected.reason,
    })
}

/// Sends one tiny request to each selected model, without retries.
fn check(context: &CommandContext) -> Result<CommandOutput, CliError> {
    let models = selected_models(&context.loaded, &context.environment)?;
    let runtime = runtime()?;
    let (mut plain, mut items) = (String::new(), Vec::new());
    for (agent, selected) in &models {
        let (model, _) = selected
            .connect(Arc::new(|| 0.0))
            .map_err(|error| explain_error(selected, &error))?;
        let started = Instant::now();
        let request = ModelRequest {
            agent: TeamMode::Single.root_name(),
            system: "Reply with one word.".into(),
            tools: Arc::new([]),
            messages: vec![Message::User("ping".into())],
        };
        runtime
            .block_on(check_reply(model.as_ref(), request))
            .map_err(|error| explain_error(selected, &error))?;
        let elapsed_ms = started.elapsed().as_millis();
        let name = format!("{}/{}", selected.provider, selected.model);
        let _ = writeln!(plain, "{} answers ({elapsed_ms} ms).", styled(NAME, name));
        items.push(
            json!({ "for": agent, "provider": selected.provider, "model": selected.model, "latency_ms": elapsed_ms }),
        );
    }
    Ok(CommandOutput::new(
        plain,
        json!({ "ok": true, "items": items }),
    ))
}

async fn check_reply(model: &dyn Model, request: ModelRequest) -> Result<(), ModelError> {
    let mut fragments = model.stream(request);
    while let Some(fragment) = fragments.next().await {
        if fragment? == Fragment::Done {
            return Ok(());
        }
    }
    Err(ModelError::BrokeOff)
}

/// Returns an error that says which of key, URL, model name and quota is wrong.
fn explain_error(selected: &SelectedModel, error: &ModelError) -> CliError {
    let (problem, hint) = match error {
        ModelError::Auth => (
            "the API key is wrong or missing",
            format!("set providers.{}.apiKey or its variable", selected.provider),
        ),
        ModelError::Quota => (
            "the quota is exhausted",
            "check the credit of the account".to_owned(),
        ),
        ModelError::Busy { .. } => ("the provider is busy", "try again later".to_owned()),
        ModelError::NotFound(_) => (
            "the model name or the URL is wrong",
            format!("check agent.model, which is {}", selected.model),
        ),
        ModelError::Connection(_) => (
            "the server cannot be reached",
            format!("check the URL {}", selected.display_url()),
        ),
        _ => (
            "the response is invalid",
            "check the type of the provider".to_owned(),
        ),
    };
    CliError::model(format!(
        "{}/{}: {problem} ({error})",
        selected.provider, selected.model
    ))
    .with_hint(hint)
}
