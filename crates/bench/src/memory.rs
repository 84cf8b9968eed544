//! `lango-bench memory`: what memory costs a turn, and how much of a request stays the same from turn to turn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, bail};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::event::{EventBody, Principal, SessionId, TurnId, Update};
use lango_domain::memory::{Kind, MemoryStore, NewMemory, Note, Priority, MemorySpeaker};
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest};
use lango_domain::seams::SessionKey;
use lango_engine::{ApprovalPolicy, TurnHooks, TurnLimits, Models, RunnerParts, Runner, ClockAndIds, TurnRequest};
use lango_knowledge::memory::{ObservationalMemory, Observer, MemorySettings};
use lango_knowledge::secret_scan::SecretScanner;
use lango_store::{StoreLocation, SqliteStore};
use serde_json::json;

use crate::team;

/// In each of these a session says something else.
const QUESTIONS: [&str; 4] = [
    "what do I like to drink?",
    "was the invoice of customer 17 paid?",
    "read the file a.txt and tell me what is in it",
    "when is the release of project 40?",
];
/// Tokens of each message in the long session.
const WORDS: usize = 400;

pub fn run(observations: usize, turns: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        for remembered in [None, Some(0), Some(observations)] {
            cost(remembered, turns).await?;
        }
        prefix().await
    })
}

/// Turns of one call each, with so many observations; without any memory at all for `None`.
async fn cost(observations: Option<usize>, turns: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(StoreLocation::File(folder.path().join("store.sqlite")))?;
    for number in 0..observations.unwrap_or(0) {
        store.store(&of("before"), observation(number)).await?;
    }
    let model = Arc::new(Answering::default());
    let settings = MemorySettings::default();
    let beside = observations.map(|_| beside(&store, Observer::Rules, settings)).unwrap_or_default();
    let runner = runner(&store, Arc::clone(&model), beside)?;
    let first = Instant::now();
    turn(&runner, "first", QUESTIONS[0]).await?;
    let first = first.elapsed().as_secs_f64() * 1_000.0;
    let mut times = Vec::new();
    for number in 0..turns {
        let began = Instant::now();
        turn(&runner, &format!("s{number}"), QUESTIONS[number % QUESTIONS.len()]).await?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        runner.wait_for_hooks().await;
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    println!(
        "{}",
        json!({ "bench": "turn with memory", "observations": observations, "first_ms": first, "p50_ms": at(0.5), "p99_ms": at(0.99) })
    );
    Ok(())
}

/// One long session in which observations take the place of what was said: how many bytes of each request stand in the
/// one before it at the same place.
async fn prefix() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(StoreLocation::File(folder.path().join("store.sqlite")))?;
    let model = Arc::new(Answering::default());
    let name = "bench".to_owned();
    let observer = Observer::Model { model: Arc::clone(&model) as Arc<dyn Model>, name };
    let runner = runner(&store, Arc::clone(&model), beside(&store, observer, MemorySettings::default()))?;
    for number in 0..150 {
        turn(&runner, "long", &format!("number {number}: {}", "more of it ".repeat(WORDS / 3))).await?;
        runner.wait_for_hooks().await;
    }
    let requests = model.requests.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut shared, mut all, mut broken) = (0, 0, 0);
    for pair in requests.windows(2) {
        let same = pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
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

fn of(session: &str) -> SessionKey {
    SessionKey { session: SessionId::new(session), principal: Principal::local() }
}

fn observation(number: usize) -> NewMemory {
    let (text, kind) = match number % 4 {
        0 => (format!("the invoice of customer {number} was paid by bank transfer"), Kind::Fact),
        1 => (format!("we decided to build part {number} of the warehouse in timber"), Kind::Decision),
        2 => (format!("the release of project {number} is on the first of May"), Kind::Date),
        _ => (format!("I prefer tea number {number} over every other one"), Kind::Preference),
    };
    let note = Note {
        text,
        kind,
        priority: Priority::Medium,
        words: MemorySpeaker::User,
        label: Label::default(),
        at: Timestamp::now(),
    };
    NewMemory { note, turn: TurnId::new("before"), sources: vec![1] }
}

fn beside(store: &SqliteStore, observer: Observer, settings: MemorySettings) -> TurnHooks {
    let chronicle = Arc::new(ObservationalMemory::new(lango_knowledge::memory::MemoryParts {
        memories: Arc::new(store.clone()),
        observer,
        settings,
        secrecy: SecretScanner::default(),
        forgetting: lango_knowledge::forgetting::Forgetting::new(Arc::new(store.clone())),
        now: Arc::new(Timestamp::now),
    }));
    TurnHooks {
        sources: vec![Arc::clone(&chronicle) as _],
        digests: Some(Arc::clone(&chronicle) as _),
        afterwards: vec![chronicle],
        ..TurnHooks::default()
    }
}

fn runner(store: &SqliteStore, model: Arc<Answering>, beside: TurnHooks) -> Result<Runner> {
    Ok(Runner::new(RunnerParts {
        tree: team::tree()?,
        models: Models { default: model, per_agent: BTreeMap::new() },
        store: Arc::new(store.clone()),
        approver: None,
        approval: ApprovalPolicy::default(),
        beside,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        surroundings: ClockAndIds {
            now: Arc::new(Timestamp::now),
            new_turn: Arc::new(|| TurnId::new(Timestamp::now().as_nanosecond().to_string())),
        },
    }))
}

async fn turn(runner: &Runner, session: &str, text: &str) -> Result<()> {
    let request = TurnRequest::typed(SessionId::new(session), Principal::local(), text);
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

/// Answers at once; observes one line for each request; keeps what the orchestrator was asked.
#[derive(Default)]
struct Answering {
    requests: Mutex<Vec<String>>,
}

impl Model for Answering {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let last = match request.messages.last() {
            Some(Message::User(text)) => text.as_str(),
            _ => "",
        };
        let said = if request.tools.is_empty() {
            let marks = last.lines().filter_map(|line| Some(line.strip_prefix('[')?.split_once("] ")?.0));
            let line = |mark: &str| format!("medium | event | {mark} | Line {mark} told of more of it.\n");
            marks.map(line).collect()
        } else {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            let messages = request.messages.iter().map(|message| format!("{message:?}\n"));
            requests.push(format!("{}\n{}", request.system, messages.collect::<String>()));
            "Fine. ".repeat(WORDS / 2)
        };
        stream::iter([Ok(Fragment::Text(said)), Ok(Fragment::Done)]).boxed()
    }

    fn window(&self) -> usize {
        128_000
    }
}
