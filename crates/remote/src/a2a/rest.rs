//! HTTP+JSON: which request is which address. 0.3 stands under `/v1`.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use super::error::{ErrorKind, ProtocolError};
use super::request::{A2aCall, A2aMethod, A2aRequest};
use super::version::{ProtocolVersion, WireFormat};

/// What 1.0.1 calls its JSON.
pub const CONTENT_TYPE: &str = "application/a2a+json";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    Post,
    Delete,
}

impl HttpMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// A request as HTTP sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequest {
    pub method: HttpMethod,
    /// Follows the interface's address; begins with `/`.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
}

/// How a request is sent; nothing where the version does not know it.
pub fn encode_request(call: &A2aCall, version: ProtocolVersion) -> Option<HttpRequest> {
    let wire = WireFormat::rest(version);
    let prefix = match (version, call.tenant.as_deref()) {
        (ProtocolVersion::V0_3, _) => "/v1".to_owned(),
        (ProtocolVersion::V1_0, None) => String::new(),
        (ProtocolVersion::V1_0, Some(tenant)) => format!("/{}", encode_segment(tenant)),
    };
    let params = call.request.params(wire);
    let plain = |verb, path: String| HttpRequest {
        method: verb,
        path,
        query: Vec::new(),
        body: None,
    };
    let with_body = |path: String, body: Value| HttpRequest {
        body: Some(body),
        ..plain(HttpMethod::Post, path)
    };
    let asking = |path: String, params: Value| HttpRequest {
        query: to_query(params),
        ..plain(HttpMethod::Get, path)
    };
    let task = |id: &str| format!("/tasks/{}", encode_segment(id));
    let configs = |id: &str| format!("{}/pushNotificationConfigs", task(id));
    let empty = || Value::Object(Map::new());
    let mut request = match &call.request {
        A2aRequest::SendMessage(_) => with_body("/message:send".to_owned(), params),
        A2aRequest::StreamMessage(_) => with_body("/message:stream".to_owned(), params),
        A2aRequest::GetTask { task: id, .. } => {
            asking(task(id.as_str()), remove_fields(params, &["id"]))
        }
        A2aRequest::ListTasks(_) => asking("/tasks".to_owned(), params),
        A2aRequest::CancelTask { task: id } => {
            with_body(format!("{}:cancel", task(id.as_str())), empty())
        }
        A2aRequest::SubscribeToTask { task: id } => {
            let path = format!("{}:subscribe", task(id.as_str()));
            if version == ProtocolVersion::V1_0 {
                with_body(path, empty())
            } else {
                plain(HttpMethod::Get, path)
            }
        }
        A2aRequest::CreatePushConfig(config) => {
            with_body(configs(config.task.as_ref()?.as_str()), params)
        }
        A2aRequest::GetPushConfig { task: id, config } => {
            let config = encode_segment(config.as_ref()?.as_str());
            plain(
                HttpMethod::Get,
                format!("{}/{config}", configs(id.as_str())),
            )
        }
        A2aRequest::ListPushConfigs { task: id } => plain(HttpMethod::Get, configs(id.as_str())),
        A2aRequest::DeletePushConfig { task: id, config } => plain(
            HttpMethod::Delete,
            format!(
                "{}/{}",
                configs(id.as_str()),
                encode_segment(config.as_str())
            ),
        ),
        A2aRequest::ExtendedCard => {
            let path = if version == ProtocolVersion::V1_0 {
                "/extendedAgentCard"
            } else {
                "/card"
            };
            plain(HttpMethod::Get, path.to_owned())
        }
    };
    request.path = format!("{prefix}{}", request.path);
    Some(request)
}

/// Reads what a caller sent: `path` as it came, behind the address of the interface. Nothing where nothing is there.
///
/// The path tells the version; `header` is what `A2A-Version` says, which must be a version that is spoken, and which a
/// request of 1.0 must fit.
pub fn parse_request(
    sent: &HttpRequest,
    header: Option<&str>,
) -> Option<Result<(A2aCall, ProtocolVersion), ProtocolError>> {
    let (version, path) = match sent.path.strip_prefix("/v1/") {
        Some(rest) => (ProtocolVersion::V0_3, rest),
        None => (ProtocolVersion::V1_0, sent.path.strip_prefix('/')?),
    };
    let (tenant, route) = resolve_route(sent.method, path.trim_end_matches('/'), version)?;
    Some(parse_call(sent, route, version, header).map(|mut call| {
        call.tenant = tenant.or(call.tenant);
        (call, version)
    }))
}

