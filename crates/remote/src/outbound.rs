//! Outgoing requests to one remote agent: allowed addresses and credentials.
//!
//! Invariant: credentials are sent only to the origin that the user configured and to the origins
//! that the user allowed.

use std::sync::OnceLock;
use std::time::Duration;

use lango_domain::secret::Secret;
use lango_net::{AddressPolicy, FetchError, check_url, guarded_client_builder};
use lango_text::sanitize::truncated_line;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder};
use url::{Host, Url};

use crate::settings::RemoteAgentSettings;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Outbound {
    card_url: Url,
    allowed_origins: Vec<Url>,
    /// Policy for URLs that the user did not configure.
    address_policy: AddressPolicy,
    credentials: HeaderMap,
    secrets: Vec<Secret>,
    /// Clients for configured and for other origins; created when first needed.
    own_client: OnceLock<Client>,
    foreign_client: OnceLock<Client>,
}

/// Error in the settings of a remote agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OutboundSettingsError {
    #[error("agentCardUrl: {0}")]
    CardUrl(FetchError),
    #[error("allowedOrigins: {0}")]
    AllowedOrigin(FetchError),
    #[error("headers: `{0}` is not a valid HTTP header")]
    Header(String),
    #[error("token: not a valid HTTP header value")]
    Token,
}

impl Outbound {
    pub fn new(
        settings: &RemoteAgentSettings,
        address_policy: AddressPolicy,
    ) -> Result<Self, OutboundSettingsError> {
        let card_url =
            parse_user_url(&settings.agent_card_url).map_err(OutboundSettingsError::CardUrl)?;
        let allowed_origins = settings
            .allowed_origins
            .iter()
            .map(|origin| parse_user_url(origin).map_err(OutboundSettingsError::AllowedOrigin));
        Ok(Self {
            card_url,
            allowed_origins: allowed_origins.collect::<Result<_, _>>()?,
            address_policy,
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

    /// Returns true if the user configured or allowed the origin of `url`.
    pub fn is_configured_origin(&self, url: &Url) -> bool {
        std::iter::once(&self.card_url)
            .chain(&self.allowed_origins)
            .any(|configured| is_same_origin(configured, url))
    }

    /// Checks that requests may be sent to `url`. Names are checked again when the connection is
    /// made.
    pub fn check_url(&self, url: &Url) -> Result<(), FetchError> {
        let policy = if self.is_configured_origin(url) {
            AddressPolicy::Anywhere
        } else {
            self.address_policy
        };
        check_url(url, policy)
    }

    /// Builds a request, with credentials if the origin may get them.
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

    /// Redacts secrets that a remote agent repeats, and returns one line.
    pub fn redact(&self, text: &str) -> String {
        let secrets = self.secrets.iter().filter(|secret| secret.is_redactable());
        let redacted = secrets.fold(text.to_owned(), |text, secret| secret.redact(&text));
        truncated_line(&redacted, 300)
    }
}

fn get_or_build_client(
    cell: &OnceLock<Client>,
    address_policy: AddressPolicy,
) -> Result<&Client, FetchError> {
    if let Some(client) = cell.get() {
        return Ok(client);
    }
    let built = guarded_client_builder(CONNECT_TIMEOUT, address_policy)
        .pool_max_idle_per_host(2)
        .build();
    let client = built.map_err(|error| FetchError::Setup(error.to_string()))?;
    Ok(cell.get_or_init(|| client))
}

/// Parses a URL of the user, which may be on a private network.
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
        let invalid = || OutboundSettingsError::Header(truncated_line(name, 60));
        let header = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
        headers.insert(header, sensitive(secret.expose()).ok_or_else(invalid)?);
    }
    Ok(headers)
}

/// Returns true for equal origins. All names of this machine are equal: cards say `localhost` where
/// the user configured `127.0.0.1`.
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

    fn build_outbound(url: &str, allowed_origins: &[&str]) -> Outbound {
        let settings = RemoteAgentSettings {
            agent_card_url: url.to_owned(),
            allowed_origins: allowed_origins
                .iter()
                .map(|origin| (*origin).to_owned())
                .collect(),
            token: Some(Secret::new("s3cret-token")),
            ..RemoteAgentSettings::default()
        };
        Outbound::new(&settings, AddressPolicy::Public).unwrap()
    }

    #[test]
    fn credentials_are_sent_only_to_configured_origins() {
        let outbound = build_outbound("https://a.example/card.json", &["https://api.a.example"]);
        let gets_credentials = |url: &str| {
            let request = outbound
                .request(Method::GET, &Url::parse(url).unwrap())
                .unwrap()
                .build()
                .unwrap();
            request.headers().contains_key(AUTHORIZATION)
        };
        assert!(gets_credentials("https://a.example/other"));
        assert!(gets_credentials("https://a.example:443/"));
        assert!(gets_credentials("https://api.a.example/rpc"));
        for foreign in [
            "http://a.example/",
            "https://a.example:8443/",
            "https://b.example/",
            "https://a.example.b.example/",
            "https://xa.example/",
        ] {
            assert!(!gets_credentials(foreign), "{foreign}");
        }
    }

    #[test]
    fn private_addresses_must_be_configured() {
        let outbound = build_outbound("http://127.0.0.1:8000/", &[]);
        for (url, is_allowed) in [
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
                outbound.check_url(&Url::parse(url).unwrap()).is_ok(),
                is_allowed,
                "{url}"
            );
        }
    }

    #[test]
    fn invalid_tokens_are_reported_without_their_value() {
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
            build_outbound("http://a.example", &[]).redact("you sent s3cret-token!"),
            "you sent ***!"
        );
    }
}
