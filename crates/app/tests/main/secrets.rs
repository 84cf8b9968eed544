//! Secrets in a whole system: where a value may be found after a turn (B130), and keys from the vault.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt, ready};
use lango_app::{
    Assistant, AssistantOptions, LazyStores, LoadedConfig, Recorder, Recording, Replayer,
    Strictness, TurnSpec, UserRequest, resolve_vault_settings,
};
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::event::{Decider, EventBody, Principal, SessionId, Update};
use lango_domain::{Content, Safety, SecretField, SecretSource, Tool, ToolError};
use lango_testkit::model_server::{ModelServer, ServerReply};
use lango_testkit::scripted_secrets::ScriptedSecrets;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::setup::Machine;

const CANARY: &str = "canary/Zq8+7tG=\"x";

#[derive(Deserialize, JsonSchema)]
struct ShellArgs {
    command: String,
    env: BTreeMap<String, String>,
}

/// Prints its variables in several forms.
fn exec_shell() -> Tool {
    Tool::new(
        "exec_shell",
        "Runs a command.",
        Safety::Dangerous,
        |context, args: ShellArgs| async move {
            let value = args.env.get("T").cloned().unwrap_or_default();
            let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
            let printed = format!("{} {value} {hex} {:?}", args.command, args.env);
            context.output_sink.send(&printed);
            tracing::warn!(agent = %context.agent, "the tool ran");
            match args.command.as_str() {
                "ok" => Ok(printed),
                _ => Err(ToolError(printed)),
            }
        },
    )
    .with_secret_fields([SecretField::Values("env")])
}

struct Yes;

impl Approver for Yes {
    fn ask(&self, _: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        ready(ApprovalDecision::Approved {
            scope: ApprovalScope::SameCall,
            by: Decider::User,
        })
        .boxed()
    }
}

fn server() -> ModelServer {
    let call = |command: &str| {
        let args = json!({ "command": command, "env": { "T": "{{secret:TOKEN}}" } });
        ServerReply::tool_call("exec_shell", &args)
    };
    let answer = ServerReply::text(&format!("It printed {CANARY}."));
    ModelServer::start(vec![call("ok"), call("fails"), answer]).unwrap()
}

fn config(server: &ModelServer, key: &str) -> String {
    format!(
        "agent:\n  provider: mine\n  model: m\n  multiAgent: false\nproviders:\n  mine:\n    type: openai\n    baseUrl: {}\n    apiKey: {key}\n",
        server.base_url()
    )
}

fn vault() -> Arc<ScriptedSecrets> {
    let secrets = Arc::new(ScriptedSecrets::default());
    secrets.store("TOKEN", CANARY, &["exec_shell"], &[]);
    secrets
}

fn open(
    loaded: &LoadedConfig,
    machine: &Machine,
    recording: &Recording,
    secrets: Option<Arc<dyn SecretSource>>,
) -> Result<Assistant, String> {
    let options = AssistantOptions {
        stores: &LazyStores::new(loaded, &machine.environment),
        tools: vec![exec_shell()],
        catalog: Default::default(),
        approver: Some(Arc::new(Yes)),
        recording,
        secrets,
        remote_agents: None,
    };
    Assistant::open(loaded, &machine.environment, options).map_err(|error| error.to_string())
}

async fn run(assistant: &Assistant, request: UserRequest) -> Vec<Update> {
    let turn = request.into_turn(SessionId::new("s"), Principal::local());
    let turn = assistant.runtime.start_turn(TurnSpec::request(turn));
    let updates = turn.unwrap().collect().await;
    assistant.runtime.wait_for_hooks().await;
    updates
}

