//! The description of the API, made of the types that it speaks (OpenAPI 3.1). It is committed as `docs/openapi.json`.
//!
//! It is exact: what it allows is read, what it forbids is refused with 400, and no other status is given than it lists.
//! Where the last message of a chat has to be the user's, or a question has to offer a pattern, words say so.

mod operations;
mod schemas;

use std::collections::BTreeSet;

use lango_store::TokenScope;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

pub(crate) use schemas::EventSchema;

use crate::error::ErrorBody;
use crate::extract::SessionName;
use crate::openai::DONE_MARKER;
use operations::operations;

/// One thing that can be asked for.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// A token with one of these; none is needed where there are none.
    scopes: &'static [TokenScope],
    input: RequestInput,
    output: ResponseOutput,
    /// A header that has an effect, and which.
    header: Option<(&'static str, &'static str)>,
    /// Statuses of failures beside those that every operation of its kind has.
    failure_statuses: &'static [u16],
}

type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

enum RequestInput {
    Nothing,
    Body(SchemaFn),
    Query(SchemaFn),
}

enum ResponseOutput {
    Json(SchemaFn),
    /// Server-sent events, each with such a value as its data.
    Events(SchemaFn),
    /// One or the other, as it was asked for.
    JsonOrEvents(SchemaFn, SchemaFn),
    Text,
    Nothing,
}

fn subschema_for<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What is sent and what is answered are described apart: a field that may be left out of a request may still stand in
/// every answer.
struct SchemaGenerators {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl SchemaGenerators {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        let (sent, answered) = (settings.clone(), settings.for_serialize());
        Self {
            requests: sent.into_generator(),
            responses: answered.into_generator(),
        }
    }

    fn definitions(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        all.extend(self.responses.take_definitions(true));
        all
    }
}

/// The whole description.
pub fn document() -> Value {
    let mut generators = SchemaGenerators::new();
    let error = subschema_for::<ErrorBody>(&mut generators.responses);
    let mut paths = Map::new();
    for operation in operations() {
        let described = operation.describe(&mut generators);
        paths.entry(operation.path).or_insert_with(|| json!({}))[operation.method] = described;
    }
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
            "schemas": generators.definitions(),
            "responses": { "Failure": { "description": "Why it was not done.", "content": { "application/json": { "schema": error } } } },
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "An access token of `lango token create`." } },
        },
    })
}

impl Operation {
    fn describe(&self, generators: &mut SchemaGenerators) -> Value {
        let (status, success) = self.success(&mut generators.responses);
        let mut responses = Map::new();
        responses.insert(status.to_owned(), success);
        responses.extend(
            self.failures()
                .into_iter()
                .map(|status| (status.to_string(), failure_response(status))),
        );
        let mut described = json!({ "summary": self.summary, "responses": responses });
        let parameters = self.parameters();
        if !parameters.is_empty() {
            described["parameters"] = parameters.into();
        }
        if let RequestInput::Body(body) = &self.input {
            let content =
                json!({ "application/json": { "schema": body(&mut generators.requests) } });
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
        let content = match &self.output {
            ResponseOutput::Nothing => return ("204", json!({ "description": "It is done." })),
            ResponseOutput::Json(body) => {
                json!({ "application/json": { "schema": body(generator) } })
            }
            ResponseOutput::Events(value) => {
                json!({ "text/event-stream": { "schema": sse_event_schema(json_text(&value(generator))) } })
            }
            ResponseOutput::JsonOrEvents(body, value) => json!({
                "application/json": { "schema": body(generator) },
                "text/event-stream": { "schema": sse_event_schema(json!({
                    "anyOf": [json_text(&value(generator)), { "const": DONE_MARKER }],
                })) },
            }),
            ResponseOutput::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
        };
        (
            "200",
            json!({ "description": "What was asked for.", "content": content }),
        )
    }

    /// Every status of a failure. What stands before all operations is the same for all of them.
    fn failures(&self) -> BTreeSet<u16> {
        let mut all = BTreeSet::from([403, 421, 431]);
        if !self.scopes.is_empty() {
            all.extend([401, 429, 500]);
        }
        if self.path.contains('{') || matches!(self.input, RequestInput::Query(_)) {
            all.insert(400);
        }
        if matches!(self.input, RequestInput::Body(_)) {
            all.extend([400, 408, 413, 415]);
        }
        all.extend(self.failure_statuses);
        all
    }

    /// Places of the path, the fields of the query, and the header.
    fn parameters(&self) -> Vec<Value> {
        let mut inline = SchemaSettings::draft2020_12();
        inline.inline_subschemas = true;
        let mut inline = inline.into_generator();
        let mut parameters = Vec::new();
        for name in self
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        {
            let schema = match name {
                "session" => SessionName::json_schema(&mut inline).to_value(),
                _ => json!({ "type": "string", "minLength": 1 }),
            };
            parameters
                .push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
        if let RequestInput::Query(query) = &self.input {
            let fields = query(&mut inline).to_value();
            let fields = fields["properties"].as_object().into_iter().flatten();
            parameters.extend(fields.map(|(name, schema)| query_parameter(name, schema.clone())));
        }
        parameters.extend(self.header.map(|(name, effect)| {
            let schema = json!({ "type": "string" });
            json!({ "name": name, "in": "header", "required": false, "description": effect, "schema": schema })
        }));
        parameters
    }
}

/// One server-sent event: its fields as they stand in the stream.
fn sse_event_schema(data: Value) -> Value {
    let id = json!({ "type": "string", "description": "The event's number, where it has one." });
    json!({ "type": "object", "required": ["data"], "properties": { "id": id, "data": data } })
}

/// JSON of this form as a text.
fn json_text(schema: &Schema) -> Value {
    json!({ "type": "string", "contentMediaType": "application/json", "contentSchema": schema })
}

/// A field of a query is there or not: it is never null.
fn query_parameter(name: &str, mut schema: Value) -> Value {
    let mut parameter = json!({ "name": name, "in": "query", "required": false });
    if let Some(fields) = schema.as_object_mut() {
        if let Some(words) = fields.remove("description") {
            parameter["description"] = words;
        }
        fields.retain(|key, value| key != "default" || !value.is_null());
        if let Some(kind) = fields["type"]
            .as_array()
            .and_then(|kinds| kinds.first())
            .cloned()
        {
            fields["type"] = kind;
        }
        if fields["type"] == "integer" {
            fields.insert("maximum".to_owned(), u64::MAX.into());
        }
    }
    parameter["schema"] = schema;
    parameter
}

fn failure_response(status: u16) -> Value {
    let why = match status {
        400 => "It is not what is described here.",
        401 => "There is no good token.",
        403 => "The token is for something else, or a page of another origin asks.",
        404 => "It is not there, or not yours.",
        408 => "The body did not arrive in time.",
        409 => "The session is not in a state for this.",
        413 => "The body is too long.",
        415 => "The body is not JSON.",
        421 => "The server does not go by that name.",
        422 => "The turn reached a limit.",
        429 => "Too often, or too many at once.",
        // The connection is refused before anything is read, so there is no body.
        431 => return json!({ "description": "The head of the request is too long." }),
        500 => "Something is broken here.",
        502 => "The model did not answer as it should.",
        _ => "Not now.",
    };
    json!({ "$ref": "#/components/responses/Failure", "description": why })
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
