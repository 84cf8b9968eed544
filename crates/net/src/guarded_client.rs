//! An HTTP client for untrusted URLs: web pages, models, remote agents.
//!
//! Invariant: the address that was checked is the address that is connected to. Names are checked
//! in the resolver that the connection uses, so changing a DNS record between check and use has no
//! effect.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, ClientBuilder, Response, redirect};
use url::{Host, Url};

use crate::address::AddressPolicy;
use crate::content_type::{ContentKind, ContentType};
use crate::{body, charset};
use lango_text::sanitize::truncated_line;

/// Limits of one fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    pub connect: Duration,
    /// From the first DNS lookup to the last byte, including redirects.
    pub total: Duration,
    /// Size of the decompressed body in bytes.
    pub body: usize,
    pub redirects: usize,
    /// True if redirects may lead to another host. False where approval was given for one host.
    pub can_leave_host: bool,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            total: Duration::from_secs(20),
            body: 5 * 1024 * 1024,
            redirects: 5,
            can_leave_host: true,
        }
    }
}

/// Error of a fetch. The texts are shown to models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("`{0}` is not a URL")]
    NotAUrl(String),
    #[error("only http and https URLs can be fetched, not {0}")]
    Scheme(String),
    #[error("URLs with a user name or password are not allowed")]
    Credentials,
    #[error("{0}: this address is on a private network, which is not allowed")]
    PrivateAddress(String),
    #[error("{0}: the settings do not allow this host")]
    HostNotAllowed(String),
    #[error("no such host: {0}")]
    UnknownHost(String),
    #[error("connection failed: {0}")]
    Connection(String),
    #[error("no complete response within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("more than {0} redirects")]
    TooManyRedirects(usize),
    #[error("redirect loop")]
    RedirectLoop,
    #[error("redirect from https to http is not allowed")]
    Downgrade,
    #[error("redirect to another host: {0}\nfetch that URL if it is wanted")]
    OtherHost(String),
    #[error("redirect without a valid location")]
    BadRedirect,
    #[error("the server returned status {0}")]
    Status(u16),
    #[error("the response is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("unsupported content type {0}; expected text, HTML, JSON, XML or PDF")]
    ContentType(String),
    #[error("the content is neither text nor a PDF")]
    NotText,
    #[error("unsupported content encoding {0}; expected gzip, deflate or br")]
    ContentEncoding(String),
    #[error("the response is corrupt")]
    Corrupt,
    #[error("cannot create an HTTP client: {0}")]
    Setup(String),
}

impl FetchError {
    /// Returns true if the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Status(status) => *status >= 500 || matches!(status, 408 | 429),
            Self::Connection(_) | Self::UnknownHost(_) | Self::TimedOut(_) => true,
            _ => false,
        }
    }

    /// Returns the resolver's `FetchError` if there is one, else the innermost cause: the outer
    /// ones only repeat the URL.
    pub fn from_reqwest(error: &reqwest::Error) -> Self {
        let mut cause: &(dyn std::error::Error + 'static) = error;
        loop {
            if let Some(own) = cause.downcast_ref::<Self>() {
                return own.clone();
            }
            match cause.source() {
                Some(inner) => cause = inner,
                None if error.is_timeout() => {
                    return Self::Connection("timed out".to_owned());
                }
                None => return Self::Connection(truncated_line(&cause.to_string(), 200)),
            }
        }
    }
}

/// A fetched page.
#[derive(Clone, Debug)]
pub struct FetchedPage {
    /// The final URL, after redirects.
    pub url: Url,
    pub kind: ContentKind,
    /// The media type from the header, such as `text/html`; may be empty.
    pub content_type: String,
    pub bytes: Vec<u8>,
    charset: Option<String>,
}

impl FetchedPage {
    /// Returns the bytes as text; invalid bytes become `�`.
    pub fn text(&self) -> String {
        charset::decode(&self.bytes, self.charset.as_deref())
    }
}