fn answer(updates: &[Update]) -> String {
    let answers = updates.iter().filter_map(|update| match update {
        Update::Event(event) => match &event.body {
            EventBody::Answer(Content { text, .. }) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    });
    answers.collect()
}

/// Panics if bytes contain a form of the value.
fn assert_absent(place: &str, bytes: &[u8]) {
    let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    for form in [CANARY, "canary/Zq8", "Y2FuYXJ5L1pxO", "canary%2FZq8", &hex] {
        let is_in = bytes
            .windows(form.len())
            .any(|part| part == form.as_bytes());
        assert!(!is_in, "{form} is in {place}");
    }
}

fn assert_absent_below(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files += assert_absent_below(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            // The write-ahead log may just be removed.
            assert_absent(&path.display().to_string(), &bytes);
            files += 1;
        }
    }
    files
}

/// Collects the lines of the log.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<u8>>>);

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// B130: after turns that used a secret, and in which the user and the model wrote it, the value is in no
/// file (store, write-ahead log, recording), no log line, no update and no request.
#[tokio::test]
async fn a_value_is_in_no_place() {
    let lines = LogLines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = server();
    let machine = Machine::new().with_file(
        "home/.config/lango/lango.yaml",
        &config(&server, "key-12345678"),
    );
    let loaded = machine.load(&[]).unwrap();
    let file = machine.folder.path().join("turn.jsonl");
    let recorder = Recorder::create(&file, Vec::new()).unwrap();
    let recording = Recording::Record(Arc::clone(&recorder));
    let assistant = open(&loaded, &machine, &recording, Some(vault())).unwrap();
    let request = UserRequest::typed(format!("my token is {CANARY}; use it"));
    assistant
        .prepare_recorder(&recorder, &Principal::local())
        .await
        .unwrap();
    recorder.start(&SessionId::new("s"), &request).unwrap();
    let updates = run(&assistant, request).await;
    assert_eq!(answer(&updates), "It printed [secret TOKEN: set, hidden].");
    assert_absent("the updates", format!("{updates:?}").as_bytes());
    for request in server.requests() {
        assert_absent("a request", &request.body);
        assert_absent("a request", request.head.as_bytes());
    }
    assert_eq!(server.requests().len(), 3);
    let last = String::from_utf8(server.requests()[2].body.clone()).unwrap();
    assert!(
        last.contains("ok [secret TOKEN: set, hidden] [secret TOKEN: set, hidden]"),
        "{last}"
    );
    let lines = lines.0.lock().unwrap().clone();
    assert!(String::from_utf8_lossy(&lines).contains("the tool ran"));
    assert_absent("the log", &lines);
    let stored = assert_absent_below(machine.folder.path());
    assert!(
        stored >= 3,
        "the store, its log and the recording: {stored}"
    );
    drop(assistant);
    assert_absent_below(machine.folder.path());
    replay(&machine, &loaded, &file).await;
}

/// A recording is replayed without the vault.
async fn replay(machine: &Machine, loaded: &LoadedConfig, file: &Path) {
    let replayer = Replayer::open(file, Strictness::Strict).unwrap();
    let request = replayer.request();
    let recording = Recording::Replay(replayer);
    let assistant = open(loaded, machine, &recording, None).unwrap();
    let updates = run(&assistant, request).await;
    assert_eq!(answer(&updates), "It printed [secret TOKEN: set, hidden].");
    assert_eq!(recording.problems(), Vec::<String>::new());
}

async fn resolved(machine: &Machine, secrets: Option<&ScriptedSecrets>) -> LoadedConfig {
    let mut loaded = machine.load(&[]).unwrap();
    assert!(loaded.has_vault_settings());
    let source = secrets.map(|secrets| secrets as &dyn SecretSource);
    resolve_vault_settings(&mut loaded, source).await;
    loaded
}

/// B130
#[tokio::test]
async fn a_key_can_be_in_the_vault() {
    let server = ModelServer::start(vec![ServerReply::text("hello")]).unwrap();
    let machine = Machine::new().with_file(
        "home/.config/lango/lango.yaml",
        &config(&server, "vault:KEY"),
    );
    let secrets = ScriptedSecrets::default();
    secrets.store("KEY", "sk-0123456789", &["configuration"], &["127.0.0.1"]);
    let loaded = resolved(&machine, Some(&secrets)).await;
    let assistant = open(&loaded, &machine, &Recording::Off, None).unwrap();
    let updates = run(&assistant, UserRequest::typed("hi")).await;
    assert_eq!(answer(&updates), "hello");
    let head = server.requests()[0].head.to_lowercase();
    assert!(
        head.contains("authorization: bearer sk-0123456789"),
        "{head}"
    );
}

