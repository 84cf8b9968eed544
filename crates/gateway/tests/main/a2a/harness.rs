//! A server with a scripted team, and an A2A client for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::Stores;
use lango_domain::access_tokens::{AccessToken, TokenScope, token_value};
use lango_domain::event::Principal;
use lango_engine::{ApprovalPolicy, Models, Runner, TurnHooks, TurnLimits};
use lango_gateway::{
    Gateway, GatewayClockAndIds, GatewayParts, ServedTeam, ServerSettings, SkippedItem, TaskBackend,
};
use lango_net::AddressPolicy;
use lango_runtime::{ClientBridge, Runtime, RuntimeParts};
use lango_store::{SqliteStore, StoreLocation};
use lango_team::{Config, build_agent_tree};
use lango_testkit::script::Script;
use lango_testkit::script_runner;
use lango_testkit::scripted::{ScriptedModel, scripted_tool};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Upper limit for every wait in these tests.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub struct A2aTestServer {
    pub folder: TempDir,
    pub address: String,
    pub stores: Stores,
    pub gateway: Gateway,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

pub async fn start_server(script: &str) -> A2aTestServer {
    start_server_with(script, ServerSettings::default()).await
}

pub async fn start_server_with(script: &str, settings: ServerSettings) -> A2aTestServer {
    start_server_in(
        tempfile::tempdir().unwrap(),
        script,
        settings,
        AddressPolicy::Anywhere,
    )
    .await
}

pub async fn start_server_in(
    folder: TempDir,
    script: &str,
    settings: ServerSettings,
    reach: AddressPolicy,
) -> A2aTestServer {
    let stores = SqliteStore::open(StoreLocation::File(folder.path().join("lango.sqlite")))
        .unwrap()
        .stores();
    for (number, (name, scopes)) in [
        ("ann", vec![TokenScope::Chat]),
        ("ann-approves", vec![TokenScope::Chat, TokenScope::Approve]),
        ("bob", vec![TokenScope::Chat]),
        ("reader", vec![TokenScope::Read]),
    ]
    .into_iter()
    .enumerate()
    {
        let principal = Principal::new(name.split('-').next().unwrap());
        let (created, scopes) = (Timestamp::UNIX_EPOCH, BTreeSet::from_iter(scopes));
        let token = AccessToken {
            name: name.to_owned(),
            principal,
            scopes,
            created,
            expires: None,
            used: None,
        };
        // A store that is opened again already has the tokens.
        let _ = stores
            .access_tokens
            .add_token(token, &token_value(&[number as u8; 32]))
            .await;
    }
    let gateway = gateway(&stores, script, settings, reach);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (shutdown, stop) = oneshot::channel::<()>();
    let served = gateway.clone();
    let serving = tokio::spawn(async move {
        served.serve(listener, async { drop(stop.await) }).await;
    });
    A2aTestServer {
        folder,
        address,
        stores,
        gateway,
        shutdown: Some(shutdown),
        serving,
    }
}

fn gateway(
    stores: &Stores,
    script: &str,
    settings: ServerSettings,
    reach: AddressPolicy,
) -> Gateway {
    let now: Clock = Arc::new(Timestamp::now);
    let bridge = ClientBridge::new(stores.clone(), Arc::clone(&now));
    let (team, runner) = team(stores, script, &now);
    let count = AtomicUsize::new(0);
    let prefix = Timestamp::now().as_nanosecond();
    let new_id = move || format!("{prefix}-{}", count.fetch_add(1, Ordering::Relaxed));
    let limiter = settings.turn_limiter();
    let parts = GatewayParts {
        settings,
        stores: stores.clone(),
        runtime: Runtime::new(RuntimeParts {
            runner,
            approver: Some(bridge.approver()),
            limiter,
        }),
        client_bridge: bridge,
        team,
        delete_session_hook: Arc::new(|_, _| ()),
        clock_and_ids: GatewayClockAndIds {
            now,
            new_id: Arc::new(new_id),
        },
    };
    Gateway::with_task_backend(
        parts,
        TaskBackend {
            reach,
            ..TaskBackend::default()
        },
    )
}

fn team(stores: &Stores, script: &str, now: &Clock) -> (ServedTeam, Runner) {
    let script = Script::parse(script).unwrap();
    let behaviors = |name: &String| script.behaviors.get(name).cloned().unwrap_or_default();
    let tools = script
        .tools
        .iter()
        .map(|name| scripted_tool(name, &behaviors(name)))
        .collect();
    let tree = build_agent_tree(Config {
        tools,
        ..Config::default()
    })
    .unwrap();
    let unreachable = || SkippedItem {
        name: "far".to_owned(),
        reason: "connection refused".to_owned(),
    };
    let team = ServedTeam::from_tree(&tree).with_unreachable(Arc::new(move || vec![unreachable()]));
    let model = Arc::new(ScriptedModel::new(script.replies.clone(), 128_000));
    let runner = Runner::new(lango_engine::RunnerParts {
        tree,
        models: Models {
            default: model,
            per_agent: BTreeMap::new(),
        },
        store: Arc::clone(&stores.sessions),
        blobs: Arc::clone(&stores.blobs),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: lango_engine::ClockAndIds {
            now: Arc::clone(now),
            ..script_runner::clock_and_ids()
        },
    });
    (team, runner)
}

impl A2aTestServer {
    pub fn client(&self, name: &str) -> A2aTestClient {
        let names = ["ann", "ann-approves", "bob", "reader"];
        let number = names.iter().position(|existing| *existing == name).unwrap();
        let token = token_value(&[number as u8; 32]).expose().to_owned();
        let client = lango_net::client_builder(TEST_TIMEOUT)
            .timeout(TEST_TIMEOUT)
            .build()
            .unwrap();
        A2aTestClient {
            address: self.address.clone(),
            token,
            client,
        }
    }

    /// Shuts down the server like a signal would, and keeps its files.
    pub async fn shut_down(mut self) -> TempDir {
        drop(self.shutdown.take());
        tokio::time::timeout(TEST_TIMEOUT, &mut self.serving)
            .await
            .unwrap()
            .unwrap();
        self.folder
    }

    pub fn file(folder: &Path) -> std::path::PathBuf {
        folder.join("lango.sqlite")
    }
}

/// An A2A client with a token.
#[derive(Clone)]
pub struct A2aTestClient {
    pub address: String,
    pub token: String,
    pub client: reqwest::Client,
}

/// An HTTP response.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    pub media_type: String,
    pub body: Value,
}

