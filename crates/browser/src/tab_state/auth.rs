//! Answers to servers that ask for a user name and a password.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{EventReaction, text};
use crate::cdp::CdpSession;
use crate::credentials::SiteCredentials;

/// Most requests that are remembered as answered.
const MAX_ANSWERED: usize = 1_000;

/// The sites with stored credentials, and the requests that got them.
#[derive(Default)]
pub struct AuthAttempts {
    sites: Arc<[SiteCredentials]>,
    /// Requests that got credentials. A server that asks again refused them, and would ask for ever.
    answered: HashSet<(CdpSession, String)>,
    /// Hosts that refused their credentials.
    refused: HashSet<String>,
}

impl AuthAttempts {
    pub fn new(sites: Arc<[SiteCredentials]>) -> Self {
        Self {
            sites,
            ..Self::default()
        }
    }

    /// Returns true if a page shows what only the owner of the credentials may see.
    pub fn has_site(&self, url: &url::Url) -> bool {
        self.sites.iter().any(|site| site.is_for(url))
    }

    /// Returns true if there are credentials for a host, whether or not they may be sent.
    pub fn has_host(&self, url: &url::Url) -> bool {
        self.sites.iter().any(|site| site.has_host(url))
    }

    /// Returns true if a site refused its credentials.
    pub fn was_refused(&self, host: &str) -> bool {
        self.refused.contains(host)
    }

    /// Returns the command that intercepts requests to the sites. Requests to others are not touched.
    pub(super) fn set_up(&self, session: &CdpSession) -> Vec<EventReaction> {
        if self.sites.is_empty() {
            return Vec::new();
        }
        let patterns = self.sites.iter().flat_map(SiteCredentials::patterns);
        let patterns: Vec<Value> = patterns
            .map(|pattern| json!({ "urlPattern": pattern }))
            .collect();
        let params = json!({ "patterns": patterns, "handleAuthRequests": true });
        vec![EventReaction::new(Some(session), "Fetch.enable", params)]
    }

    /// Continues an intercepted request, with credentials if its server asked for them.
    pub(super) fn answer(
        &mut self,
        session: Option<&CdpSession>,
        method: &str,
        params: &Value,
    ) -> Vec<EventReaction> {
        let id = text(params, "requestId");
        let Some(session) = session else {
            return Vec::new();
        };
        if method == "Fetch.requestPaused" {
            let params = json!({ "requestId": id });
            let command = "Fetch.continueRequest";
            return vec![EventReaction::new(Some(session), command, params)];
        }
        let answer = self.credentials(session, id, &params["authChallenge"]);
        let answer = answer.unwrap_or_else(|| json!({ "response": "CancelAuth" }));
        let params = json!({ "requestId": id, "authChallengeResponse": answer });
        let command = "Fetch.continueWithAuth";
        vec![EventReaction::new(Some(session), command, params)]
    }

    fn credentials(&mut self, session: &CdpSession, id: &str, challenge: &Value) -> Option<Value> {
        if text(challenge, "source") == "Proxy" {
            return None;
        }
        let url = url::Url::parse(text(challenge, "origin")).ok()?;
        let site = self.sites.iter().find(|site| site.is_for(&url))?;
        if self.answered.len() >= MAX_ANSWERED {
            self.answered.clear();
        }
        let host = url.host_str().unwrap_or_default();
        if !self.answered.insert((session.clone(), id.to_owned())) {
            self.refused.insert(host.to_owned());
            return None;
        }
        self.refused.remove(host);
        let (user, password) = site.user_and_password();
        Some(json!({ "response": "ProvideCredentials", "username": user, "password": password }))
    }
}
