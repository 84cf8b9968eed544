//! The description of the API, made of the types that it speaks (OpenAPI 3.1). It is committed as `docs/openapi.json`.

use lango_store::TokenScope::{self, Admin, Approve, Chat, Read};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::api::{approvals, ledger, sessions, team, turns};
use crate::openai::{self, answer, chat};
use crate::refusal::ErrorBody;

/// An event of a session, as `lango ask --json` prints it; what else it has depends on its type.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "stands for the events in the description only")]
pub(crate) struct EventSchema {
    /// The version of the event's form.
    v: u8,
    /// Its number in the session, from 1.
    seq: u64,
    turn: String,
    session: String,
    /// `user`, or an agent's name.
    author: String,
    branch: String,
    at: String,
    /// `user`, `context`, `digest`, `thought`, `note`, `transfer`, `transfer_result`, `tool_call`, `tool_result`,
    /// `approval`, `rejected`, `report`, `answer`, `usage`, `turn_done` or `turn_failed`.
    r#type: String,
}

/// One thing that can be asked for.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// A token with one of these; none is needed where there are none.
    scopes: &'static [TokenScope],
    takes: Takes,
    gives: Gives,
}

type Describe = fn(&mut SchemaGenerator) -> Schema;

enum Takes {
    Nothing,
    Body(Describe),
    Query(Describe),
}

enum Gives {
    Json(Describe),
    /// Server-sent events, each with such a value.
    Events(Describe),
    /// One or the other, as it was asked for.
    JsonOrEvents(Describe, Describe),
    Text,
    Nothing,
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn operations() -> Vec<Operation> {
    let mut all = asking();
    all.extend(answering());
    all.extend(looking());
    all.extend(for_openai());
    all.extend(about_itself());
    all
}

fn asking() -> Vec<Operation> {
    vec![
        Op("post", "/api/turns", "Asks the team; the events of the turn come as they happen.").with(
            &[Chat],
            Takes::Body(of::<turns::TurnBody>),
            Gives::Events(of::<EventSchema>),
        ),
        Op("get", "/api/sessions", "Lists your sessions, the one used last first.").with(
            &[Read],
            Takes::Nothing,
            Gives::Json(of::<sessions::Items<sessions::SessionItem>>),
        ),
        Op("get", "/api/sessions/{session}", "Shows a session and its events.").with(
            &[Read],
            Takes::Query(of::<sessions::Window>),
            Gives::Json(of::<sessions::SessionBody>),
        ),
        Op("delete", "/api/sessions/{session}", "Deletes a session for good.").with(
            &[Admin],
            Takes::Nothing,
            Gives::Nothing,
        ),
        Op(
            "get",
            "/api/sessions/{session}/events",
            "Follows a session: what is kept behind `Last-Event-ID`, then what happens.",
        )
        .with(
            &[Chat, Read, Approve],
            Takes::Query(of::<turns::Following>),
            Gives::Events(of::<EventSchema>),
        ),
        Op("post", "/api/sessions/{session}/cancel", "Ends the running turn of a session.").with(
            &[Chat],
            Takes::Nothing,
            Gives::Json(of::<turns::Cancelled>),
        ),
    ]
}

fn answering() -> Vec<Operation> {
    vec![
        Op("get", "/api/approvals", "Lists questions about calls that wait for an answer.").with(
            &[Approve],
            Takes::Nothing,
            Gives::Json(of::<sessions::Items<approvals::QuestionItem>>),
        ),
        Op("post", "/api/approvals", "Answers such a question.").with(
            &[Approve],
            Takes::Body(of::<approvals::AnswerBody>),
            Gives::Nothing,
        ),
    ]
}

fn looking() -> Vec<Operation> {
    vec![
        Op("get", "/api/agents", "Lists the team.").with(
            &[Chat, Read, Approve],
            Takes::Nothing,
            Gives::Json(of::<team::AgentList>),
        ),
        Op("post", "/api/route", "Says which agent a request's words point to.").with(
            &[Chat, Read, Approve],
            Takes::Body(of::<team::RouteBody>),
            Gives::Json(of::<team::RouteAnswer>),
        ),
        Op("get", "/api/usage", "Adds up what models took.").with(
            &[Read],
            Takes::Query(of::<ledger::Of>),
            Gives::Json(of::<Value>),
        ),
        Op("get", "/api/audit", "Lists what tools did and who allowed it.").with(
            &[Read],
            Takes::Query(of::<ledger::Of>),
            Gives::Json(of::<sessions::Items<ledger::AuditItem>>),
        ),
        Op("get", "/api/openapi.json", "This description.").with(
            &[Chat, Read, Approve],
            Takes::Nothing,
            Gives::Json(of::<Value>),
        ),
    ]
}

fn for_openai() -> Vec<Operation> {
    vec![
        Op("get", "/v1/models", "Lists the models: the team, and each of its agents alone.").with(
            &[Chat],
            Takes::Nothing,
            Gives::Json(of::<openai::ModelList>),
        ),
        Op("get", "/v1/models/{model}", "Shows a model.").with(
            &[Chat],
            Takes::Nothing,
            Gives::Json(of::<openai::ModelItem>),
        ),
        Op("post", "/v1/chat/completions", "Answers a conversation, whole or as it comes.").with(
            &[Chat],
            Takes::Body(of::<chat::ChatBody>),
            Gives::JsonOrEvents(of::<answer::CompletionBody>, of::<answer::ChunkBody>),
        ),
    ]
}

fn about_itself() -> Vec<Operation> {
    vec![
        Op("get", "/health", "Whether the server is there.").with(
            &[],
            Takes::Nothing,
            Gives::Json(of::<Value>),
        ),
        Op("get", "/ready", "Whether it takes new turns.").with(
            &[],
            Takes::Nothing,
            Gives::Json(of::<Value>),
        ),
        Op("get", "/metrics", "What it counts, for Prometheus.").with(&[Admin], Takes::Nothing, Gives::Text),
    ]
}

/// The beginning of an operation.
struct Op(&'static str, &'static str, &'static str);

impl Op {
    fn with(self, scopes: &'static [TokenScope], takes: Takes, gives: Gives) -> Operation {
        let Self(method, path, summary) = self;
        Operation { method, path, summary, scopes, takes, gives }
    }
}

/// The whole description.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    let error = of::<ErrorBody>(&mut generator);
    let mut paths = Map::new();
    for operation in operations() {
        let described = operation.describe(&mut generator);
        paths.entry(operation.path).or_insert_with(|| json!({}))[operation.method] = described;
    }
    let schemas: Map<String, Value> = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lango",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Turns, sessions and questions of a Lango team, and the same team behind OpenAI's API. Every failure has the same form.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:7420" }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": { "Failure": { "description": "Why it was not done.", "content": { "application/json": { "schema": error } } } },
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "An access token of `lango token create`." } },
        },
    })
}