impl A2aTestClient {
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        self.client
            .request(method, format!("{}{path}", self.address))
            .bearer_auth(&self.token)
    }

    /// Sends a JSON-RPC request in the version of the method name.
    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        let reply = self.send(self.rpc_request(method, params)).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body
    }

    pub fn rpc_request(&self, method: &str, params: Value) -> reqwest::RequestBuilder {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let request = self
            .request("POST", "/a2a")
            .header("content-type", "application/json");
        let request = request.body(body.to_string());
        if method.contains('/') {
            request
        } else {
            request.header("A2A-Version", "1.0")
        }
    }

    /// Sends an HTTP+JSON request. Paths under `/v1` belong to version 0.3.
    pub async fn rest(&self, method: &str, path: &str, body: Value) -> HttpReply {
        self.send(self.rest_request(method, path, body)).await
    }

    pub fn rest_request(&self, method: &str, path: &str, body: Value) -> reqwest::RequestBuilder {
        let request = self
            .request(method, &format!("/a2a{path}"))
            .header("A2A-Version", "1.0");
        match body {
            Value::Null => request,
            body => request
                .header("content-type", "application/json")
                .body(body.to_string()),
        }
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> HttpReply {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let media_type = response
            .headers()
            .get("content-type")
            .map_or("", |value| value.to_str().unwrap())
            .to_owned();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        HttpReply {
            status,
            media_type,
            body,
        }
    }

    /// Returns all events of a stream.
    pub async fn events(&self, request: reqwest::RequestBuilder) -> Vec<Value> {
        EventStream::open(request).await.collect_rest().await
    }

    /// Sends a text and waits for its task.
    pub async fn ask(&self, id: &str, text: &str) -> Value {
        let answer = self
            .rpc("SendMessage", json!({ "message": message(id, text) }))
            .await;
        answer["result"]["task"].clone()
    }

    /// Sends a text without waiting for its task.
    pub async fn start_task(&self, id: &str, text: &str) -> Value {
        let params = json!({
            "message": message(id, text), "configuration": { "returnImmediately": true },
        });
        self.rpc("SendMessage", params).await["result"]["task"].clone()
    }

    /// Waits until a task is completed and returns it.
    pub async fn wait_until_completed(&self, id: &Value) -> Value {
        let completed = async {
            loop {
                let task = self.task(id).await;
                if task["status"]["state"] == "TASK_STATE_COMPLETED" {
                    return task;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, completed)
            .await
            .expect("the task completes in time")
    }

    pub async fn task(&self, id: &Value) -> Value {
        self.rpc("GetTask", json!({ "id": id })).await["result"].clone()
    }
}

/// An event stream that is read one event at a time.
pub struct EventStream {
    response: reqwest::Response,
    text: String,
}

impl EventStream {
    pub async fn open(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let kind = response
            .headers()
            .get("content-type")
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        if !kind.starts_with("text/event-stream") {
            panic!("{kind}: {}", response.text().await.unwrap());
        }
        Self {
            response,
            text: String::new(),
        }
    }

    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let frame: String = self.text.drain(..end + 2).collect();
                let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
                if let Some(data) = data {
                    return Some(serde_json::from_str(data).unwrap());
                }
                continue;
            }
            let chunk = tokio::time::timeout(TEST_TIMEOUT, self.response.chunk())
                .await
                .unwrap()
                .unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    pub async fn collect_rest(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

/// Returns a message of version 1.0.
pub fn message(id: &str, text: &str) -> Value {
    json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] })
}

/// Returns a JSON-RPC message of version 0.3.
pub fn message_v03(id: &str, text: &str) -> Value {
    json!({ "kind": "message", "messageId": id, "role": "user", "parts": [{ "kind": "text", "text": text }] })
}

/// Returns the text of a task's artifacts.
pub fn artifact_text(task: &Value) -> String {
    let parts = task["artifacts"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|artifact| artifact["parts"].as_array().unwrap());
    parts.map(|part| part["text"].as_str().unwrap()).collect()
}
