//! `lango-bench memory`: the cost of memory per turn, and the shared prefix of consecutive
//! requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, bail};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::event::{EventBody, Principal, SessionId, TurnId, Update};
use lango_domain::memory::{
    MemoryKind, MemoryNote, MemoryPriority, MemorySpeaker, MemoryStore, NewMemory,
};
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest};
use lango_domain::session::SessionKey;
use lango_engine::{
    ApprovalPolicy, ClockAndIds, Models, Runner, RunnerParts, TurnHooks, TurnLimits, TurnRequest,
};
use lango_memory::observational_memory::{MemorySettings, ObservationalMemory, Observer};
use lango_store::{SqliteStore, StoreLocation};
use lango_text::secret_scan::SecretScanner;
use serde_json::json;

use crate::team;

/// The requests of the measured turns.
const QUESTIONS: [&str; 4] = [
    "what do I like to drink?",
    "was the invoice of customer 17 paid?",
    "read the file a.txt and tell me what is in it",
    "when is the release of project 40?",
];
/// Approximate length of each message in the long session, in tokens.
const MESSAGE_TOKENS: usize = 400;

pub fn run(observations: usize, turns: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        for count in [None, Some(0), Some(observations)] {
            measure_turn_cost(count, turns).await?;
        }
        measure_shared_prefix().await
    })
}

/// Measures turns of one model call with a number of stored observations, or without memory for
/// `None`.
async fn measure_turn_cost(observations: Option<usize>, turns: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(StoreLocation::File(folder.path().join("store.sqlite")))?;
    for number in 0..observations.unwrap_or(0) {
        store
            .store(&session_key("before"), observation(number))
            .await?;
    }
    let model = Arc::new(BenchModel::default());
    let settings = MemorySettings::default();
    let hooks = observations
        .map(|_| memory_hooks(&store, Observer::Rules, settings))
        .unwrap_or_default();
    let runner = runner(&store, Arc::clone(&model), hooks)?;
    let began = Instant::now();
    run_turn(&runner, "first", QUESTIONS[0]).await?;
    let first_ms = began.elapsed().as_secs_f64() * 1_000.0;
    let mut times = Vec::new();
    for number in 0..turns {
        let began = Instant::now();
        run_turn(
            &runner,
            &format!("s{number}"),
            QUESTIONS[number % QUESTIONS.len()],
        )
        .await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        runner.wait_for_hooks().await;
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        times
            .get((times.len() as f64 * share) as usize)
            .copied()
            .unwrap_or_default()
    };
    println!(
        "{}",
        json!({ "bench": "turn with memory", "observations": observations, "first_ms": first_ms, "p50_ms": at(0.5), "p99_ms": at(0.99) })
    );
    Ok(())
}

/// Measures how many bytes of each request are a prefix of the previous one, in a long session in
/// which observations replace earlier messages.
async fn measure_shared_prefix() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(StoreLocation::File(folder.path().join("store.sqlite")))?;
    let model = Arc::new(BenchModel::default());
    let name = "bench".to_owned();
    let observer = Observer::Model {
        model: Arc::clone(&model) as Arc<dyn Model>,
        name,
    };
    let runner = runner(
        &store,
        Arc::clone(&model),
        memory_hooks(&store, observer, MemorySettings::default()),
    )?;
    for number in 0..150 {
        run_turn(
            &runner,
            "long",
            &format!(
                "number {number}: {}",
                "more of it ".repeat(MESSAGE_TOKENS / 3)
            ),
        )
        .await?;
        runner.wait_for_hooks().await;
    }
    let requests = model
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let (mut shared, mut all, mut broken) = (0, 0, 0);
    for pair in requests.windows(2) {
        let same = pair[0]
            .bytes()
            .zip(pair[1].bytes())
            .take_while(|(a, b)| a == b)
            .count();
        shared += same;
        all += pair[1].len();
        broken += usize::from(same < pair[0].len());
    }
    let longest = requests.iter().map(String::len).max().unwrap_or_default();
    println!(
        "{}",
        json!({ "bench": "shared prefix", "turns": requests.len(), "bytes": all, "shared_bytes": shared, "shared": shared as f64 / all as f64,
            "requests_that_begin_anew": broken, "longest_request_bytes": longest })
    );
    Ok(())
}

