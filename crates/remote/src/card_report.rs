//! A readable report about an agent card: its content, its problems and the interface that is used.

use lango_net::AddressPolicy;
use lango_text::sanitize::truncated_line;
use serde::Serialize;

use crate::a2a::{
    AgentCard, AgentSkill, ApiKeyLocation, ProtocolVersion, SecurityRequirement, SecurityScheme,
};
use crate::card_fetch::{CardError, FetchedCard, fetch};
use crate::endpoint::{evaluate, select_endpoint};
use crate::outbound::{Outbound, is_localhost};
use crate::settings::RemoteAgentSettings;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CardReport {
    /// URL where the card was found.
    pub url: String,
    pub name: String,
    pub description: String,
    pub version: String,
    pub provider: Option<String>,
    pub streaming: bool,
    pub push_notifications: bool,
    pub interfaces: Vec<InterfaceReport>,
    pub skills: Vec<SkillReport>,
    /// Accepted authentication methods as text; any one is enough.
    pub auth: Vec<String>,
    /// Violations of the protocol.
    pub problems: Vec<String>,
    /// The interface that Lango uses; none if no interface is usable.
    pub uses: Option<InterfaceReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceReport {
    pub url: String,
    pub binding: String,
    pub version: String,
    /// The reason why it cannot be used; none if it can.
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

/// Fetches a card as for the team and reports about it.
pub async fn check_card(
    settings: &RemoteAgentSettings,
    policy: AddressPolicy,
) -> Result<CardReport, CardError> {
    let outbound = Outbound::new(settings, policy)?;
    let fetched = fetch(&outbound).await?;
    Ok(build_report(&fetched, &outbound))
}

fn build_report(fetched: &FetchedCard, outbound: &Outbound) -> CardReport {
    let card = &fetched.parsed.card;
    let interfaces: Vec<InterfaceReport> = card
        .interfaces
        .iter()
        .take(20)
        .map(|interface| InterfaceReport {
            url: truncated_line(&interface.url, 300),
            binding: interface.binding.to_string(),
            version: truncated_line(&interface.version, 20),
            unusable: evaluate(interface, outbound).err(),
        })
        .collect();
    let mut problems: Vec<String> = fetched
        .parsed
        .problems
        .iter()
        .map(|problem| truncated_line(problem, 300))
        .collect();
    problems.extend(find_problems(card, outbound));
    let uses = select_endpoint(card, outbound).ok().and_then(|endpoint| {
        let is_selected = |report: &&InterfaceReport| {
            let version = ProtocolVersion::parse(&report.version).unwrap_or(ProtocolVersion::V0_3);
            report.unusable.is_none()
                && version == endpoint.version
                && lango_net::parse_url(&report.url).is_ok_and(|url| url == endpoint.url)
        };
        interfaces.iter().find(is_selected).cloned()
    });
    CardReport {
        url: fetched.url.to_string(),
        name: truncated_line(&card.name, 200),
        description: truncated_line(&card.description, 2_000),
        version: truncated_line(&card.version, 60),
        provider: card
            .provider
            .as_ref()
            .map(|provider| truncated_line(&provider.organization, 200)),
        streaming: card.capabilities.streaming,
        push_notifications: card.capabilities.push_notifications,
        interfaces,
        skills: card.skills.iter().take(100).map(skill_report).collect(),
        auth: describe_auth(card),
        problems,
        uses,
    }
}

fn skill_report(skill: &AgentSkill) -> SkillReport {
    SkillReport {
        id: truncated_line(&skill.id, 100),
        name: truncated_line(&skill.name, 200),
        description: truncated_line(&skill.description, 500),
        tags: skill
            .tags
            .iter()
            .take(20)
            .map(|tag| truncated_line(tag, 60))
            .collect(),
    }
}

/// Returns unsupported requirements of the card and settings that seem to be missing.
fn find_problems(card: &AgentCard, outbound: &Outbound) -> Vec<String> {
    let mut problems = Vec::new();
    for extension in card
        .capabilities
        .extensions
        .iter()
        .filter(|extension| extension.required)
    {
        let uri = truncated_line(&extension.uri, 200);
        problems.push(format!(
            "it requires the extension {uri}, which is not supported"
        ));
    }
    if !card.security.is_empty() && !outbound.has_credentials() {
        problems.push("it requires credentials, but none are configured".to_owned());
    }
    let is_unencrypted = |url: &str| url.starts_with("http://");
    let is_local = |url: &str| {
        lango_net::parse_url(url)
            .is_ok_and(|url| outbound.is_configured_origin(&url) && is_localhost(&url))
    };
    for interface in card
        .interfaces
        .iter()
        .filter(|interface| is_unencrypted(&interface.url) && !is_local(&interface.url))
        .take(3)
    {
        let url = truncated_line(&interface.url, 200);
        problems.push(format!("{url} is not encrypted"));
    }
    problems
}

fn describe_auth(card: &AgentCard) -> Vec<String> {
    let describe_scheme = |name: &String| match card.security_schemes.get(name) {
        Some(SecurityScheme::Http { scheme }) => {
            format!("Authorization: {} …", truncated_line(scheme, 40))
        }
        Some(SecurityScheme::ApiKey {
            location: ApiKeyLocation::Header,
            name,
        }) => {
            format!("the header {}", truncated_line(name, 60))
        }
        Some(SecurityScheme::ApiKey { location, name }) => {
            format!(
                "a key in the {} ({}), which is not supported",
                location.as_str(),
                truncated_line(name, 60)
            )
        }
        Some(SecurityScheme::OAuth2 { .. }) => {
            "OAuth 2; configure a token obtained from the provider".to_owned()
        }
        Some(SecurityScheme::OpenIdConnect { .. }) => {
            "OpenID Connect; configure a token obtained from the provider".to_owned()
        }
        Some(SecurityScheme::MutualTls) => {
            "a client certificate, which is not supported".to_owned()
        }
        Some(SecurityScheme::Other(kind)) => format!("{kind}, which is not supported"),
        None => format!(
            "{}, which the card does not describe",
            truncated_line(name, 60)
        ),
    };
    let describe_requirement = |requirement: &SecurityRequirement| {
        let schemes: Vec<String> = requirement.0.keys().map(describe_scheme).collect();
        schemes.join(" and ")
    };
    card.security.iter().map(describe_requirement).collect()
}
