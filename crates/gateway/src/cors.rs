//! From where a request may come: a browser must not be talked into speaking to this server by a page of somebody else's.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::settings::ServerSettings;

/// What pages of other origins may send and read.
const PREFLIGHT_HEADERS: [(HeaderName, HeaderValue); 2] = [
    (
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, DELETE"),
    ),
    (
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("600"),
    ),
];
const ALLOWED_HEADERS: &str = "authorization, content-type, last-event-id, a2a-version";
/// OpenAI's clients say with such headers what they run on. They have no effect, but a browser asks about each.
const OPENAI_HEADER_PREFIX: &str = "x-stainless-";
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("x-lango-session, retry-after");

/// The names and pages that are let through.
#[derive(Clone, Debug)]
pub(crate) struct OriginPolicy {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Whether every address of this machine is listened on: then any address may be named. No page of somebody else's
    /// can make one lead here, as it can with a name.
    is_any_address_allowed: bool,
}

/// Where a request comes from.
#[derive(Clone, Debug, PartialEq)]
enum RequestOrigin {
    /// A program, or a page that this server itself gave out.
    SameOrigin,
    /// A page that the settings allow.
    CrossOrigin(HeaderValue),
}

impl OriginPolicy {
    pub fn new(settings: &ServerSettings) -> Self {
        let mut hosts: Vec<String> = settings
            .hosts
            .iter()
            .map(|host| host.to_ascii_lowercase())
            .collect();
        if !settings.host.is_loopback() && !settings.host.is_unspecified() {
            hosts.push(settings.host.to_string());
        }
        let origins = settings
            .origins
            .iter()
            .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase());
        Self {
            hosts,
            origins: origins.collect(),
            is_any_address_allowed: settings.host.is_unspecified(),
        }
    }

    fn check_origin(&self, headers: &HeaderMap, uri: &Uri) -> Result<RequestOrigin, ApiError> {
        let host = self.check_host(headers, uri)?;
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(RequestOrigin::SameOrigin);
        };
        let text = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        if text
            .strip_prefix("http://")
            .or(text.strip_prefix("https://"))
            == Some(host.as_str())
        {
            return Ok(RequestOrigin::SameOrigin);
        }
        if self.origins.contains(&text) {
            return Ok(RequestOrigin::CrossOrigin(origin.clone()));
        }
        Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "origin",
            "pages of this origin may not speak to this server",
            "whoever runs it can name the origin in server.origins",
        ))
    }

    /// The authority that the request is for, if it is one of ours.
    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<String, ApiError> {
        let mut all = headers.get_all(header::HOST).iter();
        let named = match (all.next(), all.next()) {
            (Some(host), None) => host.to_str().unwrap_or_default().to_ascii_lowercase(),
            _ => String::new(),
        };
        let is_absolute_elsewhere = uri
            .authority()
            .is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(&named));
        if self.is_own_host(&named) && !is_absolute_elsewhere {
            return Ok(named);
        }
        Err(ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host",
            "this server does not go by that name",
            "use localhost, or have whoever runs it name the host in server.hosts",
        ))
    }

    fn is_own_host(&self, authority: &str) -> bool {
        let Some(name) = host_name(authority) else {
            return false;
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        let address = name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>();
        name == "localhost"
            || address.is_ok_and(|address| address.is_loopback() || self.is_any_address_allowed)
            || self
                .hosts
                .iter()
                .any(|host| host == name || host == authority)
    }
}

/// The name of an authority; nothing for what is none.
fn host_name(authority: &str) -> Option<&str> {
    let (name, rest) = match authority.find(']') {
        Some(end) if authority.starts_with('[') => authority.split_at(end + 1),
        _ => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let is_authority = !name.is_empty() && !name.contains(['/', '@', ' ', '?', '#', '\\']);
    (is_authority && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)))
        .then_some(name)
}