/// B130
#[tokio::test]
async fn a_key_that_cannot_be_read_stops_only_what_needs_it() {
    let server = ModelServer::start(vec![ServerReply::text("hello")]).unwrap();
    let machine = Machine::new().with_file(
        "home/.config/lango/lango.yaml",
        &config(&server, "vault:KEY"),
    );
    let other_host = ScriptedSecrets::default();
    other_host.store("KEY", "sk-0123456789", &[], &["api.example.com"]);
    let other_tool = ScriptedSecrets::default();
    other_tool.store("KEY", "sk-0123456789", &["exec_shell"], &[]);
    let locked = ScriptedSecrets::default();
    locked.lock();
    for (secrets, part) in [
        (None, "there is no vault"),
        (
            Some(&ScriptedSecrets::default()),
            "there is no secret `KEY`",
        ),
        (Some(&other_host), "may not be sent to 127.0.0.1"),
        (Some(&other_tool), "may not be used by configuration"),
        (Some(&locked), "lango vault unlock"),
    ] {
        let loaded = resolved(&machine, secrets).await;
        let error = open(&loaded, &machine, &Recording::Off, None)
            .err()
            .unwrap();
        assert!(
            error.starts_with("providers.mine.apiKey: ") && error.contains(part),
            "{error}"
        );
        let provider = &loaded.settings.providers["mine"];
        assert_eq!(provider.api_key, None, "the name is not sent as a key");
    }
    let invalid = Machine::new().with_file(
        "home/.config/lango/lango.yaml",
        &config(&server, "vault:a b"),
    );
    let loaded = resolved(&invalid, Some(&ScriptedSecrets::default())).await;
    let error = open(&loaded, &invalid, &Recording::Off, None)
        .err()
        .unwrap();
    assert!(error.contains("`a b` is no name of a secret"), "{error}");
}

/// Every secret setting may name a secret of the vault. A new one belongs into `vault_settings` first.
#[test]
fn every_secret_setting_is_resolved() {
    let mut found = Vec::new();
    let schema = lango_app::Settings::schema();
    collect_secrets(&schema, &schema, "", &mut found);
    found.sort();
    assert_eq!(
        found,
        [
            "a2a.remoteAgents[].headers.*",
            "a2a.remoteAgents[].token",
            "automation.smtp.password",
            "automation.webhook.secret",
            "browser.credentials.*",
            "embedding.apiKey",
            "mcp.servers.*.env.*",
            "mcp.servers.*.headers.*",
            "mcp.servers.*.token",
            "providers.*.apiKey",
            "providers.*.headers.*",
            "search.engines[].apiKey",
        ]
    );
}

fn collect_secrets(root: &Value, schema: &Value, path: &str, found: &mut Vec<String>) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let pointer = reference.trim_start_matches('#');
        return collect_secrets(root, root.pointer(pointer).unwrap(), path, found);
    }
    if schema.get("writeOnly").is_some_and(|mark| *mark == true) {
        found.push(path.to_owned());
        return;
    }
    for choice in ["anyOf", "allOf", "oneOf"] {
        for schema in schema
            .get(choice)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            collect_secrets(root, schema, path, found);
        }
    }
    for (name, schema) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let path = format!("{path}.{name}");
        collect_secrets(root, schema, path.trim_start_matches('.'), found);
    }
    if let Some(schema) = schema.get("items") {
        collect_secrets(root, schema, &format!("{path}[]"), found);
    }
    if let Some(schema) = schema
        .get("additionalProperties")
        .filter(|schema| schema.is_object())
    {
        collect_secrets(root, schema, &format!("{path}.*"), found);
    }
}
