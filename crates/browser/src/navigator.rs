//! The browser of the process and the pages of each session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use lango_domain::event::TurnId;
use lango_domain::session::SessionKey;
use lango_net::{GuardedClient, check_url, parse_url};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use url::Url;

use crate::browser::{Browser, BrowserOptions};
use crate::error::{BrowserError, Result};
use crate::page::Page;
use crate::page::outline::{OUTLINE_TOKENS, OutlineRegion, PageOutline};
use crate::page::screenshot::ScreenshotOptions;
use crate::page::settle::ActionMark;
use crate::refs::{ElementRef, RefTable};
use crate::tab_state::{Tab, TabId};

/// Time to wait for the content of a page that is opened.
pub const NAVIGATION_LIMIT: Duration = Duration::from_secs(15);
/// Time for a page to become quiet after its content is there.
const SETTLE_LIMIT: Duration = Duration::from_millis(800);
/// Most tokens of the changes after an action.
const CHANGE_TOKENS: usize = 800;
/// Most sessions with open pages. The one that was not used for longest is closed.
const MAX_SESSIONS: usize = 16;

/// Returns the name and the bytes of a file that an agent wants to upload, or the reason why not.
pub type FileReader =
    Arc<dyn Fn(&str) -> std::result::Result<(String, Vec<u8>), String> + Send + Sync>;
/// Returns the text of a PDF file, or a reason why there is none.
pub type PdfTextReader = Arc<dyn Fn(Vec<u8>) -> std::result::Result<String, String> + Send + Sync>;

/// Everything that the navigator needs from outside.
#[derive(Clone)]
pub struct NavigatorParts {
    pub options: BrowserOptions,
    pub read_file: FileReader,
    pub read_pdf: PdfTextReader,
}

/// Starts the browser on first use, closes it when it is idle, and keeps the pages of each session.
pub struct Navigator {
    pub(crate) parts: NavigatorParts,
    pub(crate) guarded: GuardedClient,
    browser: tokio::sync::Mutex<Option<Arc<Browser>>>,
    sessions: Mutex<HashMap<SessionKey, SessionEntry>>,
    last_use: Mutex<Instant>,
    this: Weak<Self>,
}

struct SessionEntry {
    pages: Arc<tokio::sync::Mutex<SessionPages>>,
    used: Instant,
}

/// The pages of one session.
#[derive(Default)]
pub struct SessionPages {
    place: Option<SessionPlace>,
    pub current: Option<TabId>,
    refs: Arc<Mutex<RefTable>>,
    shown: Option<ShownOutline>,
    /// The searches of the last turn.
    pub searches: Option<(TurnId, u32)>,
}

struct SessionPlace {
    browser: Arc<Browser>,
    context: String,
}

/// The outline that the agent has seen last.
struct ShownOutline {
    tab: TabId,
    document: Option<Arc<str>>,
    lines: Vec<String>,
}

impl Navigator {
    pub fn new(parts: NavigatorParts) -> Arc<Self> {
        let limits = lango_net::FetchLimits {
            body: 20 * 1024 * 1024,
            ..lango_net::FetchLimits::default()
        };
        Arc::new_cyclic(|this| Self {
            guarded: GuardedClient::new(parts.options.policy, limits),
            parts,
            browser: tokio::sync::Mutex::default(),
            sessions: Mutex::default(),
            last_use: Mutex::new(Instant::now()),
            this: this.clone(),
        })
    }

    /// Returns the running browser, or starts one.
    pub async fn browser(&self) -> Result<Arc<Browser>> {
        self.touch();
        let mut running = self.browser.lock().await;
        if let Some(browser) = running.as_ref().filter(|browser| !browser.is_closed()) {
            return Ok(Arc::clone(browser));
        }
        let browser = Arc::new(Browser::start(&self.parts.options).await?);
        *running = Some(Arc::clone(&browser));
        tokio::spawn(close_when_idle(self.this.clone(), self.idle_time()));
        Ok(browser)
    }

    /// Closes the browser and forgets the pages of all sessions.
    pub async fn close(&self) {
        let browser = self.browser.lock().await.take();
        self.lock_sessions().clear();
        drop(browser);
    }

