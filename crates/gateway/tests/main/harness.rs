//! A gateway on loopback with a scripted team.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use jiff::{Timestamp, ToSpan};
use lango_domain::Clock;
use lango_domain::Stores;
use lango_domain::access_tokens::{AccessToken, TokenScope, token_value};
use lango_domain::event::{Event, Principal, SessionId, TurnId};
use lango_domain::model::Model;
use lango_domain::session::{HistoryWindow, SessionKeyRef};
use lango_engine::{ApprovalPolicy, Models, Runner, TurnHooks, TurnLimits};
use lango_gateway::{Gateway, GatewayClockAndIds, GatewayParts, ServedTeam, ServerSettings};
use lango_runtime::{ClientBridge, Runtime, RuntimeParts};
use lango_store::{SqliteStore, StoreLocation};
use lango_team::{Config, build_agent_tree};
use lango_testkit::script::Script;
use lango_testkit::scripted::{ScriptedModel, scripted_tool};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::{Events, Reply, Request};

pub use lango_domain::access_tokens::TokenScope::{Admin, Approve, Chat, Read};

pub struct TestGateway {
    pub folder: TempDir,
    pub stores: Stores,
    pub address: SocketAddr,
    pub model: Arc<ScriptedModel>,
    /// Number of seconds that the gateway's clock is ahead.
    pub clock_offset: Arc<AtomicI64>,
    shutdown: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl TestGateway {
    pub async fn start(script: &str) -> Self {
        Self::start_with(script, ServerSettings::default()).await
    }

    pub async fn start_with(script: &str, settings: ServerSettings) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), script, settings).await
    }

    pub async fn start_in(folder: TempDir, script: &str, settings: ServerSettings) -> Self {
        let stores = SqliteStore::open(StoreLocation::File(folder.path().join("lango.sqlite")))
            .unwrap()
            .stores();
        let script = Script::parse(script).unwrap();
        let model = Arc::new(ScriptedModel::new(script.replies.clone(), 128_000));
        let clock_offset = Arc::new(AtomicI64::new(0));
        let clock = Arc::clone(&clock_offset);
        let now: Clock =
            Arc::new(move || Timestamp::now() + clock.load(Ordering::Relaxed).seconds());
        let bridge = ClientBridge::new(stores.clone(), Arc::clone(&now));
        let (team, runner) = team(
            &script,
            Arc::clone(&model) as Arc<dyn Model>,
            &stores,
            &bridge,
        );
        let ids = AtomicUsize::new(0);
        let limiter = settings.turn_limiter();
        let gateway = Gateway::new(GatewayParts {
            settings,
            stores: stores.clone(),
            runtime: Runtime::new(RuntimeParts {
                runner,
                approver: Some(bridge.approver()),
                limiter,
            }),
            client_bridge: bridge,
            team,
            delete_session_hook: Arc::new(|_, _| {}),
            clock_and_ids: GatewayClockAndIds {
                now,
                new_id: Arc::new(move || format!("id-{}", ids.fetch_add(1, Ordering::Relaxed))),
            },
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, stop) = oneshot::channel();
        let serving = tokio::spawn(async move {
            gateway.serve(listener, async { _ = stop.await }).await;
        });
        Self {
            folder,
            stores,
            address,
            model,
            clock_offset,
            shutdown,
            serving,
        }
    }

    /// Starts the shutdown of the server.
    pub fn shut_down(self) -> StoppingGateway {
        let Self {
            folder,
            shutdown,
            serving,
            ..
        } = self;
        shutdown.send(()).unwrap();
        StoppingGateway { folder, serving }
    }

    pub async fn token(&self, name: &str, scopes: &[TokenScope]) -> String {
        self.token_for(name, name, scopes).await
    }

    pub async fn token_for(&self, name: &str, principal: &str, scopes: &[TokenScope]) -> String {
        self.token_with_expiry(name, principal, scopes, None).await
    }

    pub async fn token_with_expiry(
        &self,
        name: &str,
        principal: &str,
        scopes: &[TokenScope],
        expires: Option<Timestamp>,
    ) -> String {
        let mut random = [7; 32];
        random[..name.len()].copy_from_slice(name.as_bytes());
        let value = token_value(&random);
        let token = AccessToken {
            name: name.to_owned(),
            principal: Principal::new(principal),
            scopes: scopes.iter().copied().collect(),
            created: Timestamp::now(),
            expires,
            used: None,
        };
        self.stores
            .access_tokens
            .add_token(token, &value)
            .await
            .unwrap();
        value.expose().to_owned()
    }

    pub async fn get(&self, path: &str, token: &str) -> Reply {
        Request::get(path)
            .with_token(token)
            .send(self.address)
            .await
    }

    pub async fn post(&self, path: &str, token: &str, body: &Value) -> Reply {
        Request::post(path, body)
            .with_token(token)
            .send(self.address)
            .await
    }

    pub async fn stream(&self, path: &str, token: &str, body: &Value) -> Events {
        Request::post(path, body)
            .with_token(token)
            .events(self.address)
            .await
    }

    pub async fn log(&self, principal: &str, session: &str) -> Vec<Arc<Event>> {
        let (session, principal) = (SessionId::new(session), Principal::new(principal));
        let key = SessionKeyRef {
            session: &session,
            principal: &principal,
        };
        self.stores
            .sessions
            .load(key, HistoryWindow::Everything)
            .await
            .unwrap()
    }
}

/// A server that is shutting down.
pub struct StoppingGateway {
    folder: TempDir,
    serving: JoinHandle<()>,
}

impl StoppingGateway {
    pub async fn wait(self) -> TempDir {
        self.serving.await.unwrap();
        self.folder
    }
}

fn team(
    script: &Script,
    model: Arc<dyn Model>,
    stores: &Stores,
    bridge: &ClientBridge,
) -> (ServedTeam, Runner) {
    let behaviors = |name: &str| {
        script
            .behaviors
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let tools = script
        .tools
        .iter()
        .map(|name| scripted_tool(name, behaviors(name)))
        .collect();
    let tree = build_agent_tree(Config {
        tools,
        ..Config::default()
    })
    .unwrap();
    let team = ServedTeam::from_tree(&tree);
    let wait = script
        .limits
        .get("wait")
        .and_then(|seconds| std::num::NonZeroU64::new(*seconds));
    let approval = ApprovalPolicy::default();
    let wait_seconds = wait.unwrap_or(approval.wait_seconds);
    // Turn ids must differ from those of an earlier server on the same store.
    let turns = AtomicUsize::new(Timestamp::now().as_microsecond() as usize);
    let runner = Runner::new(lango_engine::RunnerParts {
        tree,
        models: Models {
            default: model,
            per_agent: BTreeMap::new(),
        },
        store: Arc::clone(&stores.sessions),
        blobs: Arc::clone(&stores.blobs),
        approver: None,
        approval_policy: ApprovalPolicy {
            wait_seconds,
            ..approval
        },
        hooks: TurnHooks {
            context_sources: vec![bridge.context_source()],
            ..TurnHooks::default()
        },
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: lango_engine::ClockAndIds {
            now: Arc::new(Timestamp::now),
            new_turn_id: Arc::new(move || {
                TurnId::new(format!("t{}", turns.fetch_add(1, Ordering::Relaxed)))
            }),
        },
    });
    (team, runner)
}
