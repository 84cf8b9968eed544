//! The A2A server with a worker for the official test kits (TCK). The prefix of a message id selects
//! the behavior. For the kits only: it needs no token.
//!
//! For the kit of version 1.0, run
//! `cargo run -p lango-gateway --example a2a-conformance -- 9999 1.0` and point the kit at
//! `http://127.0.0.1:9999`. For the kit of version 0.3, omit the last argument and point it at
//! `http://127.0.0.1:9999/a2a`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::Stores;
use lango_domain::access_tokens::{AccessToken, TokenScope, token_value};
use lango_domain::event::Principal;
use lango_engine::{ApprovalPolicy, InMemorySessionStore, Models, Runner, TurnHooks, TurnLimits};
use lango_gateway::{
    A2aSettings, Gateway, GatewayClockAndIds, GatewayParts, ServedTeam, ServerSettings,
    TaskAssignment, TaskBackend, TaskStep, TaskSteps, Worker,
};
use lango_net::AddressPolicy;
use lango_remote::a2a::{
    Artifact, ArtifactId, Message, MessageId, Part, PartContent, ProtocolError, Role, TaskState,
};
use lango_runtime::{ClientBridge, Runtime, RuntimeParts, TurnLimiter};
use lango_store::{SqliteStore, StoreLocation};
use lango_team::{Config, build_agent_tree};
use lango_testkit::script_runner;
use lango_testkit::scripted::{ScriptedModel, scripted_tool};
use serde_json::json;

/// Duration of a long task. The kits wait 2 s for a stream and need a task that runs twice as long.
const LONG_TASK: Duration = Duration::from_millis(4_500);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "9999".to_owned())
        .parse()?;
    let folder = tempfile::tempdir()?;
    let stores =
        SqliteStore::open(StoreLocation::File(folder.path().join("conformance.db")))?.stores();
    let value = token_value(&[7; 32]);
    stores.access_tokens.add_token(token(), &value).await?;
    let gateway = gateway(stores, port)?;
    let authorization: HeaderValue = format!("Bearer {}", value.expose()).parse()?;
    let router = gateway.router().layer(from_fn(move |request, next| {
        add_default_token(authorization.clone(), request, next)
    }));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}

/// Adds a token, because the kits send none. The kit of 0.3 expects one method to fail without it.
async fn add_default_token(authorization: HeaderValue, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 4 * 1024 * 1024)
        .await
        .unwrap_or_default();
    if !String::from_utf8_lossy(&body).contains("agent/getAuthenticatedExtendedCard") {
        head.headers
            .entry(header::AUTHORIZATION)
            .or_insert(authorization);
    }
    next.run(Request::from_parts(head, body.into())).await
}

fn token() -> AccessToken {
    AccessToken {
        name: "kit".to_owned(),
        principal: Principal::new("kit"),
        scopes: BTreeSet::from([TokenScope::Admin]),
        created: Timestamp::UNIX_EPOCH,
        expires: None,
        used: None,
    }
}

fn gateway(stores: Stores, port: u16) -> Result<Gateway, Box<dyn Error>> {
    let tree = build_agent_tree(Config {
        tools: vec![scripted_tool("fs_read", &[])],
        ..Config::default()
    })?;
    let team = ServedTeam::from_tree(&tree);
    let now: Clock = Arc::new(Timestamp::now);
    let bridge = ClientBridge::new(stores.clone(), Arc::clone(&now));
    let runner = Runner::new(lango_engine::RunnerParts {
        tree,
        models: Models {
            default: Arc::new(ScriptedModel::new(HashMap::new(), 128_000)),
            per_agent: BTreeMap::new(),
        },
        store: Arc::new(InMemorySessionStore::default()),
        blobs: Arc::new(InMemorySessionStore::default()),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: script_runner::clock_and_ids(),
    });
    let count = AtomicUsize::new(0);
    let older_version = std::env::args()
        .nth(2)
        .is_none_or(|version| version != "1.0");
    let settings = ServerSettings {
        port,
        requests_per_minute: NonZeroU32::MAX,
        // The kits reuse message ids for new messages.
        a2a: A2aSettings {
            repeat_seconds: 0,
            older_version,
            ..A2aSettings::default()
        },
        ..ServerSettings::default()
    };
    let parts = GatewayParts {
        settings,
        stores,
        runtime: Runtime::new(RuntimeParts {
            runner,
            approver: None,
            limiter: TurnLimiter::unlimited(),
        }),
        client_bridge: bridge,
        team,
        delete_session_hook: Arc::new(|_, _| ()),
        clock_and_ids: GatewayClockAndIds {
            now,
            new_id: Arc::new(move || format!("{}", count.fetch_add(1, Ordering::Relaxed))),
        },
    };
    // The kits receive push notifications on loopback.
    Ok(Gateway::with_task_backend(
        parts,
        TaskBackend {
            worker: Arc::new(ScriptedWorker),
            reach: AddressPolicy::Anywhere,
        },
    ))
}

