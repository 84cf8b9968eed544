//! Opening addresses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::Page;
use crate::error::{BrowserError, Result};

impl Page {
    /// Opens an address and waits until its content is there, or until the deadline. Returns true if it is
    /// no page but a file to save.
    pub async fn navigate(&self, url: &url::Url, limit: Duration) -> Result<bool> {
        let host = url.host_str().unwrap_or_default();
        self.browser.proxy.expect_host(host);
        let (start, before) = (Instant::now(), self.document());
        let params = json!({ "url": url.as_str() });
        let session = self.with_tab(|tab| tab.session.clone())?;
        let method = "Page.navigate";
        let cdp = &self.browser.cdp;
        let call = cdp.call_within(Some(&session), method, params, limit);
        let response = match self.unless_dialog(call).await {
            Err(BrowserError::Unresponsive(_)) => {
                self.stop_loading();
                return Err(self
                    .failure(url, start)
                    .unwrap_or(BrowserError::Unresponsive(limit)));
            }
            response => response?,
        };
        if let Some(error) = response["errorText"].as_str() {
            let failure = self.failure(url, start);
            return match error {
                "net::ERR_ABORTED" => Ok(response["isDownload"] == true),
                _ => Err(failure.unwrap_or_else(|| {
                    BrowserError::action(format!("{url} cannot be opened: {error}"))
                })),
            };
        }
        self.wait_for_content(before, start + limit).await;
        // The proxy answers a refused request with a page of its own.
        match self.failure(url, start) {
            Some(error) => Err(error),
            None => Ok(false),
        }
    }

    fn failure(&self, url: &url::Url, since: Instant) -> Option<BrowserError> {
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        let failure = self.browser.proxy.failure_since(host, port, since);
        failure.map(BrowserError::Network)
    }

    pub fn stop_loading(&self) {
        if let Ok(session) = self.with_tab(|tab| tab.session.clone()) {
            self.browser
                .cdp
                .send(Some(&session), "Page.stopLoading", json!({}));
        }
    }

    /// Waits until the main frame has another document than before, with its content.
    pub(super) async fn wait_for_content(&self, before: Option<Arc<str>>, deadline: Instant) {
        let is_there = |tabs: &crate::tab_state::TabRegistry| {
            let Some(tab) = tabs.tab(&self.tab) else {
                return Some(());
            };
            let frame = tab.main_frame()?;
            let is_other = before.as_ref() != Some(&frame.document) || !frame.is_navigating;
            (tab.dialog.is_some() || tab.has_crashed || (is_other && frame.is_ready()))
                .then_some(())
        };
        let waited = self.browser.tabs.wait_until(deadline, is_there).await;
        if waited.is_none() {
            self.stop_loading();
        }
    }
}
