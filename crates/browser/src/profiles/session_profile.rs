//! The profile of a session that runs.

use lango_domain::event::Principal;
use serde_json::{Value, json};

use super::{Cookie, ProfileName, ProfileStore};
use crate::browser::Browser;
use crate::error::{BrowserError, Result};
use crate::navigator::Navigator;

/// The profile that a session uses, with the cookies that it knows of.
pub struct SessionProfile {
    store: ProfileStore,
    principal: Principal,
    name: ProfileName,
    known: Vec<Cookie>,
}

impl SessionProfile {
    /// Returns the profile of the settings, if there is one.
    pub fn open(navigator: &Navigator, principal: &Principal) -> Result<Option<Self>> {
        let Some(name) = &navigator.parts.options.settings.profile else {
            return Ok(None);
        };
        let unusable =
            |reason: String| BrowserError::Unavailable(format!("browser.profile: {reason}"));
        let name = ProfileName::parse(name).map_err(unusable)?;
        let store = navigator.storage.profiles.clone();
        let store =
            store.ok_or_else(|| unusable("there is no folder to keep cookies in".to_owned()))?;
        Ok(Some(Self {
            store,
            principal: principal.clone(),
            name,
            known: Vec::new(),
        }))
    }

    pub fn name(&self) -> String {
        self.name.as_str().to_owned()
    }

    /// Puts the stored cookies into the context of a session.
    pub async fn load(&mut self, browser: &Browser, context: &str) -> Result<()> {
        let stored = self.store.load(&self.principal, &self.name).map_err(|error| {
            BrowserError::Unavailable(format!(
                "the profile {} cannot be read ({error}); `lango browser profile remove {0}` removes it",
                self.name.as_str()
            ))
        })?;
        for cookie in &stored {
            let params = json!({ "browserContextId": context, "cookies": [cookie.to_browser()] });
            // A cookie that the browser no longer accepts is lost; the others are not.
            if let Err(error) = browser.cdp.call(None, "Storage.setCookies", params).await {
                tracing::debug!("a cookie of the profile is not used: {error}");
            }
        }
        self.known = self.current(browser, context).await?;
        Ok(())
    }

    /// Writes what changed since the last time.
    pub async fn save(&mut self, browser: &Browser, context: &str) -> Result<()> {
        let now = self.current(browser, context).await?;
        if now == self.known {
            return Ok(());
        }
        let (store, principal, name) = (
            self.store.clone(),
            self.principal.clone(),
            self.name.clone(),
        );
        let (before, after) = (std::mem::take(&mut self.known), now.clone());
        let write = move || store.add_changes(&principal, &name, (&before, &after));
        let written = tokio::task::spawn_blocking(write).await;
        self.known = now;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(BrowserError::Unavailable(error.to_string())),
            Err(_panic) => Err(BrowserError::Unavailable("the write failed".to_owned())),
        }
    }

    async fn current(&self, browser: &Browser, context: &str) -> Result<Vec<Cookie>> {
        let params = json!({ "browserContextId": context });
        let found = browser.cdp.call(None, "Storage.getCookies", params).await?;
        let cookies = found["cookies"].as_array().map(Vec::as_slice);
        let mut cookies: Vec<Cookie> = cookies
            .unwrap_or_default()
            .iter()
            .map(Cookie::from_browser)
            .collect();
        cookies.sort_by_key(|cookie| Value::to_string(cookie.to_browser()));
        Ok(cookies)
    }
}
