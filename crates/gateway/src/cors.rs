//! Host, Origin and CORS checks. They keep web pages of other sites from calling this server through
//! a user's browser.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::settings::ServerSettings;

/// Headers of a preflight response.
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
/// Prefix of headers in which OpenAI clients report their platform. They have no effect, but browsers
/// request permission for each.
const OPENAI_HEADER_PREFIX: &str = "x-stainless-";
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("x-lango-session, retry-after");

/// The host names and origins that are allowed.
#[derive(Clone, Debug)]
pub(crate) struct OriginPolicy {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// True if the server listens on all addresses; then any IP address is accepted as host. Unlike
    /// a host name, an IP address cannot be rebound to this server by another site.
    is_any_address_allowed: bool,
}

/// The origin of an allowed request.
#[derive(Clone, Debug, PartialEq)]
enum RequestOrigin {
    /// A request without `Origin`, or from a page of this server.
    SameOrigin,
    /// A request from an origin that the settings allow.
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
            "this origin is not allowed to call this server",
            "add the origin to server.origins",
        ))
    }

    /// Returns the host of the request, or an error if it is not a host of this server.
    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<String, ApiError> {
        let mut all = headers.get_all(header::HOST).iter();
        let host = match (all.next(), all.next()) {
            (Some(value), None) => value.to_str().unwrap_or_default().to_ascii_lowercase(),
            _ => String::new(),
        };
        let is_for_other_host = uri
            .authority()
            .is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(&host));
        if self.is_own_host(&host) && !is_for_other_host {
            return Ok(host);
        }
        Err(ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host",
            "unknown host: the `Host` header is not a name of this server",
            "use localhost, or add the host to server.hosts",
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

/// Returns the host of an authority without its port, or `None` if the authority is invalid.
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

/// Rejects requests for other hosts or from other origins, and adds CORS headers for allowed ones.
pub(crate) async fn check_request(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Response {
    let origin = match gateway
        .origin_policy()
        .check_origin(request.headers(), request.uri())
    {
        Ok(origin) => origin,
        Err(error) => return error.into_response(),
    };
    let RequestOrigin::CrossOrigin(origin) = origin else {
        return next.run(request).await;
    };
    let is_preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if is_preflight {
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

/// Returns the allowed request headers for a preflight response.
fn allowed_headers(headers: &HeaderMap) -> HeaderValue {
    let requested = headers
        .get_all(header::ACCESS_CONTROL_REQUEST_HEADERS)
        .iter();
    let requested = requested
        .filter_map(|names| names.to_str().ok())
        .flat_map(|names| names.split(','));
    let names = requested.filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok());
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
            .map_err(|error| error.status)
    }

    #[test]
    fn accepts_only_own_hosts() {
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
    fn accepts_any_address_but_no_other_name_when_listening_on_all() {
        let settings = ServerSettings {
            host: "0.0.0.0".parse().unwrap(),
            ..ServerSettings::default()
        };
        let policy = OriginPolicy::new(&settings);
        assert!(policy.is_own_host("192.168.1.5:7420") && policy.is_own_host("[fd00::1]"));
        assert!(!policy.is_own_host("evil.example") && !policy.is_own_host("1.2.3.4.evil.example"));
    }

    #[test]
    fn accepts_only_own_and_configured_origins() {
        assert_eq!(
            request_origin("localhost:7420", Some("http://localhost:7420")),
            Ok(RequestOrigin::SameOrigin)
        );
        let configured = request_origin("localhost:7420", Some("https://chat.example.org"));
        assert!(matches!(configured, Ok(RequestOrigin::CrossOrigin(_))));
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
    fn rejects_missing_ambiguous_or_conflicting_hosts() {
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
