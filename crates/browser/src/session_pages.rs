//! The pages of one session: its context, its tabs, and what its agent has seen of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lango_domain::event::{Principal, TurnId};
use lango_net::EndpointGrant;
use serde_json::json;
use url::Url;

use crate::browser::Browser;
use crate::downloads::describe_offer;
use crate::error::{BrowserError, Result};
use crate::navigator::{NAVIGATION_LIMIT, Navigator, typed_endpoint};
use crate::page::Page;
use crate::page::outline::{OUTLINE_TOKENS, OutlineRegion, PageOutline};
use crate::page::settle::ActionMark;
use crate::profiles::SessionProfile;
use crate::refs::RefTable;
use crate::tab_state::{Tab, TabId};

/// Time for a page to become quiet after its content is there.
const SETTLE_LIMIT: Duration = Duration::from_millis(800);
/// Most tokens of the changes after an action.
const CHANGE_TOKENS: usize = 800;

/// The pages of one session.
pub struct SessionPages {
    principal: Principal,
    place: Option<SessionPlace>,
    pub current: Option<TabId>,
    refs: Arc<Mutex<RefTable>>,
    /// The addresses that the user typed in this session.
    pub typed_addresses: Vec<String>,
    shown: Option<ShownOutline>,
    /// The searches of the last turn.
    pub searches: Option<(TurnId, u32)>,
}

pub(crate) struct SessionPlace {
    pub browser: Arc<Browser>,
    pub context: String,
    profile: Option<SessionProfile>,
    /// The private address that the user typed and that is open. Opening another address ends it, so that no
    /// other site can use it.
    private_endpoint: Option<EndpointGrant>,
}

/// The outline that the agent has seen last.
struct ShownOutline {
    tab: TabId,
    document: Option<Arc<str>>,
    lines: Vec<String>,
}

impl Drop for SessionPages {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            place.browser.close_context(&place.context);
        }
    }
}

impl SessionPages {
    pub fn new(principal: &Principal) -> Self {
        Self {
            principal: principal.clone(),
            place: None,
            current: None,
            refs: Arc::default(),
            typed_addresses: Vec::new(),
            shown: None,
            searches: None,
        }
    }

    pub(crate) fn place(&self) -> Result<&SessionPlace> {
        self.place.as_ref().ok_or(BrowserError::NoPage)
    }

    /// Returns the page that is open.
    pub fn page(&self) -> Result<Page> {
        let place = self.place.as_ref().ok_or(BrowserError::NoPage)?;
        if place.browser.is_closed() {
            return Err(BrowserError::Closed);
        }
        let tab = self.current.clone().ok_or(BrowserError::NoPage)?;
        let page = Page {
            browser: Arc::clone(&place.browser),
            tab,
            refs: Arc::clone(&self.refs),
            profile: place.profile.as_ref().map(SessionProfile::name),
        };
        page.with_tab(|_| ())?;
        Ok(page)
    }

    /// Returns the page that is open, or an empty one.
    pub async fn page_or_new(&mut self, navigator: &Navigator) -> Result<Page> {
        if let Ok(page) = self.page() {
            return Ok(page);
        }
        let is_running = self
            .place
            .as_ref()
            .is_some_and(|place| !place.browser.is_closed());
        if !is_running {
            let browser = navigator.browser().await?;
            let context = browser.create_context().await?;
            let profile = SessionProfile::open(navigator, &self.principal)?;
            let mut place = SessionPlace {
                browser,
                context,
                profile,
                private_endpoint: None,
            };
            if let Some(profile) = &mut place.profile {
                profile.load(&place.browser, &place.context).await?;
            }
            self.place = Some(place);
        }
        self.open_tab().await?;
        self.page()
    }

    /// Opens an empty tab and makes it the current one.
    pub async fn open_tab(&mut self) -> Result<()> {
        let place = self.place.as_ref().ok_or(BrowserError::NoPage)?;
        self.current = Some(place.browser.create_tab(&place.context).await?);
        Ok(())
    }

    /// Reads the tabs of the session, oldest first.
    pub fn with_tabs<T>(&self, read: impl FnOnce(Vec<&Tab>) -> T) -> Result<T> {
        let place = self.place.as_ref().ok_or(BrowserError::NoPage)?;
        Ok(read(place.browser.tabs.lock().tabs_of(&place.context)))
    }

    /// Opens an address in the current tab and returns its outline.
    pub async fn open(&mut self, navigator: &Navigator, url: &Url) -> Result<PageOutline> {
        let page = self.page_or_new(navigator).await?;
        let page = self.replace_crashed(page).await?;
        page.check_usable()?;
        self.grant_typed(url);
        let mark = page.mark();
        page.navigate(url, NAVIGATION_LIMIT).await?;
        page.settle(&mark, SETTLE_LIMIT).await?;
        self.keep_cookies().await;
        self.look(&page).await
    }