/// A request that was recognised by its address, with what the address says.
struct Route {
    method: A2aMethod,
    path_params: Vec<(&'static str, String)>,
}

fn resolve_route(
    verb: HttpMethod,
    path: &str,
    version: ProtocolVersion,
) -> Option<(Option<String>, Route)> {
    let segments: Vec<&str> = path.split('/').collect();
    let found = match_route(verb, &segments, version);
    if found.is_some() || version == ProtocolVersion::V0_3 {
        return found.map(|route| (None, route));
    }
    let (tenant, rest) = segments.split_first()?;
    Some((
        Some(decode_segment(tenant)?),
        match_route(verb, rest, version)?,
    ))
}

fn match_route(verb: HttpMethod, segments: &[&str], version: ProtocolVersion) -> Option<Route> {
    let (of, which) = match version {
        ProtocolVersion::V1_0 => ("taskId", "id"),
        ProtocolVersion::V0_3 => ("id", "pushNotificationConfigId"),
    };
    let plain = |method| {
        Some(Route {
            method,
            path_params: Vec::new(),
        })
    };
    let named = |method, named| {
        Some(Route {
            method,
            path_params: named,
        })
    };
    match (verb, segments) {
        (HttpMethod::Post, ["message:send"]) => plain(A2aMethod::SendMessage),
        (HttpMethod::Post, ["message:stream"]) => plain(A2aMethod::StreamMessage),
        (HttpMethod::Get, ["tasks"]) => plain(A2aMethod::ListTasks),
        (HttpMethod::Get, ["extendedAgentCard"]) if version == ProtocolVersion::V1_0 => {
            plain(A2aMethod::ExtendedCard)
        }
        (HttpMethod::Get, ["card"]) if version == ProtocolVersion::V0_3 => {
            plain(A2aMethod::ExtendedCard)
        }
        (verb, ["tasks", task]) => match (verb, task.rsplit_once(':')) {
            (HttpMethod::Post, Some((task, "cancel"))) => {
                named(A2aMethod::CancelTask, vec![("id", decode_segment(task)?)])
            }
            (HttpMethod::Get | HttpMethod::Post, Some((task, "subscribe"))) => named(
                A2aMethod::SubscribeToTask,
                vec![("id", decode_segment(task)?)],
            ),
            (HttpMethod::Get, _) => named(A2aMethod::GetTask, vec![("id", decode_segment(task)?)]),
            _ => None,
        },
        (verb, ["tasks", task, "pushNotificationConfigs"]) => {
            let task = decode_segment(task)?;
            match verb {
                // The body of 0.3 calls the task as its protocol buffers do, so the address says it anew.
                HttpMethod::Post => named(A2aMethod::CreatePushConfig, vec![("taskId", task)]),
                HttpMethod::Get => named(A2aMethod::ListPushConfigs, vec![(of, task)]),
                HttpMethod::Delete => None,
            }
        }
        (verb, ["tasks", task, "pushNotificationConfigs", config]) => {
            let both = vec![
                (of, decode_segment(task)?),
                (which, decode_segment(config)?),
            ];
            match verb {
                HttpMethod::Get => named(A2aMethod::GetPushConfig, both),
                HttpMethod::Delete => named(A2aMethod::DeletePushConfig, both),
                HttpMethod::Post => None,
            }
        }
        _ => None,
    }
}

fn parse_call(
    sent: &HttpRequest,
    route: Route,
    version: ProtocolVersion,
    header: Option<&str>,
) -> Result<A2aCall, ProtocolError> {
    let in_query = sent
        .query
        .iter()
        .find(|(name, _)| name == ProtocolVersion::HEADER)
        .map(|(_, value)| value.as_str());
    let asked = ProtocolVersion::from_header(header.or(in_query))?;
    if version == ProtocolVersion::V1_0 && asked != version {
        let message = format!(
            "A2A version '0.3' is not supported here; send {}: 1.0",
            ProtocolVersion::HEADER
        );
        return Err(ProtocolError::new(ErrorKind::VersionNotSupported, message));
    }
    let mut params = match &sent.body {
        Some(Value::Object(body)) => body.clone(),
        None | Some(Value::Null) => Map::new(),
        Some(_) => {
            return Err(ProtocolError::new(
                ErrorKind::InvalidRequest,
                "the body must be an object",
            ));
        }
    };
    let query = sent
        .query
        .iter()
        .filter(|(name, _)| name != ProtocolVersion::HEADER);
    params.extend(query.map(|(name, value)| (name.clone(), Value::from(value.as_str()))));
    if version == ProtocolVersion::V0_3 && route.method == A2aMethod::CreatePushConfig {
        // `{parent, configId, config}` is what its protocol buffers send.
        if let Some(Value::Object(config)) = params.remove("config") {
            params.extend(config);
        }
        params.remove("name");
    }
    params.extend(
        route
            .path_params
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Value::from(value))),
    );
    Ok(A2aCall::from_params(
        route.method,
        &Value::Object(params),
        WireFormat::rest(version),
    )?)
}

fn remove_fields(params: Value, names: &[&str]) -> Value {
    match params {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(name, _)| !names.contains(&name.as_str()))
                .collect(),
        ),
        other => other,
    }
}

fn to_query(params: Value) -> Vec<(String, String)> {
    let Value::Object(map) = params else {
        return Vec::new();
    };
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    map.into_iter()
        .map(|(name, value)| (name, text(value)))
        .collect()
}

/// One segment of a path: everything that could end or leave it is escaped.
fn encode_segment(text: &str) -> String {
    const PLAIN: percent_encoding::AsciiSet = NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~');
    match text {
        // A browser's rules take these for the folder above.
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => utf8_percent_encode(text, &PLAIN).to_string(),
    }
}

fn decode_segment(segment: &str) -> Option<String> {
    let text = percent_decode_str(segment).decode_utf8().ok()?.into_owned();
    (!text.is_empty()).then_some(text)
}