fn session_key(session: &str) -> SessionKey {
    SessionKey {
        session: SessionId::new(session),
        principal: Principal::local(),
    }
}

fn observation(number: usize) -> NewMemory {
    let (text, kind) = match number % 4 {
        0 => (
            format!("the invoice of customer {number} was paid by bank transfer"),
            MemoryKind::Fact,
        ),
        1 => (
            format!("we decided to build part {number} of the warehouse in timber"),
            MemoryKind::Decision,
        ),
        2 => (
            format!("the release of project {number} is on the first of May"),
            MemoryKind::Date,
        ),
        _ => (
            format!("I prefer tea number {number} over every other one"),
            MemoryKind::Preference,
        ),
    };
    let note = MemoryNote {
        text,
        kind,
        priority: MemoryPriority::Medium,
        speaker: MemorySpeaker::User,
        label: Label::default(),
        at: Timestamp::now(),
    };
    NewMemory {
        note,
        turn: TurnId::new("before"),
        sources: vec![1],
    }
}

fn memory_hooks(store: &SqliteStore, observer: Observer, settings: MemorySettings) -> TurnHooks {
    let memory = Arc::new(ObservationalMemory::new(
        lango_memory::observational_memory::MemoryParts {
            memories: Arc::new(store.clone()),
            observer,
            settings,
            secret_scanner: SecretScanner::default(),
            forgetter: lango_app::open_forgetter(store.stores()),
            now: Arc::new(Timestamp::now),
        },
    ));
    TurnHooks {
        context_sources: vec![Arc::clone(&memory) as _],
        digest_source: Some(Arc::clone(&memory) as _),
        after_turn: vec![memory],
        ..TurnHooks::default()
    }
}

fn runner(store: &SqliteStore, model: Arc<BenchModel>, hooks: TurnHooks) -> Result<Runner> {
    Ok(Runner::new(RunnerParts {
        tree: team::build_tree()?,
        models: Models {
            default: model,
            per_agent: BTreeMap::new(),
        },
        store: Arc::new(store.clone()),
        blobs: Arc::new(store.clone()),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks,
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: ClockAndIds {
            now: Arc::new(Timestamp::now),
            new_turn_id: Arc::new(|| TurnId::new(Timestamp::now().as_nanosecond().to_string())),
        },
    }))
}

async fn run_turn(runner: &Runner, session: &str, text: &str) -> Result<()> {
    let request = TurnRequest::from_user(SessionId::new(session), Principal::local(), text);
    let mut updates = runner.run(request);
    while let Some(update) = updates.next().await {
        if let Update::Event(event) = update
            && let EventBody::TurnFailed { code, message, .. } = &event.body
        {
            bail!("the turn failed: {code} {message}");
        }
    }
    Ok(())
}

/// A model that answers immediately, writes one observation per line, and records the
/// orchestrator's requests.
#[derive(Default)]
struct BenchModel {
    requests: Mutex<Vec<String>>,
}

impl Model for BenchModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let last = match request.messages.last() {
            Some(Message::User(content)) => content.text.as_str(),
            _ => "",
        };
        let text = if request.tools.is_empty() {
            let event_marks = last
                .lines()
                .filter_map(|line| Some(line.strip_prefix('[')?.split_once("] ")?.0));
            let line =
                |mark: &str| format!("medium | event | {mark} | Line {mark} told of more of it.\n");
            event_marks.map(line).collect()
        } else {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            let messages = request
                .messages
                .iter()
                .map(|message| format!("{message:?}\n"));
            requests.push(format!(
                "{}\n{}",
                request.system,
                messages.collect::<String>()
            ));
            "Fine. ".repeat(MESSAGE_TOKENS / 2)
        };
        stream::iter([Ok(Fragment::Text(text)), Ok(Fragment::Done)]).boxed()
    }

    fn window(&self) -> usize {
        128_000
    }
}
