//! What Lango says about itself: one card for both versions.

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

/// How much is told: strangers learn who is there, callers also what each is asked with and who works elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CardDetail {
    Public,
    Authenticated,
}

/// When the team became what it is.
#[derive(Default)]
pub(crate) struct CardTimestamps {
    since: Mutex<Option<(Weak<ServedTeam>, Timestamp)>>,
}

impl CardTimestamps {
    fn modified_at(&self, team: &Arc<ServedTeam>, now: Timestamp) -> Timestamp {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        match &*since {
            Some((known, at)) if std::ptr::eq(known.as_ptr(), Arc::as_ptr(team)) => *at,
            _ => {
                *since = Some((Arc::downgrade(team), now));
                now
            }
        }
    }
}

/// The card at the well-known addresses.
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
    let who = match gateway.settings().a2a.card {
        CardAudience::Everyone => "public",
        CardAudience::Callers => "private",
    };
    let modified = gateway
        .a2a()
        .card_timestamps
        .modified_at(&team, gateway.now());
    let about = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CACHE_CONTROL, format!("{who}, max-age={MAX_AGE}")),
        (header::ETAG, tag.clone()),
        (header::LAST_MODIFIED, http_date(modified)),
        (header::VARY, "Host".to_owned()),
    ];
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|known| known.to_str().ok())
        .unwrap_or_default();
    if known
        .split(',')
        .any(|known| known.trim().trim_start_matches("W/") == tag || known.trim() == "*")
    {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    (about, body).into_response()
}

/// The card as it is told to whoever asks with these headers. Whoever asks in 1.0 gets the fields of that version alone.
pub(crate) fn render_card(
    gateway: &Gateway,
    headers: &HeaderMap,
    telling: CardDetail,
    asked_in: ProtocolVersion,
) -> Value {
    let base = base_url(gateway, headers);
    let versions = match gateway.settings().a2a.older_version && asked_in == ProtocolVersion::V0_3 {
        true => &[ProtocolVersion::V1_0, ProtocolVersion::V0_3][..],
        false => &[ProtocolVersion::V1_0],
    };
    let team = gateway.team();
    let worker = &gateway.a2a().worker;
    let requirement = SecurityRequirement(BTreeMap::from([(SCHEME.to_owned(), Vec::new())]));
    let told = |agent: &&AgentItem| telling == CardDetail::Authenticated || !agent.remote;
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
        skills: team.agents.agents.iter().filter(told).map(|agent| skill(agent, telling)).collect(),
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

/// An agent as a skill; which tools it has is nobody's business.
fn skill(agent: &AgentItem, telling: CardDetail) -> AgentSkill {
    let description = agent.description.clone();
    let keywords = if telling == CardDetail::Authenticated {
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

/// Where others reach this server: as the settings say, else the host that was asked, which was checked before.
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
    fn dates_are_as_http_writes_them() {
        assert_eq!(
            http_date(Timestamp::UNIX_EPOCH),
            "Thu, 01 Jan 1970 00:00:00 GMT"
        );
    }
}
