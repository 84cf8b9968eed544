//! Checks the OpenAPI document: the gateway accepts exactly the document requests, and every
//! response matches its description.

use std::collections::BTreeSet;
use std::path::Path;

use boon::{Compiler, SchemaIndex, Schemas};
use lango_gateway::{ServerSettings, openapi_document};
use lango_testkit::golden;
use serde_json::{Value, json};

use crate::approvals;
use crate::client::{Reply, Request};
use crate::harness::{Admin, TestGateway};

#[test]
fn document_is_as_blessed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    golden::check(&page, &format!("{:#}\n", openapi_document()));
}

/// The OpenAPI document as a client reads it.
struct ApiDescription(Value);

/// An operation of the document.
struct DescribedOperation<'a> {
    document: &'a ApiDescription,
    method: &'static str,
    path: String,
    operation: Value,
}

impl ApiDescription {
    fn new() -> Self {
        Self(openapi_document())
    }

    fn operations(&self) -> Vec<DescribedOperation<'_>> {
        let mut all = Vec::new();
        for (path, methods) in self.0["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let method = match method.as_str() {
                    "get" => "GET",
                    "post" => "POST",
                    "delete" => "DELETE",
                    other => panic!("{other}"),
                };
                let (path, operation) = (path.clone(), operation.clone());
                all.push(DescribedOperation {
                    document: self,
                    method,
                    path,
                    operation,
                });
            }
        }
        all
    }

    fn operation(&self, method: &str, path: &str) -> DescribedOperation<'_> {
        let mut all = self.operations().into_iter();
        all.find(|operation| operation.method == method && operation.path == path)
            .unwrap()
    }

    /// Returns a validator that resolves references in the document.
    fn validator(&self, schema: &Value) -> Validator {
        let mut schema = schema.clone();
        schema["components"] = self.0["components"].clone();
        let mut compiler = Compiler::new();
        compiler.add_resource("schema.json", schema).unwrap();
        let mut schemas = Schemas::new();
        let index = compiler.compile("schema.json", &mut schemas).unwrap();
        Validator { schemas, index }
    }
}

struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn check(&self, value: &Value) -> Result<(), String> {
        let result = self.schemas.validate(value, self.index);
        result.map_err(|error| error.to_string())
    }

    fn is_valid(&self, value: &Value) -> bool {
        self.check(value).is_ok()
    }
}

impl DescribedOperation<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns the path with names that do not exist.
    fn example_path(&self) -> String {
        self.path
            .replace("{session}", "none")
            .replace("{model}", "none")
    }

    fn body_schema(&self) -> Option<&Value> {
        self.operation
            .pointer("/requestBody/content/application~1json/schema")
    }

    fn parameters(&self) -> Vec<Value> {
        self.operation["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    fn request(&self) -> Request {
        match self.body_schema() {
            Some(_) => Request {
                method: self.method,
                ..Request::post(&self.example_path(), &json!({}))
            },
            None => Request {
                method: self.method,
                ..Request::get(&self.example_path())
            },
        }
    }

    /// Asserts that the status and the body of a reply match the description.
    fn check(&self, reply: &Reply) {
        let name = format!("{}: {} {}", self.name(), reply.status, reply.body);
        let mut response = self.operation["responses"][reply.status.to_string()].clone();
        assert!(response.is_object(), "undocumented status: {name}");
        if let Some(reference) = response["$ref"].as_str() {
            response = self.document.0.pointer(&reference[1..]).unwrap().clone();
        }
        let kind = reply.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap();
        let Some(content) = response.get("content") else {
            return assert_eq!(reply.body, "", "undocumented body: {name}");
        };
        let schema = &content[kind]["schema"];
        assert!(
            !schema.is_null(),
            "undocumented media type `{kind}`: {name}"
        );
        let assert_valid = |schema: &Value, value: &Value| {
            let validator = self.document.validator(schema);
            assert_eq!(validator.check(value), Ok(()), "{value}: {name}");
        };
        match kind {
            "text/event-stream" => events(&reply.body).iter().for_each(|event| {
                assert_valid(schema, event);
                let data = &schema["properties"]["data"];
                let json = data.get("anyOf").map_or(data, |either| &either[0]);
                let text = event["data"].as_str().unwrap();
                match serde_json::from_str(text) {
                    Ok(value) => assert_valid(&json["contentSchema"], &value),
                    Err(_) => assert_eq!(data["anyOf"][1]["const"], text, "{name}"),
                }
            }),
            "application/json" => assert_valid(schema, &reply.json()),
            _ => assert_valid(schema, &json!(reply.body)),
        }
    }
}