impl Operation {
    fn describe(&self, generator: &mut SchemaGenerator) -> Value {
        let (status, success) = self.success(generator);
        let mut responses = Map::new();
        responses.insert(status.to_owned(), success);
        responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Failure" }));
        let mut described = json!({ "summary": self.summary, "responses": responses });
        let parameters = self.parameters(generator);
        if !parameters.is_empty() {
            described["parameters"] = parameters.into();
        }
        if let Takes::Body(body) = &self.takes {
            let content = json!({ "application/json": { "schema": body(generator) } });
            described["requestBody"] = json!({ "required": true, "content": content });
        }
        if !self.scopes.is_empty() {
            let scopes: Vec<&str> = self.scopes.iter().map(|scope| scope.as_str()).collect();
            described["security"] = json!([{ "token": [] }]);
            described["x-scopes"] = json!(scopes);
        }
        described
    }

    fn success(&self, generator: &mut SchemaGenerator) -> (&'static str, Value) {
        let content = match &self.gives {
            Gives::Nothing => return ("204", json!({ "description": "It is done." })),
            Gives::Json(body) => json!({ "application/json": { "schema": body(generator) } }),
            Gives::Events(event) => json!({ "text/event-stream": { "schema": event(generator) } }),
            Gives::JsonOrEvents(body, event) => json!({
                "application/json": { "schema": body(generator) },
                "text/event-stream": { "schema": event(generator) },
            }),
            Gives::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
        };
        ("200", json!({ "description": "What was asked for.", "content": content }))
    }

    /// Places of the path, and the fields of the query.
    fn parameters(&self, generator: &mut SchemaGenerator) -> Vec<Value> {
        let places = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let mut parameters: Vec<Value> = places
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
            .collect();
        if let Takes::Query(query) = &self.takes {
            let schema = query(generator).to_value();
            let name = schema["$ref"].as_str().and_then(|place| place.rsplit('/').next()).unwrap_or_default();
            let fields = generator.definitions().get(name).map(|schema| schema["properties"].clone());
            for (name, schema) in fields.as_ref().and_then(Value::as_object).into_iter().flatten() {
                parameters.push(json!({ "name": name, "in": "query", "required": false, "schema": schema }));
            }
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_says_what_it_is_and_every_reference_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        for operation in operations() {
            let described = &document["paths"][operation.path][operation.method];
            assert_eq!(described["summary"], operation.summary);
        }
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let place = reference.split('"').next().unwrap();
            assert!(document.pointer(place).is_some(), "{place}");
        }
    }
}
