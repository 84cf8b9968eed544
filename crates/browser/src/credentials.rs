//! User names and passwords for sites that ask for them before they show a page.

use std::collections::BTreeMap;
use std::net::IpAddr;

use lango_domain::secret::Secret;
use url::{Host, Url};

/// The user name and the password of one site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteCredentials {
    /// The host, with a port if the setting names one.
    site: String,
    /// `user:password`.
    value: Secret,
}

impl SiteCredentials {
    pub fn from_settings(settings: &BTreeMap<String, Secret>) -> Vec<Self> {
        let sites = settings.iter().map(|(site, value)| Self {
            site: site.trim().to_lowercase(),
            value: value.clone(),
        });
        sites.collect()
    }

    /// Returns true if the credentials may be sent to an address: its host is the site, and no one on the
    /// way can read them.
    pub fn is_for(&self, url: &Url) -> bool {
        self.has_host(url) && (url.scheme() == "https" || is_own_network(url))
    }

    /// Returns true if the host of an address is the site.
    pub fn has_host(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().to_lowercase();
        let port = url.port_or_known_default().unwrap_or_default();
        self.site == host || self.site == format!("{host}:{port}")
    }

    /// Returns the patterns of the addresses whose requests may be asked for credentials.
    pub fn patterns(&self) -> Vec<String> {
        match self.site.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => {
                vec![format!("*://{}/*", self.site)]
            }
            _ => vec![
                format!("*://{}/*", self.site),
                format!("*://{}:*/*", self.site),
            ],
        }
    }

    pub fn user_and_password(&self) -> (&str, &str) {
        let value = self.value.expose();
        value.split_once(':').unwrap_or((value, ""))
    }
}

/// Returns true for addresses of this machine and of private networks.
fn is_own_network(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => lango_net::is_private_address(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => lango_net::is_private_address(IpAddr::V6(address)),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_sent_to_their_site_only() {
        let value = Secret::new("ann:a:b");
        let site = |site: &str| SiteCredentials {
            site: site.to_owned(),
            value: value.clone(),
        };
        assert_eq!(site("a").user_and_password(), ("ann", "a:b"));
        for (configured, url, is_sent) in [
            ("a.example", "https://a.example/x", true),
            ("a.example", "https://A.example:8443/", true),
            ("a.example:8443", "https://a.example/", false),
            ("a.example:8443", "https://a.example:8443/", true),
            ("a.example", "http://a.example/", false),
            ("a.example", "https://x.a.example/", false),
            ("a.example", "https://a.example.evil.org/", false),
            ("a.example", "https://evil.org/a.example/", false),
            ("127.0.0.1", "http://127.0.0.1:80/", true),
            ("192.168.1.1", "http://192.168.1.1/", true),
            ("8.8.8.8", "http://8.8.8.8/", false),
            ("[::1]:8080", "http://[::1]:8080/", true),
            ("localhost", "http://localhost:3000/", true),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(site(configured).is_for(&url), is_sent, "{configured} {url}");
        }
    }
}