/// Parses server-sent events to objects with their fields.
fn events(body: &str) -> Vec<Value> {
    let fields = |event: &str| -> serde_json::Map<String, Value> {
        let lines = event.lines().filter_map(|line| line.split_once(": "));
        lines
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect()
    };
    let events = body
        .split("\n\n")
        .filter(|event| !event.is_empty() && !event.starts_with(':'));
    events.map(|event| Value::Object(fields(event))).collect()
}

/// Returns valid and invalid values for fields.
fn sample_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(2),
        json!(-1),
        json!(""),
        json!(" \u{a0}\u{3000}"),
        json!("\u{85}"),
        json!("\u{feff}"),
        json!("a"),
        json!("Größe 大"),
        json!("none"),
        json!("a\u{0}b"),
        json!("a\nb"),
        json!("a\u{202e}b"),
        json!("a".repeat(63)),
        json!("a".repeat(64)),
        json!("ü".repeat(200)),
        json!("ü".repeat(201)),
        json!("approve"),
        json!({ "approve": null }),
        json!("same_call"),
        json!("user"),
        json!("tool"),
        json!([]),
        json!({}),
        json!(["user", "hi"]),
        json!([{}]),
        json!([["user", "hi"]]),
        json!([["text", "hi"]]),
        json!([{ "type": "text", "text": "hi" }]),
        json!([{ "type": "text", "text": " " }]),
        json!([{ "type": "text" }]),
        json!([{ "type": "text", "text": null }]),
        json!([{ "type": "image_url", "text": "hi" }]),
        json!([{ "role": "user", "content": "hi" }]),
        json!({ "include_usage": null }),
        json!({ "include_usage": 1 }),
    ]
}

/// Returns variants of a value: each part, at any depth, removed or replaced, and unknown fields
/// added.
fn mutations(value: &Value) -> Vec<Value> {
    let mut all = sample_values();
    match value {
        Value::Object(fields) => {
            all.push(Value::Array(fields.values().cloned().collect()));
            let with = |name: &str, part: Value| {
                let mut changed = value.clone();
                changed[name] = part;
                changed
            };
            all.push(with("novelty", json!({ "a": [1] })));
            for (name, part) in fields {
                all.extend(mutations(part).into_iter().map(|part| with(name, part)));
                let mut without = fields.clone();
                without.remove(name);
                all.push(Value::Object(without));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for item in mutations(item) {
                    let mut items = items.clone();
                    items[at] = item;
                    all.push(Value::Array(items));
                }
            }
        }
        _ => {}
    }
    all
}

/// Returns valid bodies with all known fields for each operation that has a body.
fn valid_bodies() -> Vec<(&'static str, Vec<Value>)> {
    let messages = json!([{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }]);
    vec![
        (
            "/api/turns",
            vec![
                json!({ "text": "hi", "session": "s", "agent": "nobody", "resume": false, "deltas": true, "detach": false }),
                json!({ "session": "none", "resume": true, "text": null, "agent": "nobody" }),
            ],
        ),
        (
            "/api/approvals",
            vec![json!({ "session": "s", "call": "c", "decision": "deny", "reach": "once" })],
        ),
        ("/api/route", vec![json!({ "text": "hi" })]),
        (
            "/v1/chat/completions",
            vec![
                json!({ "model": "none", "messages": messages, "stream": true, "stream_options": { "include_usage": true }, "tools": [], "functions": [], "n": 1 }),
                json!({ "model": "none", "messages": [{ "role": "system", "content": "x" }, { "role": "user", "content": "hi" }] }),
            ],
        ),
    ]
}

