//! The HTTP+JSON binding: paths, queries and bodies of requests. The paths of 0.3 begin with `/v1`.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use super::error::{ErrorKind, ProtocolError};
use super::ids::{PushConfigId, TaskId};
use super::method::A2aMethod;
use super::push;
use super::request::{A2aCall, A2aRequest};
use super::version::{ProtocolVersion, WireFormat};

/// The media type since 1.0.1.
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

/// An HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequest {
    pub method: HttpMethod,
    /// Path after the interface's URL; begins with `/`.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
}

/// Encodes a request; none if the version does not support it.
pub fn encode_request(call: &A2aCall, version: ProtocolVersion) -> Option<HttpRequest> {
    let wire = WireFormat::rest(version);
    let prefix = match (version, call.tenant.as_deref()) {
        (ProtocolVersion::V0_3, _) => "/v1".to_owned(),
        (ProtocolVersion::V1_0, None) => String::new(),
        (ProtocolVersion::V1_0, Some(tenant)) => format!("/{}", encode_segment(tenant)),
    };
    let params = call.request.params(wire);
    let empty = || Value::Object(Map::new());
    let mut request = match &call.request {
        A2aRequest::SendMessage(_) => HttpRequest::post("/message:send", params),
        A2aRequest::StreamMessage(_) => HttpRequest::post("/message:stream", params),
        A2aRequest::GetTask { task, .. } => {
            HttpRequest::get(task_path(task)).with_query(remove_fields(params, &["id"]))
        }
        A2aRequest::ListTasks(_) => HttpRequest::get("/tasks").with_query(params),
        A2aRequest::CancelTask { task } => {
            HttpRequest::post(format!("{}:cancel", task_path(task)), empty())
        }
        A2aRequest::SubscribeToTask { task } => {
            let path = format!("{}:subscribe", task_path(task));
            match version {
                ProtocolVersion::V1_0 => HttpRequest::post(path, empty()),
                ProtocolVersion::V0_3 => HttpRequest::get(path),
            }
        }
        A2aRequest::CreatePushConfig(config) => {
            HttpRequest::post(configs_path(config.task.as_ref()?), params)
        }
        A2aRequest::GetPushConfig { task, config } => {
            HttpRequest::get(config_path(task, config.as_ref()?))
        }
        A2aRequest::ListPushConfigs { task } => HttpRequest::get(configs_path(task)),
        A2aRequest::DeletePushConfig { task, config } => {
            HttpRequest::new(HttpMethod::Delete, config_path(task, config))
        }
        A2aRequest::ExtendedCard => HttpRequest::get(match version {
            ProtocolVersion::V1_0 => "/extendedAgentCard",
            ProtocolVersion::V0_3 => "/card",
        }),
    };
    request.path = format!("{prefix}{}", request.path);
    Some(request)
}

impl HttpRequest {
    fn new(method: HttpMethod, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            body: None,
        }
    }

    fn get(path: impl Into<String>) -> Self {
        Self::new(HttpMethod::Get, path)
    }

    fn post(path: impl Into<String>, body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::new(HttpMethod::Post, path)
        }
    }

    fn with_query(self, params: Value) -> Self {
        Self {
            query: to_query(params),
            ..self
        }
    }
}

fn task_path(task: &TaskId) -> String {
    format!("/tasks/{}", encode_segment(task.as_str()))
}

fn configs_path(task: &TaskId) -> String {
    format!("{}/pushNotificationConfigs", task_path(task))
}

fn config_path(task: &TaskId, config: &PushConfigId) -> String {
    format!("{}/{}", configs_path(task), encode_segment(config.as_str()))
}

/// Parses a request of a caller; none if no route matches. `path` is the raw path after the
/// interface's URL.
///
/// The path determines the version. `header` is the `A2A-Version` header: it must name a supported
/// version, and 1.0 for a request of 1.0.
pub fn parse_request(
    request: &HttpRequest,
    header: Option<&str>,
) -> Option<Result<(A2aCall, ProtocolVersion), ProtocolError>> {
    let (version, path) = match request.path.strip_prefix("/v1/") {
        Some(rest) => (ProtocolVersion::V0_3, rest),
        None => (ProtocolVersion::V1_0, request.path.strip_prefix('/')?),
    };
    let (tenant, route) = resolve_route(request.method, path.trim_end_matches('/'), version)?;
    Some(parse_call(request, route, version, header).map(|mut call| {
        call.tenant = tenant.or(call.tenant);
        (call, version)
    }))
}

