//! `lango model …`: which models there are, and whether the chosen one answers.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use lango_app::chosen_model;
use lango_domain::Mode;
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest};
use lango_models::Chosen;
use serde_json::{Value, json};

use super::{Setting, runtime};
use crate::args::{Global, ModelCommand};
use crate::output::{DIM, Failure, NAME, Output, styled};

pub fn run(global: &Global, command: &ModelCommand) -> Result<Output, Failure> {
    let setting = Setting::read(global)?;
    match command {
        ModelCommand::List => Ok(list(&setting)),
        ModelCommand::Check => check(&setting),
    }
}

fn list(setting: &Setting) -> Output {
    let chosen = chosen_model(&setting.loaded, &setting.environment);
    let mut items: Vec<Value> = chosen.iter().map(|chosen| item(chosen, true)).collect();
    let settings = &setting.loaded.settings;
    for id in settings.providers.keys() {
        let is_listed = chosen.as_ref().is_ok_and(|chosen| chosen.provider == *id);
        if !is_listed {
            items
                .push(json!({ "provider": id, "model": null, "selected": false, "why": "it is configured" }));
        }
    }
    let mut plain = String::new();
    match &chosen {
        Ok(chosen) => {
            let _ = writeln!(
                plain,
                "{} {}",
                styled(NAME, format!("{}/{}", chosen.provider, chosen.model)),
                styled(DIM, &chosen.why)
            );
            let price = chosen.price.map_or("unknown".to_owned(), |price| {
                format!("${} in, ${} out per million tokens", price.input, price.output)
            });
            let _ = writeln!(
                plain,
                "  at {}\n  window {} tokens, price {price}",
                chosen.base_url(),
                chosen.window
            );
        }
        Err(error) => {
            let _ = writeln!(plain, "No model: {error}.");
        }
    }
    for (agent, model) in &settings.agent.models.models {
        let _ = writeln!(plain, "  {agent} asks {model}");
    }
    if let Some(fallback) = &settings.agent.models.fallback {
        let _ = writeln!(plain, "  when it cannot be reached: {fallback}");
    }
    Output::new(plain, json!({ "items": items }))
}

fn item(chosen: &Chosen, selected: bool) -> Value {
    json!({
        "provider": chosen.provider,
        "model": chosen.model,
        "base_url": chosen.base_url(),
        "key": chosen.key.is_some(),
        "window": chosen.window,
        "price": chosen.price,
        "selected": selected,
        "why": chosen.why,
    })
}

/// One tiny request, without retries.
fn check(setting: &Setting) -> Result<Output, Failure> {
    let chosen = chosen_model(&setting.loaded, &setting.environment)?;
    let (model, _) = chosen.connect(Arc::new(|| 0.0)).map_err(|error| explain(&chosen, &error))?;
    let began = Instant::now();
    let request = ModelRequest {
        agent: Mode::Single.root_name(),
        system: "Reply with one word.".into(),
        tools: Arc::new([]),
        messages: vec![Message::User("ping".to_owned())],
    };
    runtime()?.block_on(first_words(model.as_ref(), request)).map_err(|error| explain(&chosen, &error))?;
    let took = began.elapsed().as_millis();
    let name = format!("{}/{}", chosen.provider, chosen.model);
    let json = json!({ "ok": true, "provider": chosen.provider, "model": chosen.model, "latency_ms": took });
    Ok(Output::new(format!("{} answers ({took} ms).", styled(NAME, name)), json))
}

async fn first_words(model: &dyn Model, request: ModelRequest) -> Result<(), ModelError> {
    let mut fragments = model.stream(request);
    while let Some(fragment) = fragments.next().await {
        if fragment? == Fragment::Done {
            return Ok(());
        }
    }
    Err(ModelError::BrokeOff)
}

/// Which of key, address, model name and quota is wrong.
fn explain(chosen: &Chosen, error: &ModelError) -> Failure {
    let (what, hint) = match error {
        ModelError::Auth => (
            "the key is wrong or missing",
            format!("set providers.{}.apiKey or its variable", chosen.provider),
        ),
        ModelError::Quota => ("the quota is used up", "check the account's credit".to_owned()),
        ModelError::Busy { .. } => ("the provider is busy", "try again in a while".to_owned()),
        ModelError::NotFound(_) => {
            ("the model's name or the address is wrong", format!("agent.model is {}", chosen.model))
        }
        ModelError::Connection(_) => ("the address does not answer", format!("it is {}", chosen.base_url())),
        _ => ("the reply could not be used", "is this the right type of provider?".to_owned()),
    };
    Failure::model(format!("{}/{}: {what} ({error})", chosen.provider, chosen.model)).with_hint(hint)
}
