//! The way out to one colleague: which addresses may be reached, and which of them get its credentials.
//!
//! Invariant: credentials go only to the origin that the user configured, or to one that the user allowed.

use std::sync::OnceLock;
use std::time::Duration;

use lango_domain::secret::Secret;
use lango_net::sanitize::one_line;
use lango_net::{AddressPolicy, FetchError, check_url, guarded_client_builder};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder};
use url::{Host, Url};

use crate::settings::RemoteAgentSettings;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Outbound {
    card_url: Url,
    allowed_origins: Vec<Url>,
    /// For addresses that somebody else named.
    address_policy: AddressPolicy,
    credentials: HeaderMap,
    secrets: Vec<Secret>,
    /// Clients for what the user named and for the rest; made when first needed.
    own_client: OnceLock<Client>,
    foreign_client: OnceLock<Client>,
}

/// What in the settings of a colleague cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OutboundSettingsError {
    #[error("agentCardUrl: {0}")]
    CardUrl(FetchError),
    #[error("allowedOrigins: {0}")]
    AllowedOrigin(FetchError),
    #[error("headers: `{0}` cannot be sent")]
    Header(String),
    #[error("token: it cannot be sent")]
    Token,
}

impl Outbound {
    pub fn new(
        settings: &RemoteAgentSettings,
        reach: AddressPolicy,
    ) -> Result<Self, OutboundSettingsError> {
        let home =
            parse_user_url(&settings.agent_card_url).map_err(OutboundSettingsError::CardUrl)?;
        let allowed = settings
            .allowed_origins
            .iter()
            .map(|origin| parse_user_url(origin).map_err(OutboundSettingsError::AllowedOrigin));
        Ok(Self {
            card_url: home,
            allowed_origins: allowed.collect::<Result<_, _>>()?,
            address_policy: reach,
            credentials: credentials(settings)?,
            secrets: settings.secrets().cloned().collect(),
            own_client: OnceLock::new(),
            foreign_client: OnceLock::new(),
        })
    }

    pub fn card_url(&self) -> &Url {
        &self.card_url
    }

    pub fn has_credentials(&self) -> bool {
        !self.credentials.is_empty()
    }

    /// Whether the user named this origin.
    pub fn is_configured_origin(&self, url: &Url) -> bool {
        std::iter::once(&self.card_url)
            .chain(&self.allowed_origins)
            .any(|own| is_same_origin(own, url))
    }

    /// Whether anything may be sent there at all; names are checked again when the connection is made.
    pub fn check_url(&self, url: &Url) -> Result<(), FetchError> {
        check_url(
            url,
            if self.is_configured_origin(url) {
                AddressPolicy::Anywhere
            } else {
                self.address_policy
            },
        )
    }

    /// A request, with credentials where they may go.
    pub fn request(&self, method: Method, url: &Url) -> Result<RequestBuilder, FetchError> {
        self.check_url(url)?;
        if self.is_configured_origin(url) {
            let client = get_or_build_client(&self.own_client, AddressPolicy::Anywhere)?;
            return Ok(client
                .request(method, url.clone())
                .headers(self.credentials.clone()));
        }
        Ok(
            get_or_build_client(&self.foreign_client, self.address_policy)?
                .request(method, url.clone()),
        )
    }

    /// Words without whatever a peer repeats of our secrets, on one line.
    pub fn redact(&self, words: &str) -> String {
        let worth = self.secrets.iter().filter(|secret| secret.is_redactable());
        one_line(
            &worth.fold(words.to_owned(), |words, secret| secret.redact(&words)),
            300,
        )
    }
}

fn get_or_build_client(
    cell: &OnceLock<Client>,
    reach: AddressPolicy,
) -> Result<&Client, FetchError> {
    if let Some(client) = cell.get() {
        return Ok(client);
    }
    let built = guarded_client_builder(CONNECT_TIMEOUT, reach)
        .pool_max_idle_per_host(2)
        .build();
    let client = built.map_err(|error| FetchError::Setup(error.to_string()))?;
    Ok(cell.get_or_init(|| client))
}