/// A client for untrusted URLs. It sends no cookies and no keys, and uses no proxy.
#[derive(Clone, Debug)]
pub struct GuardedClient {
    /// Created on the first fetch: most sessions have none.
    client: Arc<OnceLock<Client>>,
    policy: AddressPolicy,
    limits: FetchLimits,
}

impl GuardedClient {
    pub fn new(policy: AddressPolicy, limits: FetchLimits) -> Self {
        Self {
            client: Arc::default(),
            policy,
            limits,
        }
    }

    pub(crate) fn client(&self) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = guarded_client_builder(self.limits.connect, self.policy)
            // The next fetch mostly goes to another host.
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| FetchError::Setup(error.to_string()))?;
        Ok(self.client.get_or_init(|| client))
    }

    pub fn policy(&self) -> AddressPolicy {
        self.policy
    }

    pub(crate) fn limits(&self) -> FetchLimits {
        self.limits
    }

    /// Fetches a URL, following redirects.
    pub async fn get(&self, url: &str) -> Result<FetchedPage, FetchError> {
        let total = self.limits.total;
        tokio::time::timeout(total, self.get_following_redirects(url))
            .await
            .map_err(|_late| FetchError::TimedOut(total))?
    }

    async fn get_following_redirects(&self, url: &str) -> Result<FetchedPage, FetchError> {
        let mut url = parse_url(url)?;
        let mut seen = HashSet::new();
        loop {
            check_url(&url, self.policy)?;
            let request = self.client()?.get(url.clone());
            let request = request
                .header(ACCEPT, ACCEPT_HEADER)
                .header(ACCEPT_ENCODING, body::ACCEPTED_ENCODINGS);
            let response = request
                .send()
                .await
                .map_err(|error| FetchError::from_reqwest(&error))?;
            let Some(next) = next_hop(&url, &response)? else {
                return self.read_page(url, response).await;
            };
            if !self.limits.can_leave_host && host_without_www(&next) != host_without_www(&url) {
                return Err(FetchError::OtherHost(truncated_line(next.as_str(), 2_000)));
            }
            seen.insert(url);
            if seen.contains(&next) {
                return Err(FetchError::RedirectLoop);
            }
            if seen.len() > self.limits.redirects {
                return Err(FetchError::TooManyRedirects(self.limits.redirects));
            }
            url = next;
        }
    }

    async fn read_page(&self, url: Url, response: Response) -> Result<FetchedPage, FetchError> {
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let header = response
            .headers()
            .get(CONTENT_TYPE)
            .map(|value| value.as_bytes());
        let content = ContentType::parse(&String::from_utf8_lossy(header.unwrap_or_default()));
        let unsupported = || FetchError::ContentType(truncated_line(&content.essence, 60));
        if content.kind().is_none() && !content.needs_sniffing() {
            return Err(unsupported());
        }
        let bytes = body::read(response, self.limits.body).await?;
        let kind = content.detect(&bytes).ok_or(FetchError::NotText)?;
        Ok(FetchedPage {
            url,
            kind,
            content_type: content.essence,
            bytes,
            charset: content.charset,
        })
    }
}

const ACCEPT_HEADER: &str = "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,application/xml;q=0.8,*/*;q=0.1";

/// Returns a client builder without redirects, proxy and cookies.
pub fn client_builder(connect: Duration) -> ClientBuilder {
    install_tls();
    Client::builder()
        .user_agent(concat!("lango/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
}

/// Like [`client_builder`], but resolves names only to addresses that `policy` allows. URLs with a
/// literal address bypass the resolver, so call [`check_url`] before each request.
pub fn guarded_client_builder(connect: Duration, policy: AddressPolicy) -> ClientBuilder {
    client_builder(connect).dns_resolver(Arc::new(GuardedResolver {
        policy,
        lookup: system_lookup,
    }))
}

/// Installs the process-wide TLS provider. Call it before creating a client.
pub fn install_tls() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| _ = rustls::crypto::ring::default_provider().install_default());
}

