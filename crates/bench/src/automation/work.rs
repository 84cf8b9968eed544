//! The work of the runs: the real scheduler, engine and outbox, with a model and tools whose effects can be
//! counted.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use lango_automation::delivery::{
    CommandChannel, DeliveryChannels, DeliveryOutbox, DesktopChannel, MailChannel, SessionChannel,
    SmtpSettings, WebhookChannel, WebhookSettings,
};
use lango_automation::workflow::{RuntimeSteps, WorkflowDriver, WorkflowSettings};
use lango_automation::{
    ActionExecutor, CronSettings, OneTeam, OutboxLoop, Scheduler, SchedulerParts, SchedulerWake,
    TurnWorker,
};
use lango_domain::automation::LeaseNumber;
use lango_domain::event::{CallId, TurnId};
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest, ToolCall};
use lango_domain::{Clock, Safety, StoreError, Tool, ToolContext, ToolError};
use lango_engine::{
    ApprovalPolicy, ClockAndIds, Models, Runner, RunnerParts, TurnHooks, TurnLimits,
};
use lango_net::AddressPolicy;
use lango_runtime::{Runtime, RuntimeParts, TurnLimiter};
use lango_store::SqliteStore;
use lango_team::{Config, build_agent_tree};
use lango_tools::files::{UndoStorage, Workspace};
use lango_tools::shell::{ExecSettings, ShellParts};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::rng::Rng;

/// The tool with an effect, which only the permission of a job allows.
pub const APPEND: &str = "fs_append";
/// The tool that tells whether the effect of this session happened.
const LOOK: &str = "fs_look";
/// A tool that only reads.
pub const READ: &str = "fs_read";
/// Prompts with these words make the model look before it appends.
pub const LOOK_FIRST: &str = "look first";
/// The longest pause of a tool before and after its effect, in microseconds.
const MAX_PAUSE: u64 = 4_000;

/// The folder with everything that outlives a killed process.
#[derive(Clone)]
pub struct WorkFolder(pub PathBuf);

impl WorkFolder {
    pub fn store(&self) -> PathBuf {
        self.0.join("store.sqlite")
    }

    /// One line per effect: the session and the turn that it happened in.
    pub fn effects(&self) -> PathBuf {
        self.0.join("effects")
    }

    pub fn workspace(&self) -> PathBuf {
        self.0.join("work")
    }

    pub fn deliveries(&self) -> PathBuf {
        self.workspace().join("notes.md")
    }
}

/// Returns the scheduler of a process, as the product assembles it.
pub fn scheduler(
    folder: &WorkFolder,
    store: &SqliteStore,
    clock: Clock,
    seed: u64,
) -> Result<Scheduler> {
    let stores = store.stores();
    let turns = TurnWorker {
        runtime: runtime(folder, store, &clock, seed)?,
        sessions: Arc::clone(&stores.sessions),
        approver: None,
        approval_wait: Duration::from_secs(60),
        teams: Arc::new(OneTeam),
    };
    let steps = Arc::new(RuntimeSteps {
        turns: turns.clone(),
    });
    let workflows = WorkflowDriver::new(steps, WorkflowSettings::default());
    let executor = ActionExecutor {
        turns,
        is_background_enabled: true,
        workflows: Some(Arc::new(workflows)),
    };
    let channels = delivery_channels(folder, store)?;
    let outbox = DeliveryOutbox::new(Arc::clone(&stores.automation), channels, Arc::clone(&clock));
    Ok(Scheduler::new(SchedulerParts {
        store: stores.automation,
        executor: Arc::new(executor),
        outbox: Some(Arc::new(BenchOutbox(outbox))),
        clock,
        owner: format!("lango-bench (process {})", std::process::id()),
        settings: CronSettings::default(),
        wake: SchedulerWake::default(),
    }))
}

fn runtime(folder: &WorkFolder, store: &SqliteStore, clock: &Clock, seed: u64) -> Result<Runtime> {
    let turn_ids = Mutex::new(Rng(seed));
    let new_turn_id = move || {
        let mut numbers = turn_ids.lock().unwrap_or_else(PoisonError::into_inner);
        TurnId::new(format!("{}-{}", std::process::id(), numbers.next()))
    };
    let runner = Runner::new(RunnerParts {
        tree: build_agent_tree(Config {
            tools: tools(folder, seed),
            ..Config::default()
        })?,
        secrets: None,
        models: Models {
            default: Arc::new(CarefulModel),
            per_agent: BTreeMap::new(),
        },
        store: Arc::new(store.clone()),
        blobs: Arc::new(store.clone()),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: ClockAndIds {
            now: Arc::clone(clock),
            new_turn_id: Arc::new(new_turn_id),
        },
    });
    Ok(Runtime::new(RuntimeParts {
        runner,
        approver: None,
        limiter: TurnLimiter::unlimited(),
    }))
}

/// Arguments of the tools.
#[derive(Deserialize, JsonSchema)]
struct WorkArgs {
    /// Keeps repeated calls apart.
    #[serde(default)]
    #[expect(dead_code, reason = "only the log shows it")]
    number: u64,
}