/// Follows the scenarios of the kits.
struct ScriptedWorker;

impl Worker for ScriptedWorker {
    fn input_modes(&self) -> Vec<String> {
        ["text/plain", "application/json"]
            .map(str::to_owned)
            .to_vec()
    }

    fn output_modes(&self) -> Vec<String> {
        ["text/plain", "application/json", "application/octet-stream"]
            .map(str::to_owned)
            .to_vec()
    }

    fn reply(&self, message: &Message) -> Option<Message> {
        let id = MessageId::new(format!("reply-to-{}", message.id));
        let has_reply = message.id.as_str().starts_with("tck-message-response");
        has_reply.then(|| Message {
            context: message.context.clone(),
            ..Message::text(id, Role::Agent, "Direct message response")
        })
    }

    fn work(&self, _: &Gateway, assignment: TaskAssignment) -> Result<TaskSteps, ProtocolError> {
        let steps =
            stream::iter(script(assignment.message.id.as_str())).then(|(delay, step)| async move {
                tokio::time::sleep(delay).await;
                step
            });
        let cancelled = assignment.cancel.clone().cancelled_owned();
        let end = stream::once(async move {
            let is_cancelled = assignment.cancel.is_cancelled();
            is_cancelled.then(|| TaskStep::from_state(TaskState::Canceled))
        });
        Ok(steps
            .take_until(cancelled)
            .chain(end.filter_map(std::future::ready))
            .boxed())
    }
}

/// Returns the steps for a message id, each with the delay before it.
fn script(message_id: &str) -> Vec<(Duration, TaskStep)> {
    let starts_with = |prefix: &str| message_id.starts_with(prefix);
    let working = || TaskStep::from_state(TaskState::Working);
    let completed = || TaskStep::from_state(TaskState::Completed);
    let lifecycle =
        |artifacts: Vec<TaskStep>| [vec![working()], artifacts, vec![completed()]].concat();
    let steps = match () {
        () if starts_with("tck-input-required") => {
            vec![TaskStep::from_state(TaskState::InputRequired)]
        }
        () if starts_with("tck-reject-task") => {
            vec![TaskStep::with_message(TaskState::Rejected, "rejected")]
        }
        () if starts_with("tck-artifact-text") => lifecycle(vec![text("Generated text content")]),
        () if starts_with("tck-artifact-file-url") => lifecycle(vec![file(PartContent::Url(
            "https://example.com/output.txt".to_owned(),
        ))]),
        () if starts_with("tck-artifact-file") || starts_with("tck-stream-artifact-file") => {
            lifecycle(vec![file(PartContent::Raw(
                "SGVsbG8gZnJvbSBUQ0s=".to_owned(),
            ))])
        }
        () if starts_with("tck-artifact-data") => lifecycle(vec![artifact(Part::new(
            PartContent::Data(json!({ "key": "value", "count": 42 })),
        ))]),
        () if starts_with("tck-stream-001") => lifecycle(vec![text("Stream hello from TCK")]),
        () if starts_with("tck-stream-002") => vec![completed()],
        () if starts_with("tck-stream-003") => lifecycle(vec![text("Stream task lifecycle")]),
        () if starts_with("tck-stream-ordering-001") => lifecycle(vec![text("Ordered output")]),
        () if starts_with("tck-stream-artifact-text") => {
            lifecycle(vec![text("Streamed text content")])
        }
        () if starts_with("tck-stream-artifact-chunked") => lifecycle(chunks()),
        () if starts_with("test-resubscribe-message-id") => {
            return vec![(Duration::ZERO, working()), (LONG_TASK, completed())];
        }
        () if starts_with("tck-") => vec![TaskStep::with_message(
            TaskState::Completed,
            "Hello from TCK",
        )],
        // The kit of 0.3 continues or cancels tasks.
        () => vec![
            working(),
            TaskStep::with_message(TaskState::InputRequired, "Hello from TCK"),
        ],
    };
    steps
        .into_iter()
        .map(|step| (Duration::ZERO, step))
        .collect()
}

fn text(text: &str) -> TaskStep {
    artifact(Part::text(text))
}

fn file(content: PartContent) -> TaskStep {
    let (filename, media_type) = (Some("output.txt".to_owned()), Some("text/plain".to_owned()));
    artifact(Part {
        filename,
        media_type,
        ..Part::new(content)
    })
}

fn artifact(part: Part) -> TaskStep {
    let artifact = Artifact {
        parts: vec![part],
        ..Artifact::text(ArtifactId::new("result"), "")
    };
    TaskStep::Artifact {
        artifact,
        append: false,
        last: true,
    }
}

fn chunks() -> Vec<TaskStep> {
    let chunk = |text: &str, append, last| TaskStep::Artifact {
        artifact: Artifact::text(ArtifactId::new("result"), text),
        append,
        last,
    };
    vec![
        chunk("chunk-1 ", false, false),
        chunk("chunk-2", true, true),
    ]
}