/// Starts a gateway without a request limit.
async fn unlimited_gateway() -> TestGateway {
    let requests_per_minute = std::num::NonZeroU32::MAX;
    TestGateway::start_with(
        "root always says hi",
        ServerSettings {
            requests_per_minute,
            ..ServerSettings::default()
        },
    )
    .await
}

#[tokio::test]
async fn accepts_exactly_the_described_bodies() {
    let gateway = unlimited_gateway().await;
    let token = gateway.token("ann", &[Admin]).await;
    let document = ApiDescription::new();
    let bodies = valid_bodies();
    let paths: BTreeSet<&str> = bodies.iter().map(|(path, _)| *path).collect();
    let operations = document.operations();
    let with_body = operations
        .iter()
        .filter(|operation| operation.body_schema().is_some());
    assert_eq!(
        with_body
            .map(|operation| operation.path.as_str())
            .collect::<BTreeSet<_>>(),
        paths
    );
    for (path, valid) in bodies {
        let operation = document.operation("POST", path);
        let validator = document.validator(operation.body_schema().unwrap());
        for body in &valid {
            assert!(validator.is_valid(body), "{path}: {body}");
        }
        for body in valid.iter().flat_map(mutations).chain(valid.clone()) {
            let reply = gateway.post(path, &token, &body).await;
            let is_accepted = reply.status != 400;
            assert_eq!(
                validator.is_valid(&body),
                is_accepted,
                "{path}: {body}: {}",
                reply.body
            );
            operation.check(&reply);
        }
    }
}

/// Returns percent-encoded parameter values with their decoded text, or `None` if it is not UTF-8.
fn encoded_values() -> Vec<(String, Option<String>)> {
    let mut all: Vec<(String, Option<String>)> =
        vec![("%FF".to_owned(), None), ("a%C3".to_owned(), None)];
    let texts = [
        "0", "1", "7", "1000", "1001", "-1", "1.5", "x", "true", "false", "yes", "null",
    ];
    let unusual = [
        " ",
        "\u{a0}",
        "a\u{0}",
        "a\u{202e}b",
        "\u{2028}",
        "Größe 大",
        "18446744073709551615",
    ];
    let long = [
        "ü".repeat(200),
        "ü".repeat(201),
        "18446744073709551616".to_owned(),
    ];
    let texts = texts
        .into_iter()
        .chain(unusual)
        .map(str::to_owned)
        .chain(long);
    all.extend(texts.map(|text| {
        (
            text.bytes().map(|byte| format!("%{byte:02X}")).collect(),
            Some(text),
        )
    }));
    all
}

/// Parses a parameter as the type of its schema. An integer beyond 64 bits stays text: as a float it
/// would equal the largest one that is allowed.
fn parse_parameter(text: &str, schema: &Value) -> Value {
    let is_too_large = |value: &Value| value.as_f64().is_some_and(|n| n >= u64::MAX as f64);
    match serde_json::from_str::<Value>(text) {
        Ok(value) if schema["type"] != "string" && !(value.is_f64() && is_too_large(&value)) => {
            value
        }
        _ => json!(text),
    }
}

#[tokio::test]
async fn accepts_exactly_the_described_parameters() {
    let gateway = unlimited_gateway().await;
    let token = gateway.token("ann", &[Admin]).await;
    let document = ApiDescription::new();
    for operation in document.operations() {
        for parameter in operation.parameters() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let validator = document.validator(schema);
            for (encoded, text) in encoded_values() {
                let path = operation.example_path();
                let request = match parameter["in"].as_str().unwrap() {
                    "query" => Request {
                        path: format!("{path}?{name}={encoded}"),
                        ..operation.request()
                    },
                    "path" => {
                        let path = operation.path.replace(&format!("{{{name}}}"), &encoded);
                        Request {
                            path,
                            ..operation.request()
                        }
                    }
                    _ => operation.request().with(name, &encoded),
                };
                let reply = request.with_token(&token).send(gateway.address).await;
                // Queries are decoded as forms, which replaces invalid UTF-8 by U+FFFD.
                let text =
                    text.or_else(|| (parameter["in"] == "query").then(|| "\u{fffd}".to_owned()));
                let is_allowed =
                    text.is_some_and(|text| validator.is_valid(&parse_parameter(&text, schema)));
                let is_accepted = reply.status != 400;
                let name = format!("{}: {name}={encoded}: {}", operation.name(), reply.body);
                assert!(
                    is_allowed == is_accepted || parameter["in"] == "header" && is_accepted,
                    "{name}"
                );
                operation.check(&reply);
            }
        }
    }
}

