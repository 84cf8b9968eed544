//! The tools with a store in memory and a clock that tests advance.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use lango_automation::delivery::{DeliverySettings, TargetCheck};
use lango_automation::planning::{AutomationCatalog, PlanLimits, SharedCatalog};
use lango_automation::{
    AutomationTools, BackgroundSettings, CronSettings, LazyAutomationStore, ToolGroups,
    WorkflowSettings, tools,
};
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::automation::{
    AutomationStore, Job, LeaseClaim, LeaseNumber, LeaseOutcome, Run, RunClaim, RunEnd, RunId,
    RunProgress, RunState,
};
use lango_domain::event::{CallId, Decider, Principal, SessionId, TurnId};
use lango_domain::secret::Secret;
use lango_domain::{
    AgentName, Clock, Intent, Label, Tool, ToolContext, ToolError, ToolOutput, ToolOutputSink,
};
use lango_net::AddressPolicy;
use lango_store::{SqliteStore, StoreLocation};
use lango_tools::files::Workspace;
use serde_json::Value;

/// A Wednesday, 01:28 in Berlin.
pub const START: &str = "2026-11-18T00:28:00Z";
pub const USER_SESSION: &str = "chat";

pub struct ToolFixture {
    pub store: Arc<dyn AutomationStore>,
    pub parts: AutomationTools,
    seconds: Arc<AtomicI64>,
    pub wakes: Arc<AtomicUsize>,
}

impl ToolFixture {
    pub fn new() -> Self {
        Self::with_settings(CronSettings::default(), DeliverySettings::default())
    }

    pub fn with_settings(cron: CronSettings, delivery: DeliverySettings) -> Self {
        let store = SqliteStore::open(StoreLocation::Memory).unwrap();
        let store = store.stores().automation;
        let seconds = Arc::new(AtomicI64::new(0));
        let wakes = Arc::new(AtomicUsize::new(0));
        let limits = PlanLimits::new(
            &cron,
            &BackgroundSettings::default(),
            &WorkflowSettings::default(),
            TargetCheck {
                settings: delivery,
                address_policy: AddressPolicy::Public,
                workspace: None,
                variables: BTreeMap::new(),
            },
        );
        let counted = Arc::clone(&wakes);
        let parts = AutomationTools {
            store: LazyAutomationStore::ready(Arc::clone(&store)),
            clock: clock(&seconds),
            time_zone: TimeZone::get("Europe/Berlin").unwrap(),
            groups: ToolGroups {
                cron: true,
                background: true,
                workflow: true,
            },
            limits: Arc::new(limits),
            catalog: SharedCatalog::default(),
            workspace: None,
            wake: Arc::new(move || _ = counted.fetch_add(1, Ordering::Relaxed)),
        };
        Self {
            store,
            parts,
            seconds,
            wakes,
        }
    }

    /// Makes the names of a team known.
    pub fn with_team(self) -> Self {
        let catalog = AutomationCatalog::new(["operator", "librarian"], &team_tools());
        self.parts.catalog.set(catalog);
        self
    }

    pub fn with_workspace(mut self, folder: &Path) -> Self {
        self.parts.workspace = Some(Workspace::open(folder, Vec::new()).unwrap());
        self
    }

    pub fn now(&self) -> Timestamp {
        (self.parts.clock)()
    }