/// An address of the user's own.
fn parse_user_url(url: &str) -> Result<Url, FetchError> {
    let url = lango_net::parse_url(url)?;
    check_url(&url, AddressPolicy::Anywhere)?;
    Ok(url)
}

fn credentials(settings: &RemoteAgentSettings) -> Result<HeaderMap, OutboundSettingsError> {
    let mut headers = HeaderMap::new();
    let sensitive = |text: &str| {
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    if let Some(token) = &settings.token {
        let value = sensitive(&format!("Bearer {}", token.expose().trim()))
            .ok_or(OutboundSettingsError::Token)?;
        headers.insert(AUTHORIZATION, value);
    }
    for (name, secret) in &settings.headers {
        let bad = || OutboundSettingsError::Header(one_line(name, 60));
        let header = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
        headers.insert(header, sensitive(secret.expose()).ok_or_else(bad)?);
    }
    Ok(headers)
}

/// The same origin. Every name of this machine is the same one: cards say `localhost` where the user said `127.0.0.1`.
fn is_same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.port_or_known_default() == b.port_or_known_default()
        && (a.host() == b.host() || (is_localhost(a) && is_localhost(b)))
}

pub(crate) fn is_localhost(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbound(url: &str, allowed: &[&str]) -> Outbound {
        let settings = RemoteAgentSettings {
            agent_card_url: url.to_owned(),
            allowed_origins: allowed.iter().map(|origin| (*origin).to_owned()).collect(),
            token: Some(Secret::new("s3cret-token")),
            ..RemoteAgentSettings::default()
        };
        Outbound::new(&settings, AddressPolicy::Public).unwrap()
    }

    #[test]
    fn credentials_go_only_where_the_user_said() {
        let out = outbound("https://a.example/card.json", &["https://api.a.example"]);
        let sent_to = |url: &str| {
            let request = out
                .request(Method::GET, &Url::parse(url).unwrap())
                .unwrap()
                .build()
                .unwrap();
            request.headers().contains_key(AUTHORIZATION)
        };
        assert!(sent_to("https://a.example/elsewhere"));
        assert!(sent_to("https://a.example:443/"));
        assert!(sent_to("https://api.a.example/rpc"));
        for foreign in [
            "http://a.example/",
            "https://a.example:8443/",
            "https://b.example/",
            "https://a.example.b.example/",
            "https://xa.example/",
        ] {
            assert!(!sent_to(foreign), "{foreign}");
        }
    }

    #[test]
    fn private_addresses_are_for_the_user_to_name() {
        let out = outbound("http://127.0.0.1:8000/", &[]);
        for (url, may) in [
            ("http://127.0.0.1:8000/a2a", true),
            ("http://localhost:8000/a2a", true),
            ("http://0.0.0.0:8000/", true),
            ("http://127.0.0.1:8001/", false),
            ("http://10.0.0.1/", false),
            ("http://169.254.169.254/latest", false),
            ("https://public.example/", true),
            ("file:///etc/passwd", false),
            ("http://me:pw@127.0.0.1:8000/", false),
        ] {
            assert_eq!(
                out.check_url(&Url::parse(url).unwrap()).is_ok(),
                may,
                "{url}"
            );
        }
    }

    #[test]
    fn what_cannot_be_sent_is_told_without_showing_it() {
        let settings = RemoteAgentSettings {
            agent_card_url: "http://a.example".to_owned(),
            token: Some(Secret::new("bad\nvalue")),
            ..RemoteAgentSettings::default()
        };
        let error = Outbound::new(&settings, AddressPolicy::Public)
            .err()
            .unwrap();
        assert_eq!(error, OutboundSettingsError::Token);
        assert_eq!(
            outbound("http://a.example", &[]).redact("you sent s3cret-token!"),
            "you sent ***!"
        );
    }
}
