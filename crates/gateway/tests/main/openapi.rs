//! The description of the API is true: what it allows is read, what it forbids is refused, and every answer is described.

use std::collections::BTreeSet;
use std::path::Path;

use jsonschema::Validator;
use lango_gateway::{ServerSettings, openapi_document};
use lango_testkit::golden;
use serde_json::{Value, json};

use crate::approvals;
use crate::client::{Reply, Request};
use crate::harness::{Admin, TestGateway};

#[test]
fn the_description_is_as_committed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    golden::check(&page, &format!("{:#}\n", openapi_document()));
}

/// The description, as somebody reads it who has nothing else.
struct ApiDescription(Value);

/// One operation of it.
struct DescribedOperation<'a> {
    all: &'a ApiDescription,
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
                    all: self,
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

    /// References are looked up in the whole description.
    fn validator(&self, schema: &Value) -> Validator {
        let mut whole = schema.clone();
        whole["components"] = self.0["components"].clone();
        jsonschema::validator_for(&whole).unwrap()
    }
}

impl DescribedOperation<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The address with something in its places that is nowhere.
    fn address(&self) -> String {
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
                ..Request::post(&self.address(), &json!({}))
            },
            None => Request {
                method: self.method,
                ..Request::get(&self.address())
            },
        }
    }

    /// The status is described, and the body is as described for it.
    fn check(&self, reply: &Reply) {
        let name = format!("{}: {} {}", self.name(), reply.status, reply.body);
        let mut response = self.operation["responses"][reply.status.to_string()].clone();
        assert!(response.is_object(), "this status is not described: {name}");
        if let Some(place) = response["$ref"].as_str() {
            response = self.all.0.pointer(&place[1..]).unwrap().clone();
        }
        let kind = reply.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap();
        let Some(content) = response.get("content") else {
            return assert_eq!(reply.body, "", "a body is not described: {name}");
        };
        let schema = &content[kind]["schema"];
        assert!(!schema.is_null(), "`{kind}` is not described: {name}");
        let fits = |schema: &Value, value: &Value| {
            let validator = self.all.validator(schema);
            let wrong: Vec<String> = validator
                .iter_errors(value)
                .map(|error| error.to_string())
                .collect();
            assert!(wrong.is_empty(), "{wrong:?}: {value}: {name}");
        };
        match kind {
            "text/event-stream" => events(&reply.body).iter().for_each(|event| {
                fits(schema, event);
                let data = &schema["properties"]["data"];
                let json = data.get("anyOf").map_or(data, |either| &either[0]);
                let text = event["data"].as_str().unwrap();
                match serde_json::from_str(text) {
                    Ok(value) => fits(&json["contentSchema"], &value),
                    Err(_) => assert_eq!(data["anyOf"][1]["const"], text, "{name}"),
                }
            }),
            "application/json" => fits(schema, &reply.json()),
            _ => fits(schema, &json!(reply.body)),
        }
    }
}

/// Server-sent events with their fields.
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

