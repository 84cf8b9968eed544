//! `lango model …`: which models there are, and whether the chosen one answers.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use lango_app::selected_models;
use lango_domain::TeamMode;
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest};
use lango_models::SelectedModel;
use lango_models::offline::{CONNECT_HINT, OFFLINE_DESCRIPTION};
use serde_json::{Value, json};

use super::{CommandContext, runtime};
use crate::args::{GlobalArgs, ModelCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn run(global: &GlobalArgs, command: &ModelCommand) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::load(global)?;
    match command {
        ModelCommand::List => Ok(list(&setting)),
        ModelCommand::Check => check(&setting),
    }
}

fn list(setting: &CommandContext) -> CommandOutput {
    let chosen = selected_models(&setting.loaded, &setting.environment);
    let asked = chosen.as_deref().unwrap_or_default();
    let mut items: Vec<Value> = asked
        .iter()
        .map(|(who, chosen)| model_json(who, chosen))
        .collect();
    for id in setting.loaded.settings.providers.keys() {
        if !asked.iter().any(|(_, chosen)| chosen.provider == *id) {
            items
                .push(json!({ "provider": id, "model": null, "selected": false, "why": "it is configured" }));
        }
    }
    let mut plain = String::new();
    for (who, chosen) in asked {
        let name = styled(NAME, format!("{}/{}", chosen.provider, chosen.model));
        let who = if who == "default" {
            String::new()
        } else {
            format!("{who}: ")
        };
        let price = chosen.price.map_or("unknown".to_owned(), |price| {
            format!(
                "${} in, ${} out per million tokens",
                price.input, price.output
            )
        });
        let _ = writeln!(plain, "{who}{name} {}", styled(DIM, &chosen.reason));
        if chosen.is_offline() {
            let _ = writeln!(plain, "  {OFFLINE_DESCRIPTION}\n  {CONNECT_HINT}");
            continue;
        }
        let _ = writeln!(
            plain,
            "  at {}\n  window {} tokens, price {price}",
            chosen.display_url(),
            chosen.window
        );
    }
    if let Err(error) = &chosen {
        let _ = writeln!(plain, "No model: {error}.");
    }
    CommandOutput::new(plain, json!({ "items": items }))
}

fn model_json(who: &str, chosen: &SelectedModel) -> Value {
    json!({
        "provider": chosen.provider,
        "model": chosen.model,
        "for": who,
        "base_url": chosen.display_url(),
        "note": chosen.is_offline().then_some(OFFLINE_DESCRIPTION),
        "key": chosen.key.is_some(),
        "window": chosen.window,
        "price": chosen.price,
        "selected": who == "default",
        "why": chosen.reason,
    })
}

/// One tiny request to each model that may be asked, without retries.
fn check(setting: &CommandContext) -> Result<CommandOutput, CliError> {
    let chosen = selected_models(&setting.loaded, &setting.environment)?;
    let runtime = runtime()?;
    let (mut plain, mut items) = (String::new(), Vec::new());
    for (who, chosen) in &chosen {
        let (model, _) = chosen
            .connect(Arc::new(|| 0.0))
            .map_err(|error| explain_error(chosen, &error))?;
        let began = Instant::now();
        let request = ModelRequest {
            agent: TeamMode::Single.root_name(),
            system: "Reply with one word.".into(),
            tools: Arc::new([]),
            messages: vec![Message::User("ping".to_owned())],
        };
        runtime
            .block_on(check_reply(model.as_ref(), request))
            .map_err(|error| explain_error(chosen, &error))?;
        let took = began.elapsed().as_millis();
        let name = format!("{}/{}", chosen.provider, chosen.model);
        let _ = writeln!(plain, "{} answers ({took} ms).", styled(NAME, name));
        items.push(
            json!({ "for": who, "provider": chosen.provider, "model": chosen.model, "latency_ms": took }),
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

/// Which of key, address, model name and quota is wrong.
fn explain_error(chosen: &SelectedModel, error: &ModelError) -> CliError {
    let (what, hint) = match error {
        ModelError::Auth => (
            "the key is wrong or missing",
            format!("set providers.{}.apiKey or its variable", chosen.provider),
        ),
        ModelError::Quota => (
            "the quota is used up",
            "check the account's credit".to_owned(),
        ),
        ModelError::Busy { .. } => ("the provider is busy", "try again in a while".to_owned()),
        ModelError::NotFound(_) => (
            "the model's name or the address is wrong",
            format!("agent.model is {}", chosen.model),
        ),
        ModelError::Connection(_) => (
            "the address does not answer",
            format!("it is {}", chosen.display_url()),
        ),
        _ => (
            "the reply could not be used",
            "is this the right type of provider?".to_owned(),
        ),
    };
    CliError::model(format!(
        "{}/{}: {what} ({error})",
        chosen.provider, chosen.model
    ))
    .with_hint(hint)
}