pub fn parse_url(url: &str) -> Result<Url, FetchError> {
    Url::parse(url.trim()).map_err(|_| FetchError::NotAUrl(truncated_line(url, 200)))
}

/// Checks that a request may be sent to `url`. Names are checked when they are resolved; literal
/// addresses are never resolved, so they are checked here.
pub fn check_url(url: &Url, policy: AddressPolicy) -> Result<(), FetchError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(FetchError::Scheme(truncated_line(url.scheme(), 40)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FetchError::Credentials);
    }
    let literal: Option<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(_)) => None,
        None => return Err(FetchError::NotAUrl(truncated_line(url.as_str(), 200))),
    };
    match literal {
        Some(address) if !policy.allows(address) => {
            Err(FetchError::PrivateAddress(address.to_string()))
        }
        _ => Ok(()),
    }
}

/// Returns the policy for a URL that the user typed: [`AddressPolicy::Anywhere`] if the URL itself
/// is on a private network, else [`AddressPolicy::Public`], wherever its redirects lead.
pub async fn policy_for_user_url(url: &str) -> AddressPolicy {
    let Ok(url) = parse_url(url) else {
        return AddressPolicy::Public;
    };
    let addresses: Vec<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) => match tokio::net::lookup_host((name, 0)).await {
            Ok(found) => found.map(|address| address.ip()).collect(),
            Err(_) => Vec::new(),
        },
        None => Vec::new(),
    };
    let is_private = addresses
        .into_iter()
        .any(|address| !AddressPolicy::Public.allows(address));
    if is_private {
        AddressPolicy::Anywhere
    } else {
        AddressPolicy::Public
    }
}

/// Returns the host without `www.`: both hosts count as the same.
fn host_without_www(url: &Url) -> Option<&str> {
    url.host_str()
        .map(|host| host.strip_prefix("www.").unwrap_or(host))
}

/// Returns the target of a redirect response, or none for other responses.
pub fn next_hop(from: &Url, response: &Response) -> Result<Option<Url>, FetchError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response
        .headers()
        .get(LOCATION)
        .and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    resolve_redirect(from, location.ok_or(FetchError::BadRedirect)?).map(Some)
}

fn resolve_redirect(from: &Url, location: &str) -> Result<Url, FetchError> {
    let mut next = from.join(location).map_err(|_| FetchError::BadRedirect)?;
    if from.scheme() == "https" && next.scheme() == "http" {
        return Err(FetchError::Downgrade);
    }
    next.set_fragment(None);
    Ok(next)
}

/// Looks up the current addresses of a name.
pub(crate) type LookupFn = fn(String) -> LookupFuture;
pub(crate) type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

pub(crate) fn system_lookup(name: String) -> LookupFuture {
    Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
}

/// A resolver that returns only addresses that the policy allows.
struct GuardedResolver {
    policy: AddressPolicy,
    lookup: LookupFn,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, lookup) = (self.policy, (self.lookup)(name.as_str().to_owned()));
        Box::pin(async move {
            let host = truncated_line(name.as_str(), 100);
            let Ok(found) = lookup.await else {
                return Err(FetchError::UnknownHost(host).into());
            };
            let allowed = filter_allowed(found, policy, host)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

pub(crate) fn filter_allowed(
    found: Vec<SocketAddr>,
    policy: AddressPolicy,
    host: String,
) -> Result<Vec<SocketAddr>, FetchError> {
    if found.is_empty() {
        return Err(FetchError::UnknownHost(host));
    }
    let allowed: Vec<_> = found
        .into_iter()
        .filter(|address| policy.allows(address.ip()))
        .collect();
    if allowed.is_empty() {
        Err(FetchError::PrivateAddress(host))
    } else {
        Ok(allowed)
    }
}

#[cfg(test)]
#[path = "guarded_client_tests.rs"]
mod tests;