/// Refuses what comes from elsewhere, and tells browsers about pages that may come.
pub(crate) async fn check_request(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Response {
    let from = match gateway
        .origin_policy()
        .check_origin(request.headers(), request.uri())
    {
        Ok(from) => from,
        Err(refusal) => return refusal.into_response(),
    };
    let RequestOrigin::CrossOrigin(origin) = from else {
        return next.run(request).await;
    };
    let asks_first = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if asks_first {
        let allowed = [(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            allowed_headers(request.headers()),
        )];
        (StatusCode::NO_CONTENT, PREFLIGHT_HEADERS, allowed).into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    response
}

/// The headers that may be sent, for whoever asks which.
fn allowed_headers(headers: &HeaderMap) -> HeaderValue {
    let asked = headers
        .get_all(header::ACCESS_CONTROL_REQUEST_HEADERS)
        .iter();
    let asked = asked
        .filter_map(|names| names.to_str().ok())
        .flat_map(|names| names.split(','));
    let names = asked.filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok());
    let mut all = ALLOWED_HEADERS.to_owned();
    for name in names.filter(|name| name.as_str().starts_with(OPENAI_HEADER_PREFIX)) {
        all.push_str(", ");
        all.push_str(name.as_str());
    }
    HeaderValue::from_str(&all).unwrap_or(HeaderValue::from_static(ALLOWED_HEADERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> OriginPolicy {
        OriginPolicy::new(&ServerSettings {
            hosts: vec!["Lango.example.org".into()],
            origins: vec!["https://chat.example.org/".into()],
            ..ServerSettings::default()
        })
    }

    fn request_origin(host: &str, origin: Option<&str>) -> Result<RequestOrigin, StatusCode> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        policy()
            .check_origin(&headers, &Uri::from_static("/v1/models"))
            .map_err(|refusal| refusal.status)
    }

    #[test]
    fn only_names_of_this_server_are_answered() {
        for host in [
            "localhost",
            "LOCALHOST:7420",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:7420",
            "lango.example.org:443",
        ] {
            assert_eq!(
                request_origin(host, None),
                Ok(RequestOrigin::SameOrigin),
                "{host}"
            );
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost:port",
            "localhost:1@evil.example",
            "user@localhost",
            "",
            "0.0.0.0",
        ] {
            assert_eq!(
                request_origin(host, None),
                Err(StatusCode::MISDIRECTED_REQUEST),
                "{host}"
            );
        }
    }

    #[test]
    fn where_every_address_is_listened_on_any_may_be_named_but_no_name() {
        let settings = ServerSettings {
            host: "0.0.0.0".parse().unwrap(),
            ..ServerSettings::default()
        };
        let places = OriginPolicy::new(&settings);
        assert!(places.is_own_host("192.168.1.5:7420") && places.is_own_host("[fd00::1]"));
        assert!(!places.is_own_host("evil.example") && !places.is_own_host("1.2.3.4.evil.example"));
    }

    #[test]
    fn only_pages_of_this_server_and_named_ones_may_speak() {
        assert_eq!(
            request_origin("localhost:7420", Some("http://localhost:7420")),
            Ok(RequestOrigin::SameOrigin)
        );
        let named = request_origin("localhost:7420", Some("https://chat.example.org"));
        assert!(matches!(named, Ok(RequestOrigin::CrossOrigin(_))));
        for origin in [
            "http://localhost:3000",
            "null",
            "http://evil.example",
            "file://",
            "https://chat.example.org.evil",
        ] {
            assert_eq!(
                request_origin("localhost:7420", Some(origin)),
                Err(StatusCode::FORBIDDEN),
                "{origin}"
            );
        }
    }

    #[test]
    fn a_request_without_one_clear_host_is_refused() {
        let mut headers = HeaderMap::new();
        let uri = Uri::from_static("/");
        assert!(policy().check_origin(&headers, &uri).is_err());
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        headers.append(header::HOST, HeaderValue::from_static("evil.example"));
        assert!(policy().check_origin(&headers, &uri).is_err());
        headers.remove(header::HOST);
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        assert!(
            policy()
                .check_origin(&headers, &Uri::from_static("http://evil.example/"))
                .is_err()
        );
    }
}