    /// Lets the page reach a private address that the user typed, and no other.
    fn grant_typed(&mut self, url: &Url) {
        let endpoint = typed_endpoint(url, &self.typed_addresses);
        if let Some(place) = &mut self.place {
            let proxy = &place.browser.proxy;
            place.private_endpoint = endpoint.map(|(host, port)| proxy.grant_endpoint(&host, port));
        }
    }

    /// Replaces a tab whose page crashed by a new one.
    async fn replace_crashed(&mut self, page: Page) -> Result<Page> {
        if !page.with_tab(|tab| tab.has_crashed)? {
            return Ok(page);
        }
        self.open_tab().await?;
        let params = json!({ "targetId": &*page.tab });
        page.browser.cdp.send(None, "Target.closeTarget", params);
        self.page()
    }

    /// Writes the cookies of a named profile. A failure does not stop the work.
    async fn keep_cookies(&mut self) {
        let Some(place) = &mut self.place else {
            return;
        };
        let (browser, context) = (&place.browser, &place.context);
        if let Some(profile) = &mut place.profile
            && let Err(error) = profile.save(browser, context).await
        {
            tracing::warn!("the cookies of the browser's profile are not kept: {error}");
        }
    }

    /// Takes what happened apart from the page itself: alerts, refused files, an error of the server.
    pub async fn take_notes(&self) -> Result<String> {
        let page = self.page()?;
        let mut text = String::new();
        for notice in page.take_notices() {
            text += &format!("{notice}\n");
        }
        for offer in self.take_offers().await? {
            text += &describe_offer(&offer);
        }
        Ok(text + &page.status_note())
    }

    /// Returns the outline of what is visible, and remembers it for [`SessionPages::describe_changes`].
    pub async fn look(&mut self, page: &Page) -> Result<PageOutline> {
        let outline = page.outline(OutlineRegion::Viewport).await?;
        self.shown = Some(ShownOutline {
            tab: page.tab.clone(),
            document: page.document(),
            lines: outline.lines.clone(),
        });
        Ok(outline)
    }

    /// Waits for the effects of an action and describes them: only what changed, or the new page.
    pub async fn describe_changes(
        &mut self,
        page: &Page,
        mark: &ActionMark,
        limit: Duration,
    ) -> Result<String> {
        match page.settle(mark, limit).await {
            // The action closed the tab.
            Err(BrowserError::NoPage) => return self.describe_closed_tab(),
            result => result?,
        }
        let mut text = String::new();
        for notice in page.take_notices() {
            text += &format!("{notice}\n");
        }
        let popup = self.follow_popup(page, mark).await?;
        for offer in self.take_offers().await? {
            text += &describe_offer(&offer);
        }
        self.keep_cookies().await;
        let page = match popup {
            Some(popup) => {
                let number = popup.with_tab(|tab| tab.number)?;
                text += &format!("a new tab opened, which is now the current one: tab {number}\n");
                popup
            }
            None => page.clone(),
        };
        if let Err(BrowserError::DialogOpen(dialog)) = page.check_usable() {
            return Ok(text + &dialog + "\n");
        }
        if page.with_tab(|tab| tab.chooser.is_some())? {
            text += "a file chooser is open: give it a file with the action upload, or go on without one\n";
        }
        let before = self.shown.take();
        let outline = self.look(&page).await?;
        match before {
            Some(before) if before.tab == page.tab && before.document == page.document() => {
                text += &outline.format_changes(&before.lines, CHANGE_TOKENS);
            }
            _ => {
                text += &page.status_note();
                text += &outline.format(0, usize::MAX, OUTLINE_TOKENS);
            }
        }
        Ok(text)
    }

    fn describe_closed_tab(&mut self) -> Result<String> {
        let left = self.with_tabs(|tabs| tabs.last().map(|tab| (tab.id.clone(), tab.number)))?;
        let (current, text) = match left {
            Some((id, number)) => (
                Some(id),
                format!("the tab was closed; tab {number} is the current one\n"),
            ),
            None => (None, "the last tab was closed\n".to_owned()),
        };
        self.current = current;
        Ok(text)
    }

    /// Makes a tab the current one that the page opened since the mark.
    async fn follow_popup(&mut self, page: &Page, mark: &ActionMark) -> Result<Option<Page>> {
        let opened = self.with_tabs(|tabs| {
            let mut opened = tabs.iter().rev();
            let found = opened
                .find(|tab| tab.opener.as_ref() == Some(&page.tab) && tab.opened >= mark.start());
            found.map(|tab| tab.id.clone())
        })?;
        let Some(tab) = opened else {
            return Ok(None);
        };
        self.current = Some(tab);
        let popup = self.page()?;
        popup.wait_until_loaded(Duration::from_secs(5)).await;
        match popup.settle(&popup.mark(), SETTLE_LIMIT).await {
            // A tab that only starts a download closes itself.
            Err(BrowserError::NoPage) => {
                self.current = Some(page.tab.clone());
                Ok(None)
            }
            result => result.map(|()| Some(popup)),
        }
    }
}
