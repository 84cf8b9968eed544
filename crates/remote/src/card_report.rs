//! A card explained: what it offers, what is odd about it, and what would be used of it.

use lango_net::AddressPolicy;
use lango_net::sanitize::one_line;
use serde::Serialize;

use crate::a2a::{AgentCard, ApiKeyLocation, SecurityScheme};
use crate::card_fetch::{CardError, FetchedCard, fetch};
use crate::endpoint::{evaluate, select_endpoint};
use crate::outbound::{Outbound, is_localhost};
use crate::settings::RemoteAgentSettings;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CardReport {
    /// Where the card was found.
    pub url: String,
    pub name: String,
    pub description: String,
    pub version: String,
    pub provider: Option<String>,
    pub streaming: bool,
    pub push_notifications: bool,
    pub interfaces: Vec<InterfaceReport>,
    pub skills: Vec<SkillReport>,
    /// Ways to show who one is, in words; any one is enough.
    pub auth: Vec<String>,
    /// What is not as the protocol wants it.
    pub problems: Vec<String>,
    /// The interface that Lango speaks to; nothing where none can be used.
    pub uses: Option<InterfaceReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceReport {
    pub url: String,
    pub binding: String,
    pub version: String,
    /// Why it is not used; nothing where it can be.
    pub unusable: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillReport {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
}

/// Fetches a card as it would be for the team, and explains it.
pub async fn check_card(
    settings: &RemoteAgentSettings,
    reach: AddressPolicy,
) -> Result<CardReport, CardError> {
    let outgoing = Outbound::new(settings, reach)?;
    let fetched = fetch(&outgoing).await?;
    Ok(build_report(&fetched, &outgoing))
}

fn build_report(fetched: &FetchedCard, outgoing: &Outbound) -> CardReport {
    let card = &fetched.parsed.card;
    let interfaces: Vec<InterfaceReport> = card
        .interfaces
        .iter()
        .take(20)
        .map(|interface| InterfaceReport {
            url: one_line(&interface.url, 300),
            binding: interface.binding.to_string(),
            version: one_line(&interface.version, 20),
            unusable: evaluate(interface, outgoing).err(),
        })
        .collect();
    let mut problems: Vec<String> = fetched
        .parsed
        .problems
        .iter()
        .map(|problem| one_line(problem, 300))
        .collect();
    problems.extend(find_problems(card, outgoing));
    let uses = select_endpoint(card, outgoing).ok().and_then(|endpoint| {
        let fits = |report: &&InterfaceReport| {
            let version = crate::a2a::ProtocolVersion::parse(&report.version)
                .unwrap_or(crate::a2a::ProtocolVersion::V0_3);
            report.unusable.is_none()
                && version == endpoint.version
                && lango_net::parse_url(&report.url).is_ok_and(|url| url == endpoint.url)
        };
        interfaces.iter().find(fits).cloned()
    });
    CardReport {
        url: fetched.url.to_string(),
        name: one_line(&card.name, 200),
        description: one_line(&card.description, 2_000),
        version: one_line(&card.version, 60),
        provider: card
            .provider
            .as_ref()
            .map(|provider| one_line(&provider.organization, 200)),
        streaming: card.capabilities.streaming,
        push_notifications: card.capabilities.push_notifications,
        interfaces,
        skills: card.skills.iter().take(100).map(skill_report).collect(),
        auth: describe_auth(card),
        problems,
        uses,
    }
}

fn skill_report(skill: &crate::a2a::AgentSkill) -> SkillReport {
    SkillReport {
        id: one_line(&skill.id, 100),
        name: one_line(&skill.name, 200),
        description: one_line(&skill.description, 500),
        tags: skill
            .tags
            .iter()
            .take(20)
            .map(|tag| one_line(tag, 60))
            .collect(),
    }
}

/// What the card wants that is not done here, and what seems to be missing in the settings.
fn find_problems(card: &AgentCard, outgoing: &Outbound) -> Vec<String> {
    let mut problems = Vec::new();
    for extension in card
        .capabilities
        .extensions
        .iter()
        .filter(|extension| extension.required)
    {
        let uri = one_line(&extension.uri, 200);
        problems.push(format!(
            "it requires the extension {uri}, which is not known here"
        ));
    }
    if !card.security.is_empty() && !outgoing.has_credentials() {
        problems.push("it asks for credentials, and none are configured for it".to_owned());
    }
    let is_plain = |url: &str| url.starts_with("http://");
    let is_here = |url: &str| {
        lango_net::parse_url(url)
            .is_ok_and(|url| outgoing.is_configured_origin(&url) && is_localhost(&url))
    };
    for interface in card
        .interfaces
        .iter()
        .filter(|one| is_plain(&one.url) && !is_here(&one.url))
        .take(3)
    {
        let url = one_line(&interface.url, 200);
        problems.push(format!("{url} is not encrypted"));
    }
    problems
}

fn describe_auth(card: &AgentCard) -> Vec<String> {
    let words = |name: &String| match card.security_schemes.get(name) {
        Some(SecurityScheme::Http { scheme }) => {
            format!("Authorization: {} …", one_line(scheme, 40))
        }
        Some(SecurityScheme::ApiKey {
            location: ApiKeyLocation::Header,
            name,
        }) => {
            format!("the header {}", one_line(name, 60))
        }
        Some(SecurityScheme::ApiKey {
            location: place,
            name,
        }) => {
            format!(
                "a key in the {} ({}), which is not done here",
                place.as_str(),
                one_line(name, 60)
            )
        }
        Some(SecurityScheme::OAuth2 { .. }) => {
            "OAuth 2; a token from there can be configured".to_owned()
        }
        Some(SecurityScheme::OpenIdConnect { .. }) => {
            "OpenID Connect; a token from there can be configured".to_owned()
        }
        Some(SecurityScheme::MutualTls) => {
            "a certificate of the client's, which is not done here".to_owned()
        }
        Some(SecurityScheme::Other(kind)) => format!("{kind}, which is not known here"),
        None => format!("{}, which the card does not describe", one_line(name, 60)),
    };
    card.security
        .iter()
        .map(|one| one.0.keys().map(words).collect::<Vec<_>>().join(" and "))
        .collect()
}
