//! The agent card, one for both protocol versions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use lango_remote::a2a::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Binding, ProtocolVersion,
    SecurityRequirement, SecurityScheme,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::settings::CardAudience;
use crate::api::team::AgentItem;
use crate::gateway::{Gateway, ServedTeam};

const MAX_AGE: u32 = 300;
const SCHEME: &str = "bearer";

/// The level of detail of the card. The public card lists the agents; the authenticated one adds
/// their keywords and remote agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CardDetail {
    Public,
    Authenticated,
}

/// The time of the last change of the team, for `Last-Modified`.
#[derive(Default)]
pub(crate) struct CardTimestamps {
    since: Mutex<Option<(Weak<ServedTeam>, Timestamp)>>,
}

impl CardTimestamps {
    fn modified_at(&self, team: &Arc<ServedTeam>, now: Timestamp) -> Timestamp {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        match &*since {
            Some((last, at)) if std::ptr::eq(last.as_ptr(), Arc::as_ptr(team)) => *at,
            _ => {
                *since = Some((Arc::downgrade(team), now));
                now
            }
        }
    }
}

/// Serves the card at the well-known paths.
pub(crate) async fn public_card(State(gateway): State<Gateway>, headers: HeaderMap) -> Response {
    let team = gateway.team();
    let body = render_card(
        &gateway,
        &headers,
        CardDetail::Public,
        ProtocolVersion::V0_3,
    )
    .to_string();
    let tag = format!("\"{}\"", short_hash(body.as_bytes()));
    let cache_scope = match gateway.settings().a2a.card {
        CardAudience::Everyone => "public",
        CardAudience::Callers => "private",
    };
    let modified = gateway
        .a2a()
        .card_timestamps
        .modified_at(&team, gateway.now());
    let response_headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (
            header::CACHE_CONTROL,
            format!("{cache_scope}, max-age={MAX_AGE}"),
        ),
        (header::ETAG, tag.clone()),
        (header::LAST_MODIFIED, http_date(modified)),
        (header::VARY, "Host".to_owned()),
    ];
    let cached_tags = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if cached_tags
        .split(',')
        .map(str::trim)
        .any(|cached| cached.trim_start_matches("W/") == tag || cached == "*")
    {
        return (StatusCode::NOT_MODIFIED, response_headers).into_response();
    }
    (response_headers, body).into_response()
}

/// Returns the card for a request with these headers. A request in version 1.0 gets only the fields
/// of that version.
pub(crate) fn render_card(
    gateway: &Gateway,
    headers: &HeaderMap,
    detail: CardDetail,
    version: ProtocolVersion,
) -> Value {
    let base = base_url(gateway, headers);
    let versions = match gateway.settings().a2a.older_version && version == ProtocolVersion::V0_3 {
        true => &[ProtocolVersion::V1_0, ProtocolVersion::V0_3][..],
        false => &[ProtocolVersion::V1_0],
    };
    let team = gateway.team();
    let worker = &gateway.a2a().worker;
    let requirement = SecurityRequirement(BTreeMap::from([(SCHEME.to_owned(), Vec::new())]));
    let is_listed = |agent: &&AgentItem| detail == CardDetail::Authenticated || !agent.remote;
    AgentCard {
        name: "Lango".to_owned(),
        description:
            "A team of agents behind one address: it finds out who of them is to do what was asked, and \
            answers in their name."
                .to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        provider: None,
        documentation_url: None,
        icon_url: None,
        interfaces: interfaces(&base, versions),
        capabilities: AgentCapabilities {
            streaming: true,
            push_notifications: gateway.settings().a2a.push_addresses > 0,
            extended_card: true,
            extensions: Vec::new(),
        },
        skills: team.agents.agents.iter().filter(is_listed).map(|agent| skill(agent, detail)).collect(),
        input_modes: worker.input_modes(),
        output_modes: worker.output_modes(),
        security_schemes: BTreeMap::from([(
            SCHEME.to_owned(),
            SecurityScheme::Http { scheme: "Bearer".to_owned() },
        )]),
        security: vec![requirement],
        signatures: Vec::new(),
    }
    .to_json()
}

fn interfaces(base: &str, versions: &[ProtocolVersion]) -> Vec<AgentInterface> {
    let mut interfaces = Vec::new();
    for version in versions {
        for binding in [Binding::JsonRpc, Binding::HttpJson] {
            let (url, version, tenant) = (format!("{base}/a2a"), version.to_string(), None);
            interfaces.push(AgentInterface {
                url,
                binding,
                version,
                tenant,
            });
        }
    }
    interfaces
}

/// Returns an agent as a skill. Its tools are not published.
fn skill(agent: &AgentItem, detail: CardDetail) -> AgentSkill {
    let description = agent.description.clone();
    let keywords = if detail == CardDetail::Authenticated {
        agent.keywords.clone()
    } else {
        Vec::new()
    };
    let tags = std::iter::once("agent".to_owned())
        .chain(keywords)
        .collect();
    AgentSkill {
        id: agent.name.clone(),
        name: agent.name.clone(),
        description,
        tags,
        ..AgentSkill::default()
    }
}

/// Returns the public URL of this server: the configured one, or the host of the request, which
/// [`crate::cors`] has checked.
fn base_url(gateway: &Gateway, headers: &HeaderMap) -> String {
    if let Some(url) = &gateway.settings().a2a.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or("localhost");
    format!("http://{host}")
}

fn short_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn http_date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC)
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_http_dates() {
        assert_eq!(
            http_date(Timestamp::UNIX_EPOCH),
            "Thu, 01 Jan 1970 00:00:00 GMT"
        );
    }
}
