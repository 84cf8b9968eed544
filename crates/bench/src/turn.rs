//! `lango-bench turn`: turns through the engine, with a model over HTTP.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::StreamExt;
use jiff::Timestamp;
use lango_domain::event::{EventBody, Principal, SessionId, TurnId, Update};
use lango_domain::session::SessionStore;
use lango_engine::{
    ApprovalPolicy, ClockAndIds, InMemorySessionStore, Models, Runner, RunnerParts, TurnHooks,
    TurnLimits, TurnRequest,
};
use lango_models::{Dialect, HttpModel, ModelEndpoint, Timeouts, http_client};
use lango_store::{SqliteStore, StoreLocation};

use crate::{Load, measure, team};

pub fn run(load: &Load, started: Instant) -> Result<()> {
    let (base_url, _server) = measure::start_model_server(load)?;
    measure::runtime(load)?.block_on(async {
        let runner = runner(base_url, load.store.as_deref())?;
        measure::run("lango", load, started, move |number| {
            run_turn(runner.clone(), number)
        })
        .await
    })
}

fn runner(base_url: String, file: Option<&Path>) -> Result<Runner> {
    let store: Arc<dyn SessionStore> = match file {
        Some(file) => Arc::new(SqliteStore::open(StoreLocation::from_path(file))?),
        None => Arc::new(InMemorySessionStore::default()),
    };
    let timeouts = Timeouts {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_secs(30),
        idle: Duration::from_secs(30),
    };
    let endpoint = ModelEndpoint {
        provider: "bench".into(),
        base_url,
        key: None,
        model: "bench".into(),
        headers: BTreeMap::new(),
        max_output_tokens: 8_192,
    };
    let model = HttpModel {
        client: http_client(timeouts.connect)?,
        dialect: Dialect::OpenAi,
        endpoint,
        timeouts,
        window: 128_000,
        readable: lango_domain::ReadableKinds::NONE,
        price: None,
    };
    let turns = AtomicUsize::new(0);
    Ok(Runner::new(RunnerParts {
        tree: team::build_tree()?,
        models: Models {
            default: Arc::new(model),
            per_agent: BTreeMap::new(),
        },
        store,
        blobs: Arc::<lango_engine::InMemorySessionStore>::default(),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: ClockAndIds {
            now: Arc::new(Timestamp::now),
            new_turn_id: Arc::new(move || {
                TurnId::new(format!("t{}", turns.fetch_add(1, Ordering::Relaxed)))
            }),
        },
    }))
}

async fn run_turn(runner: Runner, number: usize) -> Result<()> {
    let session = SessionId::new(format!("s{number}"));
    let request = TurnRequest::from_user(session, Principal::local(), team::REQUEST);
    let mut updates = runner.run(request);
    let mut answered = false;
    while let Some(update) = updates.next().await {
        if let Update::Event(event) = update {
            match &event.body {
                EventBody::Answer(_) => answered = true,
                EventBody::TurnFailed { code, message, .. } => {
                    bail!("the turn failed: {code} {message}")
                }
                _ => {}
            }
        }
    }
    if !answered {
        bail!("the turn ended without an answer");
    }
    Ok(())
}