    /// Waits for the pages of a session. Calls of one session run one after another.
    pub async fn session(&self, key: &SessionKey) -> OwnedMutexGuard<SessionPages> {
        self.touch();
        let pages = {
            let mut sessions = self.lock_sessions();
            let is_full = !sessions.contains_key(key) && sessions.len() >= MAX_SESSIONS;
            let oldest = sessions.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()).filter(|_| is_full) {
                sessions.remove(&oldest);
            }
            let entry = sessions.entry(key.clone()).or_insert_with(|| SessionEntry {
                pages: Arc::default(),
                used: Instant::now(),
            });
            entry.used = Instant::now();
            Arc::clone(&entry.pages)
        };
        pages.lock_owned().await
    }

    fn idle_time(&self) -> Duration {
        Duration::from_secs(60) * self.parts.options.settings.idle_minutes.get()
    }

    fn touch(&self) {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn lock_sessions(&self) -> std::sync::MutexGuard<'_, HashMap<SessionKey, SessionEntry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens an address and returns the outline of its page, for a command of the user.
    pub async fn outline(&self, key: &SessionKey, address: &str) -> Result<String> {
        let url = self.check_address(address)?;
        let outline = self.session(key).await.open(self, &url).await?;
        Ok(outline.format(0, usize::MAX, OUTLINE_TOKENS))
    }

    /// Opens an address and takes a picture of its page, for a command of the user.
    pub async fn picture(
        &self,
        key: &SessionKey,
        address: &str,
        options: ScreenshotOptions,
    ) -> Result<Vec<u8>> {
        let url = self.check_address(address)?;
        let mut session = self.session(key).await;
        session.open(self, &url).await?;
        session.page()?.screenshot(options).await
    }

    /// Returns the host of the document that a reference belongs to, or of the page that is open in a session;
    /// empty if there is none. The session may be in use.
    pub fn current_host(&self, key: &SessionKey, element: Option<ElementRef>) -> String {
        let pages = self
            .lock_sessions()
            .get(key)
            .map(|entry| Arc::clone(&entry.pages));
        let page = pages.and_then(|pages| pages.try_lock().ok()?.page().ok());
        let host = page.and_then(|page| match element {
            Some(element) => page.host_of(element).ok()?,
            None => Url::parse(&page.url()).ok()?.host_str().map(str::to_owned),
        });
        host.unwrap_or_default()
    }

    /// Checks an address before it is opened. The proxy checks it again when it connects.
    pub fn check_address(&self, text: &str) -> Result<Url> {
        let url = parse_page_url(text)?;
        check_url(&url, self.parts.options.policy)?;
        let host = url.host_str().unwrap_or_default();
        if !self.parts.options.settings.allows_host(host) {
            return Err(lango_net::FetchError::HostNotAllowed(host.to_owned()).into());
        }
        Ok(url)
    }
}

async fn close_when_idle(navigator: Weak<Navigator>, idle: Duration) {
    loop {
        let Some(last) = navigator.upgrade().map(|navigator| {
            *navigator
                .last_use
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        }) else {
            return;
        };
        tokio::time::sleep_until(last + idle).await;
        let Some(navigator) = navigator.upgrade() else {
            return;
        };
        let last = *navigator
            .last_use
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= idle {
            return navigator.close().await;
        }
    }
}

/// Parses an address; `https://` may be missing.
fn parse_page_url(text: &str) -> Result<Url> {
    let text = text.trim().trim_start_matches('<').trim_end_matches('>');
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let is_bare = host.contains('.')
        && !host.starts_with('.')
        && !text.contains("://")
        && !host.contains(char::is_whitespace);
    let url = if is_bare {
        parse_url(&format!("https://{text}"))
    } else {
        parse_url(text)
    };
    Ok(url?)
}

impl Drop for SessionPages {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            place.browser.close_context(&place.context);
        }
    }
}

impl SessionPages {
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
            self.place = Some(SessionPlace { browser, context });
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
        page.check_usable()?;
        let mark = page.mark();
        page.navigate(url, NAVIGATION_LIMIT).await?;
        page.settle(&mark, SETTLE_LIMIT).await?;
        self.look(&page).await
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
            _ => text += &outline.format(0, usize::MAX, OUTLINE_TOKENS),
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
        popup.settle(&popup.mark(), SETTLE_LIMIT).await?;
        Ok(Some(popup))
    }
}