/// Values that a field may have or not.
fn odd_values() -> Vec<Value> {
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

/// A value with each of its parts, at any depth, left out, replaced by something odd or joined by something new.
fn mutations(value: &Value) -> Vec<Value> {
    let mut all = odd_values();
    match value {
        Value::Object(fields) => {
            all.push(Value::Array(fields.values().cloned().collect()));
            let with = |name: &str, part: Value| {
                let mut bent = value.clone();
                bent[name] = part;
                bent
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

/// For each operation that takes a body: bodies that it takes, with every field that it knows.
fn good_bodies() -> Vec<(&'static str, Vec<Value>)> {
    let said = json!([{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }]);
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
                json!({ "model": "none", "messages": said, "stream": true, "stream_options": { "include_usage": true }, "tools": [], "functions": [], "n": 1 }),
                json!({ "model": "none", "messages": [{ "role": "system", "content": "x" }, { "role": "user", "content": "hi" }] }),
            ],
        ),
    ]
}

/// A house where a test may ask as often as it likes.
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
async fn a_body_is_read_exactly_where_it_is_described() {
    let house = unlimited_gateway().await;
    let token = house.token("ann", &[Admin]).await;
    let described = ApiDescription::new();
    let bodies = good_bodies();
    let known: BTreeSet<&str> = bodies.iter().map(|(path, _)| *path).collect();
    let operations = described.operations();
    let takes = operations
        .iter()
        .filter(|operation| operation.body_schema().is_some());
    assert_eq!(
        takes
            .map(|operation| operation.path.as_str())
            .collect::<BTreeSet<_>>(),
        known
    );
    for (path, good) in bodies {
        let operation = described.operation("POST", path);
        let validator = described.validator(operation.body_schema().unwrap());
        for body in &good {
            assert!(validator.is_valid(body), "{path}: {body}");
        }
        for body in good.iter().flat_map(mutations).chain(good.clone()) {
            let reply = house.post(path, &token, &body).await;
            let is_read = reply.status != 400;
            assert_eq!(
                validator.is_valid(&body),
                is_read,
                "{path}: {body}: {}",
                reply.body
            );
            operation.check(&reply);
        }
    }
}

/// What may stand in a query or a path, as it is written there; nothing for what is no text.
fn encoded_values() -> Vec<(String, Option<String>)> {
    let mut all: Vec<(String, Option<String>)> =
        vec![("%FF".to_owned(), None), ("a%C3".to_owned(), None)];
    let texts = [
        "0", "1", "7", "1000", "1001", "-1", "1.5", "x", "true", "false", "yes", "null",
    ];
    let odd = [
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
    let texts = texts.into_iter().chain(odd).map(str::to_owned).chain(long);
    all.extend(texts.map(|text| {
        (
            text.bytes().map(|byte| format!("%{byte:02X}")).collect(),
            Some(text),
        )
    }));
    all
}

/// The value that a text stands for where this is expected.
fn parse_parameter(text: &str, schema: &Value) -> Value {
    match schema["type"].as_str().unwrap() {
        "string" => json!(text),
        _ => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    }
}

#[tokio::test]
async fn a_parameter_is_read_exactly_where_it_is_described() {
    let house = unlimited_gateway().await;
    let token = house.token("ann", &[Admin]).await;
    let described = ApiDescription::new();
    for operation in described.operations() {
        for parameter in operation.parameters() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let validator = described.validator(schema);
            for (written, text) in encoded_values() {
                let address = operation.address();
                let request = match parameter["in"].as_str().unwrap() {
                    "query" => Request {
                        path: format!("{address}?{name}={written}"),
                        ..operation.request()
                    },
                    "path" => {
                        let path = operation.path.replace(&format!("{{{name}}}"), &written);
                        Request {
                            path,
                            ..operation.request()
                        }
                    }
                    _ => operation.request().with(name, &written),
                };
                let reply = request.with_token(&token).send(house.address).await;
                // A query is read as a form: what is no text there becomes a mark that stands for it.
                let text =
                    text.or_else(|| (parameter["in"] == "query").then(|| "\u{fffd}".to_owned()));
                let is_allowed =
                    text.is_some_and(|text| validator.is_valid(&parse_parameter(&text, schema)));
                let is_read = reply.status != 400;
                let name = format!("{}: {name}={written}: {}", operation.name(), reply.body);
                assert!(
                    is_allowed == is_read || parameter["in"] == "header" && is_read,
                    "{name}"
                );
                operation.check(&reply);
            }
        }
    }
}

/// Whatever stands before an operation refuses in a described way.
#[tokio::test]
async fn every_refusal_is_described() {
    let house = unlimited_gateway().await;
    let (admin, nothing) = (
        house.token("ann", &[Admin]).await,
        house.token("bob", &[]).await,
    );
    let large = vec![b' '; ServerSettings::default().body_bytes.get() + 1];
    for operation in ApiDescription::new().operations() {
        let request = || operation.request().with_token(&admin);
        let mut refused = vec![
            (421, request().with("host", "elsewhere.example")),
            (403, request().with("origin", "https://elsewhere.example")),
            (431, request().with("x-long", &"x".repeat(64 * 1024))),
        ];
        if operation.operation.get("security").is_some() {
            refused.push((401, operation.request()));
            refused.push((401, operation.request().with_token("lango_wrong")));
            refused.push((403, operation.request().with_token(&nothing)));
        }
        if operation.body_schema().is_some() {
            refused.push((415, request().with("content-type", "text/plain")));
            refused.push((
                413,
                Request {
                    body: Some(large.clone()),
                    ..request()
                },
            ));
            refused.push((
                400,
                Request {
                    body: Some(b"{oops".to_vec()),
                    ..request()
                },
            ));
            refused.push((
                400,
                Request {
                    body: Some(b"\xff".to_vec()),
                    ..request()
                },
            ));
        }
        for (status, request) in refused {
            let reply = request.send(house.address).await;
            assert_eq!(reply.status, status, "{}: {}", operation.name(), reply.body);
            operation.check(&reply);
        }
    }
}

#[tokio::test]
async fn too_often_is_described() {
    let once = std::num::NonZeroU32::MIN;
    let settings = ServerSettings {
        requests_per_minute: once,
        ..ServerSettings::default()
    };
    let house = TestGateway::start_with("root always says hi", settings).await;
    let token = house.token("ann", &[Admin]).await;
    assert_eq!(house.get("/api/agents", &token).await.status, 200);
    let described = ApiDescription::new();
    let closed = described
        .operations()
        .into_iter()
        .filter(|one| one.operation.get("security").is_some());
    for operation in closed {
        let reply = operation
            .request()
            .with_token(&token)
            .send(house.address)
            .await;
        assert_eq!(reply.status, 429, "{}", operation.name());
        operation.check(&reply);
    }
}

/// What is answered when everything goes well, and when the model does not answer.
#[tokio::test]
async fn every_answer_is_as_described() {
    let script = "root transfers operator
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
    let house = TestGateway::start(script).await;
    let token = house.token("ann", &[Admin]).await;
    let described = ApiDescription::new();
    let chat = |stream: bool| {
        let options = json!({ "include_usage": true });
        json!({ "messages": [{ "role": "user", "content": "hi" }], "stream": stream, "stream_options": options })
    };
    let turn = json!({ "text": "hi", "session": "s", "deltas": true });
    let steps = [
        ("POST", "/api/turns", "/api/turns", turn.clone(), 200),
        ("POST", "/api/turns", "/api/turns", turn.clone(), 200),
        (
            "POST",
            "/v1/chat/completions",
            "/v1/chat/completions",
            chat(false),
            200,
        ),
        (
            "POST",
            "/v1/chat/completions",
            "/v1/chat/completions",
            chat(true),
            200,
        ),
        (
            "POST",
            "/v1/chat/completions",
            "/v1/chat/completions",
            chat(true),
            200,
        ),
        (
            "POST",
            "/v1/chat/completions",
            "/v1/chat/completions",
            chat(false),
            502,
        ),
        (
            "POST",
            "/v1/chat/completions",
            "/v1/chat/completions",
            chat(false),
            503,
        ),
        ("POST", "/api/turns", "/api/turns", turn, 200),
        (
            "POST",
            "/api/turns",
            "/api/turns",
            json!({ "session": "s", "resume": true }),
            409,
        ),
        (
            "POST",
            "/api/turns",
            "/api/turns",
            json!({ "text": "hi", "agent": "nobody" }),
            404,
        ),
        (
            "POST",
            "/api/route",
            "/api/route",
            json!({ "text": "read the file a.txt" }),
            200,
        ),
        (
            "POST",
            "/api/sessions/{session}/cancel",
            "/api/sessions/s/cancel",
            json!({}),
            200,
        ),
        ("GET", "/api/sessions", "/api/sessions", json!(null), 200),
        (
            "GET",
            "/api/sessions/{session}",
            "/api/sessions/s?after=1&limit=3",
            json!(null),
            200,
        ),
        (
            "GET",
            "/api/sessions/{session}/events",
            "/api/sessions/none/events",
            json!(null),
            404,
        ),
        ("GET", "/api/approvals", "/api/approvals", json!(null), 200),
        ("GET", "/api/agents", "/api/agents", json!(null), 200),
        (
            "GET",
            "/api/usage",
            "/api/usage?session=s",
            json!(null),
            200,
        ),
        ("GET", "/api/audit", "/api/audit?limit=5", json!(null), 200),
        (
            "GET",
            "/api/openapi.json",
            "/api/openapi.json",
            json!(null),
            200,
        ),
        ("GET", "/v1/models", "/v1/models", json!(null), 200),
        (
            "GET",
            "/v1/models/{model}",
            "/v1/models/operator",
            json!(null),
            200,
        ),
        ("GET", "/health", "/health", json!(null), 200),
        ("GET", "/ready", "/ready", json!(null), 200),
        ("GET", "/metrics", "/metrics", json!(null), 200),
        (
            "DELETE",
            "/api/sessions/{session}",
            "/api/sessions/s",
            json!(null),
            204,
        ),
    ];
    for (method, path, address, body, status) in steps {
        let request = if body.is_null() {
            Request::get(address)
        } else {
            Request::post(address, &body)
        };
        let reply = Request { method, ..request }
            .with_token(&token)
            .send(house.address)
            .await;
        assert_eq!(reply.status, status, "{method} {address}: {}", reply.body);
        described.operation(method, path).check(&reply);
    }
    let counted = house.get("/metrics", &token).await.body;
    assert!(
        counted.contains("lango_requests_total{route=\"/api/sessions/{session}\",status=\"204\"}"),
        "{counted}"
    );
}

/// Following a session gives what a turn gives.
#[tokio::test]
async fn what_is_followed_is_as_described() {
    let house = TestGateway::start("root always says hi").await;
    let token = house.token("ann", &[Admin]).await;
    house
        .post(
            "/api/turns",
            &token,
            &json!({ "text": "hi", "session": "s" }),
        )
        .await;
    let described = ApiDescription::new();
    let operation = described.operation("GET", "/api/sessions/{session}/events");
    let follow = Request::get("/api/sessions/s/events?after=1")
        .with("last-event-id", "0")
        .with_token(&token);
    let mut followed = follow.events(house.address).await;
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

/// A question about a call, and its answer.
#[tokio::test]
async fn questions_are_as_described() {
    let house = TestGateway::start(approvals::APPROVAL_SCRIPT).await;
    let token = house.token("ann", &[Admin]).await;
    let described = ApiDescription::new();
    let mut stream = house
        .stream(
            "/api/turns",
            &token,
            &json!({ "text": "rm", "session": "s" }),
        )
        .await;
    let question = approvals::wait_for_question(&house, &token).await;
    described
        .operation("GET", "/api/approvals")
        .check(&house.get("/api/approvals", &token).await);
    for (reach, status) in [("for ever", 400), ("pattern", 204), ("once", 404)] {
        let answer =
            json!({ "session": "s", "call": question["call"], "decision": "deny", "reach": reach });
        let reply = house.post("/api/approvals", &token, &answer).await;
        assert_eq!(reply.status, status, "{reach}: {}", reply.body);
        described.operation("POST", "/api/approvals").check(&reply);
    }
    stream.collect_rest().await;
}
