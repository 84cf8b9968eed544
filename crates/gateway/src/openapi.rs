//! The OpenAPI 3.1 document, generated from the records of the routes and committed as
//! `docs/openapi.json`.
//!
//! The document is exact: input that it allows is accepted, other input is rejected with 400, and
//! only the listed statuses are returned. Two rules are stated in descriptions only: the last
//! message of a chat must be from the user, and `pattern` needs a question that offers one.

pub(crate) mod schemas;

use std::collections::BTreeSet;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::a2a::A2aSettings;
use crate::error::ErrorBody;
use crate::extract::SessionName;
use crate::openai::DONE_MARKER;
use crate::route::{
    Operation, RequestInput, ResponseOutput, Route, RouteAccess, RouteDescription, all_routes,
    schema_of,
};

/// Separate generators for requests and responses: a field that is optional in a request can be
/// required in a response.
struct SchemaGenerators {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl SchemaGenerators {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        let (requests, responses) = (settings.clone(), settings.for_serialize());
        Self {
            requests: requests.into_generator(),
            responses: responses.into_generator(),
        }
    }

    fn definitions(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        all.extend(self.responses.take_definitions(true));
        all
    }
}

/// Returns the OpenAPI document.
pub fn document() -> Value {
    let mut generators = SchemaGenerators::new();
    let error = schema_of::<ErrorBody>(&mut generators.responses);
    let mut paths = Map::new();
    // The settings select routes of A2A only, which are not described.
    for route in all_routes(&A2aSettings::default()) {
        if let RouteDescription::OpenApi(operation) = &route.description {
            let described = describe(&route, operation, &mut generators);
            paths.entry(route.path).or_insert_with(|| json!({}))[route.endpoint.method] = described;
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lango",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Turns, sessions and approvals of a Lango team, and an OpenAI-compatible API for the same team. All errors have the same format.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:7420" }],
        "paths": paths,
        "components": {
            "schemas": generators.definitions(),
            "responses": { "Failure": { "description": "The error.", "content": { "application/json": { "schema": error } } } },
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "An access token created with `lango token create`." } },
        },
    })
}

fn describe(route: &Route, operation: &Operation, generators: &mut SchemaGenerators) -> Value {
    let (status, success) = success(&operation.output, &mut generators.responses);
    let mut responses = Map::new();
    responses.insert(status.to_owned(), success);
    responses.extend(
        failures(route, operation)
            .into_iter()
            .map(|status| (status.to_string(), failure_response(status))),
    );
    let mut described = json!({ "summary": operation.summary, "responses": responses });
    let parameters = parameters(route.path, &operation.input);
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(body) = operation.input.body() {
        let content = json!({ "application/json": { "schema": body(&mut generators.requests) } });
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    if route.access != RouteAccess::Public {
        described["security"] = json!([{ "token": [] }]);
    }
    if let RouteAccess::Scopes(scopes) = route.access {
        let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
        described["x-scopes"] = json!(scopes);
    }
    described
}

fn success(output: &ResponseOutput, generator: &mut SchemaGenerator) -> (&'static str, Value) {
    let content = match output {
        ResponseOutput::Nothing => {
            return ("204", json!({ "description": "The request succeeded." }));
        }
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
        json!({ "description": "The request succeeded.", "content": content }),
    )
}

/// Returns all error statuses, including those of the middleware.
fn failures(route: &Route, operation: &Operation) -> BTreeSet<u16> {
    let mut all = BTreeSet::from([403, 421, 431]);
    if route.access != RouteAccess::Public {
        all.extend([401, 429, 500]);
    }
    if route.path.contains('{') || operation.input.query().is_some() {
        all.insert(400);
    }
    if operation.input.body().is_some() {
        all.extend([400, 408, 413, 415]);
    }
    all.extend(operation.failure_statuses);
    all
}

/// Returns the path parameters, the query parameters and the header.
fn parameters(path: &str, input: &RequestInput) -> Vec<Value> {
    let mut inline = SchemaSettings::draft2020_12();
    inline.inline_subschemas = true;
    let mut inline = inline.into_generator();
    let mut parameters = Vec::new();
    for name in path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    {
        let schema = match name {
            "session" => SessionName::json_schema(&mut inline).to_value(),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    if let Some(query) = input.query() {
        let fields = query(&mut inline).to_value();
        let fields = fields["properties"].as_object().into_iter().flatten();
        parameters.extend(fields.map(|(name, schema)| query_parameter(name, schema.clone())));
    }
    parameters.extend(input.header().map(|header| {
        let (name, description) = (header.name, header.description);
        let schema = json!({ "type": "string" });
        json!({ "name": name, "in": "header", "required": false, "description": description, "schema": schema })
    }));
    parameters
}

/// Returns the schema of a server-sent event and its fields.
fn sse_event_schema(data: Value) -> Value {
    let id = json!({ "type": "string", "description": "The sequence number of the event; absent for events that are not stored." });
    json!({ "type": "object", "required": ["data"], "properties": { "id": id, "data": data } })
}

/// Returns the schema of a string that contains JSON of this schema.
fn json_text(schema: &Schema) -> Value {
    json!({ "type": "string", "contentMediaType": "application/json", "contentSchema": schema })
}

/// Returns the description of a query parameter. Query parameters are optional but never null.
fn query_parameter(name: &str, mut schema: Value) -> Value {
    let mut parameter = json!({ "name": name, "in": "query", "required": false });
    if let Some(fields) = schema.as_object_mut() {
        if let Some(description) = fields.remove("description") {
            parameter["description"] = description;
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
    let description = match status {
        400 => "The request does not match this description.",
        401 => "The access token is missing, unknown or expired.",
        403 => "The token lacks the scope, or the origin is not allowed.",
        404 => "The resource does not exist or belongs to another principal.",
        408 => "The body did not arrive in time.",
        409 => "The state of the session does not allow this.",
        413 => "The body is too long.",
        415 => "The body is not JSON.",
        421 => "The `Host` header is not a name of this server.",
        422 => "The turn reached a limit.",
        429 => "Too many requests, turns or streams.",
        // Hyper rejects the request before any handler runs, so there is no body.
        431 => return json!({ "description": "The request headers are too long." }),
        500 => "Internal server error.",
        502 => "The model failed or returned an invalid response.",
        _ => "The server or the model is temporarily unavailable.",
    };
    json!({ "$ref": "#/components/responses/Failure", "description": description })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_routes_have_their_summary_and_references_resolve() {
        let document = document();
        let text = document.to_string();
        for route in all_routes(&A2aSettings::default()) {
            if let RouteDescription::OpenApi(operation) = &route.description {
                let described = &document["paths"][route.path][route.endpoint.method];
                assert_eq!(described["summary"], operation.summary);
            }
        }
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