/// A matched route with its path parameters.
struct Route {
    method: A2aMethod,
    path_params: Vec<(&'static str, String)>,
}

impl Route {
    fn new(method: A2aMethod, path_params: Vec<(&'static str, String)>) -> Self {
        Self {
            method,
            path_params,
        }
    }
}

fn resolve_route(
    http_method: HttpMethod,
    path: &str,
    version: ProtocolVersion,
) -> Option<(Option<String>, Route)> {
    let segments: Vec<&str> = path.split('/').collect();
    let found = match_route(http_method, &segments, version);
    if found.is_some() || version == ProtocolVersion::V0_3 {
        return found.map(|route| (None, route));
    }
    let (tenant, rest) = segments.split_first()?;
    Some((
        Some(decode_segment(tenant)?),
        match_route(http_method, rest, version)?,
    ))
}

fn match_route(
    http_method: HttpMethod,
    segments: &[&str],
    version: ProtocolVersion,
) -> Option<Route> {
    let plain = |method| Some(Route::new(method, Vec::new()));
    match (http_method, segments) {
        (HttpMethod::Post, ["message:send"]) => plain(A2aMethod::SendMessage),
        (HttpMethod::Post, ["message:stream"]) => plain(A2aMethod::StreamMessage),
        (HttpMethod::Get, ["tasks"]) => plain(A2aMethod::ListTasks),
        (HttpMethod::Get, ["extendedAgentCard"]) if version == ProtocolVersion::V1_0 => {
            plain(A2aMethod::ExtendedCard)
        }
        (HttpMethod::Get, ["card"]) if version == ProtocolVersion::V0_3 => {
            plain(A2aMethod::ExtendedCard)
        }
        (_, ["tasks", task]) => match_task_route(http_method, task),
        (_, ["tasks", task, "pushNotificationConfigs", config @ ..]) => {
            match_push_config_route(http_method, task, config, version)
        }
        _ => None,
    }
}

/// Matches `tasks/{task}`, `tasks/{task}:cancel` and `tasks/{task}:subscribe`.
fn match_task_route(http_method: HttpMethod, segment: &str) -> Option<Route> {
    let (method, task) = match (http_method, segment.rsplit_once(':')) {
        (HttpMethod::Post, Some((task, "cancel"))) => (A2aMethod::CancelTask, task),
        (HttpMethod::Get | HttpMethod::Post, Some((task, "subscribe"))) => {
            (A2aMethod::SubscribeToTask, task)
        }
        (HttpMethod::Get, _) => (A2aMethod::GetTask, segment),
        _ => return None,
    };
    Some(Route::new(method, vec![("id", decode_segment(task)?)]))
}

/// Matches `tasks/{task}/pushNotificationConfigs`, with or without a config id.
fn match_push_config_route(
    http_method: HttpMethod,
    task: &str,
    config: &[&str],
    version: ProtocolVersion,
) -> Option<Route> {
    let (task_field, config_field) = push::id_field_names(version);
    let task = decode_segment(task)?;
    match (http_method, config) {
        // The body of 0.3 names the task as its protocol buffers do, so the id is taken from the
        // path.
        (HttpMethod::Post, []) => Some(Route::new(
            A2aMethod::CreatePushConfig,
            vec![("taskId", task)],
        )),
        (HttpMethod::Get, []) => Some(Route::new(
            A2aMethod::ListPushConfigs,
            vec![(task_field, task)],
        )),
        (HttpMethod::Get | HttpMethod::Delete, [config]) => {
            let method = match http_method {
                HttpMethod::Delete => A2aMethod::DeletePushConfig,
                _ => A2aMethod::GetPushConfig,
            };
            let ids = vec![(task_field, task), (config_field, decode_segment(config)?)];
            Some(Route::new(method, ids))
        }
        _ => None,
    }
}

fn parse_call(
    request: &HttpRequest,
    route: Route,
    version: ProtocolVersion,
    header: Option<&str>,
) -> Result<A2aCall, ProtocolError> {
    let query_version = request
        .query
        .iter()
        .find(|(name, _)| name == ProtocolVersion::HEADER)
        .map(|(_, value)| value.as_str());
    let requested = ProtocolVersion::from_header(header.or(query_version))?;
    if version == ProtocolVersion::V1_0 && requested != version {
        let message = format!(
            "A2A version '0.3' is not supported here; send {}: 1.0",
            ProtocolVersion::HEADER
        );
        return Err(ProtocolError::new(ErrorKind::VersionNotSupported, message));
    }
    let mut params = match &request.body {
        Some(Value::Object(body)) => body.clone(),
        None | Some(Value::Null) => Map::new(),
        Some(_) => {
            return Err(ProtocolError::new(
                ErrorKind::InvalidRequest,
                "the body must be an object",
            ));
        }
    };
    let query = request
        .query
        .iter()
        .filter(|(name, _)| name != ProtocolVersion::HEADER);
    params.extend(query.map(|(name, value)| (name.clone(), Value::from(value.as_str()))));
    if version == ProtocolVersion::V0_3 && route.method == A2aMethod::CreatePushConfig {
        // The protocol buffers of 0.3 send `{parent, configId, config}`.
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

/// Encodes one path segment; escapes everything that could end or leave it.
fn encode_segment(text: &str) -> String {
    const ESCAPED: percent_encoding::AsciiSet = NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~');
    match text {
        // URL parsers treat these as the current and the parent directory.
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => utf8_percent_encode(text, &ESCAPED).to_string(),
    }
}

fn decode_segment(segment: &str) -> Option<String> {
    let text = percent_decode_str(segment).decode_utf8().ok()?.into_owned();
    (!text.is_empty()).then_some(text)
}