/// Errors of the middleware are described for every operation.
#[tokio::test]
async fn middleware_errors_are_described() {
    let gateway = unlimited_gateway().await;
    let (admin, no_scope) = (
        gateway.token("ann", &[Admin]).await,
        gateway.token("bob", &[]).await,
    );
    let large = vec![b' '; ServerSettings::default().body_bytes.get() + 1];
    for operation in ApiDescription::new().operations() {
        let request = || operation.request().with_token(&admin);
        let mut rejected = vec![
            (421, request().with("host", "other.example")),
            (403, request().with("origin", "https://other.example")),
            (431, request().with("x-long", &"x".repeat(64 * 1024))),
        ];
        if operation.operation.get("security").is_some() {
            rejected.push((401, operation.request()));
            rejected.push((401, operation.request().with_token("lango_wrong")));
            rejected.push((403, operation.request().with_token(&no_scope)));
        }
        if operation.body_schema().is_some() {
            rejected.push((415, request().with("content-type", "text/plain")));
            rejected.push((
                413,
                Request {
                    body: Some(large.clone()),
                    ..request()
                },
            ));
            rejected.push((
                400,
                Request {
                    body: Some(b"{oops".to_vec()),
                    ..request()
                },
            ));
            rejected.push((
                400,
                Request {
                    body: Some(b"\xff".to_vec()),
                    ..request()
                },
            ));
        }
        for (status, request) in rejected {
            let reply = request.send(gateway.address).await;
            assert_eq!(reply.status, status, "{}: {}", operation.name(), reply.body);
            operation.check(&reply);
        }
    }
}

#[tokio::test]
async fn rate_limit_errors_are_described() {
    let once = std::num::NonZeroU32::MIN;
    let settings = ServerSettings {
        requests_per_minute: once,
        ..ServerSettings::default()
    };
    let gateway = TestGateway::start_with("root always says hi", settings).await;
    let token = gateway.token("ann", &[Admin]).await;
    assert_eq!(gateway.get("/api/agents", &token).await.status, 200);
    let document = ApiDescription::new();
    let protected = document
        .operations()
        .into_iter()
        .filter(|operation| operation.operation.get("security").is_some());
    for operation in protected {
        let reply = operation
            .request()
            .with_token(&token)
            .send(gateway.address)
            .await;
        assert_eq!(reply.status, 429, "{}", operation.name());
        operation.check(&reply);
    }
}

/// A request and the expected status.
struct Step {
    method: &'static str,
    path: &'static str,
    address: &'static str,
    body: Option<Value>,
    status: u16,
}

fn get(path: &'static str, address: &'static str) -> Step {
    Step {
        method: "GET",
        path,
        address,
        body: None,
        status: 200,
    }
}

fn post(path: &'static str, body: Value, status: u16) -> Step {
    Step {
        method: "POST",
        path,
        address: path,
        body: Some(body),
        status,
    }
}