fn tools(folder: &WorkFolder, seed: u64) -> Vec<Tool> {
    let pauses = Pauses(Arc::new(Mutex::new(Rng(seed))));
    let (effects, later) = (folder.effects(), pauses.clone());
    let append = move |context: ToolContext, _: WorkArgs| {
        let (effects, pauses) = (effects.clone(), later.clone());
        async move {
            pauses.wait().await;
            append_line(&effects, &effect_of(&context)).map_err(failed)?;
            pauses.wait().await;
            Ok(format!("appended {}", context.session))
        }
    };
    let effects = folder.effects();
    let look = move |context: ToolContext, _: WorkArgs| {
        let found = has_line(&effects, &effect_of(&context));
        async move {
            let word = if found.map_err(failed)? {
                "found"
            } else {
                "absent"
            };
            Ok(format!("{word} {}", context.session))
        }
    };
    let read = move |context: ToolContext, _: WorkArgs| {
        let pauses = pauses.clone();
        async move {
            pauses.wait().await;
            Ok(format!("read {}", context.session))
        }
    };
    vec![
        Tool::new(APPEND, "Appends a line.", Safety::Dangerous, append),
        Tool::new(LOOK, "Looks for the line.", Safety::Safe, look),
        Tool::new(READ, "Reads.", Safety::Safe, read),
    ]
}

/// Makes calls last a little, so that processes also die within them.
#[derive(Clone)]
struct Pauses(Arc<Mutex<Rng>>);

impl Pauses {
    async fn wait(&self) {
        let random = self.0.lock().unwrap_or_else(PoisonError::into_inner).next();
        tokio::time::sleep(Duration::from_micros(random % MAX_PAUSE)).await;
    }
}

/// Returns the line of an effect. The turn keeps the runs of a shared session apart.
fn effect_of(context: &ToolContext) -> String {
    format!("{} {}", context.session, context.turn)
}

fn failed(error: std::io::Error) -> ToolError {
    ToolError(error.to_string())
}

fn append_line(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

fn has_line(file: &Path, wanted: &str) -> std::io::Result<bool> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.lines().any(|line| line == wanted)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Appends once. After an interrupted call it looks first, as the result of such a call advises. So every
/// line that is doubled was doubled by the product.
struct CarefulModel;

impl Model for CarefulModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        stream::iter([Ok(reply(&request)), Ok(Fragment::Done)]).boxed()
    }

    fn window(&self) -> usize {
        128_000
    }
}

fn reply(request: &ModelRequest) -> Fragment {
    let number = request.messages.len();
    let call = |name: &str, arguments| {
        Fragment::Call(ToolCall {
            id: CallId::new(format!("c{number}")),
            name: name.to_owned(),
            arguments,
        })
    };
    if request.agent.as_str().starts_with("lango") {
        return call("transfer_to_agent", json!({ "agent_name": "operator" }));
    }
    let is_user = |message: &Message| matches!(message, Message::User(_));
    let asked = request.messages.iter().rposition(is_user);
    let this_turn = &request.messages[asked.unwrap_or_default()..];
    let looks_first = request.messages.iter().any(
        |message| matches!(message, Message::User(content) if content.text.contains(LOOK_FIRST)),
    );
    let next = |name: &str| call(name, json!({ "number": number }));
    match this_turn.last() {
        Some(Message::Results(results)) => match results.last() {
            Some(last) if !last.ok => next(LOOK),
            Some(last) if last.content.text.starts_with("absent") => next(APPEND),
            Some(last) => Fragment::Text(format!("done: {}", last.content.text)),
            None => next(LOOK),
        },
        _ if looks_first => next(LOOK),
        _ => next(APPEND),
    }
}

fn delivery_channels(folder: &WorkFolder, store: &SqliteStore) -> Result<DeliveryChannels> {
    let workspace = Workspace::open(&folder.workspace(), Vec::new())
        .map_err(|error| anyhow::anyhow!(error.to_string()))?;
    let variables = BTreeMap::new();
    Ok(DeliveryChannels {
        sessions: SessionChannel::new(store.stores().sessions, |_, _| {}),
        commands: CommandChannel::new(ShellParts {
            workspace: workspace.clone(),
            journal: UndoStorage::in_folder(None).journal,
            settings: ExecSettings::default(),
            read: Vec::new(),
            hidden: Vec::new(),
            helper: std::env::current_exe()?,
            variables: variables.clone(),
            data: None,
            max_duration: Duration::from_secs(60),
        }),
        workspace,
        webhooks: WebhookChannel::new(&WebhookSettings::default(), AddressPolicy::Public),
        desktop: DesktopChannel::from_variables(&variables),
        mail: MailChannel::new(&SmtpSettings::default()),
        folders: None,
    })
}

/// The outbox as the scheduler drives it.
struct BenchOutbox(DeliveryOutbox);

impl OutboxLoop for BenchOutbox {
    fn run<'a>(
        &'a self,
        lease: LeaseNumber,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.0.run(lease, stop))
    }

    fn send_due(&self, lease: LeaseNumber) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.0.deliver_due(lease).await.map(drop) })
    }

    fn wake(&self) {
        self.0.wake();
    }
}