    pub fn advance(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    pub fn tool(&self, name: &str) -> Tool {
        let tools = tools(self.parts.clone());
        tools.into_iter().find(|tool| tool.name == name).unwrap()
    }

    pub async fn call_as(
        &self,
        context: ToolContext,
        name: &str,
        args: Value,
    ) -> Result<ToolOutput, ToolError> {
        self.tool(name).call(context, args).await
    }

    /// Calls a tool for the user, and returns the text of its output.
    pub async fn call(&self, name: &str, args: Value) -> String {
        let output = self.call_as(context(USER_SESSION), name, args).await;
        output.unwrap().content.text
    }

    pub async fn error(&self, name: &str, args: Value) -> String {
        let output = self.call_as(context(USER_SESSION), name, args).await;
        output.unwrap_err().0
    }

    pub async fn intent(&self, name: &str, args: Value) -> Result<Intent, ToolError> {
        self.tool(name).intent(context(USER_SESSION), args).await
    }

    pub async fn job(&self, name: &str) -> Job {
        let job = self.store.job(&owner(), name).await.unwrap();
        job.unwrap_or_else(|| panic!("no job {name}"))
    }

    pub async fn run(&self, id: u64) -> Run {
        let run = self.store.run(&owner(), RunId::new(id)).await.unwrap();
        run.unwrap()
    }

    /// Takes the lease, as a process that runs the scheduler does.
    pub async fn start_scheduler(&self) -> LeaseNumber {
        let claim = LeaseClaim {
            owner: "test".to_owned(),
            at: self.now(),
            until: self.now() + SignedDuration::from_hours(1),
            abandoned: None,
        };
        match self.store.acquire_lease(claim).await.unwrap() {
            LeaseOutcome::Acquired(lease) => lease.number,
            LeaseOutcome::HeldBy(lease) => panic!("{lease:?}"),
        }
    }

    /// Starts the next queued run in a session.
    pub async fn start_run(&self, lease: LeaseNumber, session: &str) -> Run {
        let claim = RunClaim {
            at: self.now(),
            limit: 1,
        };
        let mut claimed = self.store.claim_runs(lease, claim).await.unwrap();
        let run = claimed.pop().unwrap();
        let progress = RunProgress {
            run: run.id,
            state: RunState::Running,
            reason: None,
            session: Some(SessionId::new(session)),
            resume_at: None,
            active: None,
        };
        self.store.record_progress(lease, progress).await.unwrap();
        run
    }

    pub async fn end_run(&self, lease: LeaseNumber, run: RunId, result: &str, label: Label) {
        let end = RunEnd {
            run,
            state: RunState::Done,
            reason: None,
            at: self.now(),
            result: Some(result.to_owned()),
            error: None,
            label,
            deliveries: Vec::new(),
        };
        assert!(self.store.end_run(lease, end).await.unwrap());
    }
}

/// The tools of a team: two dangerous ones, and one that is safe.
pub fn team_tools() -> Vec<Tool> {
    let mut team = lango_testkit::stub_tools(&["exec_shell", "fs_write"]);
    team.push(Tool::new(
        "fs_read",
        "Reads a file.",
        lango_domain::Safety::Safe,
        |_, _: NoArgs| async { Ok(String::new()) },
    ));
    team
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArgs {}

fn clock(seconds: &Arc<AtomicI64>) -> Clock {
    let seconds = Arc::clone(seconds);
    let start: Timestamp = START.parse().unwrap();
    Arc::new(move || start + SignedDuration::from_secs(seconds.load(Ordering::Relaxed)))
}

pub fn owner() -> Principal {
    Principal::local()
}

pub fn context(session: &str) -> ToolContext {
    ToolContext {
        session: SessionId::new(session),
        principal: owner(),
        turn: TurnId::new("turn-1"),
        agent: AgentName::new("automator").unwrap(),
        call: CallId::new("call-1"),
        label: Label::default(),
        typed_addresses: Vec::new(),
        output_sink: ToolOutputSink::disconnected(),
        redactor: Default::default(),
    }
}

/// Settings with a mail server and a secret for webhooks.
pub fn deliverable() -> DeliverySettings {
    let mut settings = DeliverySettings::default();
    settings.smtp.host = "localhost".to_owned();
    settings.smtp.from = "lango@localhost.example".to_owned();
    settings.webhook.secret = Some(Secret::new("0123456789abcdef"));
    settings
}

/// Approves everything, and remembers the questions.
#[derive(Default)]
pub struct ApproveAll(pub Mutex<Vec<ApprovalQuestion>>);

impl Approver for ApproveAll {
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        self.0.lock().unwrap().push(question);
        async {
            ApprovalDecision::Approved {
                scope: ApprovalScope::Once,
                by: Decider::User,
            }
        }
        .boxed()
    }
}