/// Returns requests to all operations, in the order of [`RESPONSES_SCRIPT`].
fn response_steps() -> Vec<Step> {
    let chat = |stream: bool| {
        let options = json!({ "include_usage": true });
        json!({ "messages": [{ "role": "user", "content": "hi" }], "stream": stream, "stream_options": options })
    };
    let turn = json!({ "text": "hi", "session": "s", "deltas": true });
    let (turns, completions) = ("/api/turns", "/v1/chat/completions");
    let session = "/api/sessions/{session}";
    vec![
        post(turns, turn.clone(), 200),
        post(turns, turn.clone(), 200),
        post(completions, chat(false), 200),
        post(completions, chat(true), 200),
        post(completions, chat(true), 200),
        post(completions, chat(false), 502),
        post(completions, chat(false), 503),
        post(turns, turn, 200),
        post(turns, json!({ "session": "s", "resume": true }), 409),
        post(turns, json!({ "text": "hi", "agent": "nobody" }), 404),
        post("/api/route", json!({ "text": "read the file a.txt" }), 200),
        Step {
            address: "/api/sessions/s/cancel",
            ..post("/api/sessions/{session}/cancel", json!({}), 200)
        },
        get("/api/sessions", "/api/sessions"),
        get(session, "/api/sessions/s?after=1&limit=3"),
        Step {
            status: 404,
            ..get(
                "/api/sessions/{session}/events",
                "/api/sessions/none/events",
            )
        },
        get("/api/approvals", "/api/approvals"),
        get("/api/agents", "/api/agents"),
        get("/api/usage", "/api/usage?session=s"),
        get("/api/audit", "/api/audit?limit=5"),
        get("/api/openapi.json", "/api/openapi.json"),
        get("/v1/models", "/v1/models"),
        get("/v1/models/{model}", "/v1/models/operator"),
        get("/health", "/health"),
        get("/ready", "/ready"),
        get("/metrics", "/metrics"),
        Step {
            method: "DELETE",
            status: 204,
            ..get(session, "/api/sessions/s")
        },
    ]
}

const RESPONSES_SCRIPT: &str = "root transfers operator
operator calls fs_read {\"path\":\"a\"}
operator says Done.
root says Hello.
root says Hi.
root streams Hi| there.
root fails busy
root fails too_large
root fails busy
root fails too_long
root fails too_long";

/// Responses of successful requests and of failed model calls.
#[tokio::test]
async fn responses_are_described() {
    let gateway = TestGateway::start(RESPONSES_SCRIPT).await;
    let token = gateway.token("ann", &[Admin]).await;
    let document = ApiDescription::new();
    for step in response_steps() {
        let request = match &step.body {
            Some(body) => Request::post(step.address, body),
            None => Request::get(step.address),
        };
        let method = step.method;
        let reply = Request { method, ..request }
            .with_token(&token)
            .send(gateway.address)
            .await;
        let name = format!("{method} {}: {}", step.address, reply.body);
        assert_eq!(reply.status, step.status, "{name}");
        document.operation(method, step.path).check(&reply);
    }
    let metrics = gateway.get("/metrics", &token).await.body;
    assert!(
        metrics.contains("lango_requests_total{route=\"/api/sessions/{session}\",status=\"204\"}"),
        "{metrics}"
    );
}

/// Followed events match the description of turn events.
#[tokio::test]
async fn followed_events_are_described() {
    let gateway = TestGateway::start("root always says hi").await;
    let token = gateway.token("ann", &[Admin]).await;
    gateway
        .post(
            "/api/turns",
            &token,
            &json!({ "text": "hi", "session": "s" }),
        )
        .await;
    let document = ApiDescription::new();
    let operation = document.operation("GET", "/api/sessions/{session}/events");
    let follow = Request::get("/api/sessions/s/events?after=1")
        .with("last-event-id", "0")
        .with_token(&token);
    let mut followed = follow.events(gateway.address).await;
    for seq in 1..=4 {
        let (id, data) = followed.next().await.unwrap();
        assert_eq!(id, Some(seq));
        let body = format!("id: {seq}\ndata: {data}\n\n");
        operation.check(&Reply {
            status: 200,
            head: followed.head.clone(),
            body,
        });
    }
}

/// Approval questions and answers match their descriptions.
#[tokio::test]
async fn approvals_are_described() {
    let gateway = TestGateway::start(approvals::APPROVAL_SCRIPT).await;
    let token = gateway.token("ann", &[Admin]).await;
    let document = ApiDescription::new();
    let mut stream = gateway
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let question = approvals::wait_for_question(&gateway, &token).await;
    document
        .operation("GET", "/api/approvals")
        .check(&gateway.get("/api/approvals", &token).await);
    for (reach, status) in [("for ever", 400), ("pattern", 204), ("once", 404)] {
        let answer =
            json!({ "session": "s", "call": question["call"], "decision": "deny", "reach": reach });
        let reply = gateway.post("/api/approvals", &token, &answer).await;
        assert_eq!(reply.status, status, "{reach}: {}", reply.body);
        document.operation("POST", "/api/approvals").check(&reply);
    }
    stream.collect_rest().await;
}
