//! The browser of the process and the pages of each session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use lango_domain::ToolContext;
use lango_domain::session::SessionKey;
use lango_net::{check_url, parse_url};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use url::Url;

use crate::browser::{Browser, BrowserOptions};
use crate::error::Result;
use crate::page::outline::OUTLINE_TOKENS;
use crate::page::screenshot::ScreenshotOptions;
use crate::profiles::ProfileStore;
use crate::refs::ElementRef;
use crate::session_pages::SessionPages;

/// Time to wait for the content of a page that is opened.
pub const NAVIGATION_LIMIT: Duration = Duration::from_secs(15);
/// Most sessions with open pages. The one that was not used for longest is closed.
const MAX_SESSIONS: usize = 16;

/// Returns the name and the bytes of a file that an agent wants to upload, or the reason why not.
pub type FileReader =
    Arc<dyn Fn(&str) -> std::result::Result<(String, Vec<u8>), String> + Send + Sync>;
/// Returns the text of a PDF file, or a reason why there is none.
pub type PdfTextReader = Arc<dyn Fn(Vec<u8>) -> std::result::Result<String, String> + Send + Sync>;

/// Saves a new file in the workspace under a path, or under a similar one if there is a file already.
/// Returns the path, or the reason why not.
pub type FileSaver =
    Arc<dyn Fn(&ToolContext, &str, Vec<u8>) -> std::result::Result<String, String> + Send + Sync>;

/// The places where the navigator may keep files and cookies.
#[derive(Clone, Default)]
pub struct NavigatorStorage {
    /// Absent if no files can be saved.
    pub save_file: Option<FileSaver>,
    /// Absent if there is no folder for profiles.
    pub profiles: Option<ProfileStore>,
}

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
    pub(crate) storage: NavigatorStorage,
    browser: tokio::sync::Mutex<Option<Arc<Browser>>>,
    sessions: Mutex<HashMap<SessionKey, SessionEntry>>,
    last_use: Mutex<Instant>,
    this: Weak<Self>,
}

struct SessionEntry {
    pages: Arc<tokio::sync::Mutex<SessionPages>>,
    used: Instant,
}

impl Navigator {
    /// Returns a navigator that keeps nothing.
    pub fn new(parts: NavigatorParts) -> Arc<Self> {
        Self::with_storage(parts, NavigatorStorage::default())
    }

    pub fn with_storage(parts: NavigatorParts, storage: NavigatorStorage) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            parts,
            storage,
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
                pages: Arc::new(tokio::sync::Mutex::new(SessionPages::new(&key.principal))),
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
        let url = self.check_address(address, &[])?;
        let mut session = self.session(key).await;
        let outline = session.open(self, &url).await?;
        let notes = session.take_notes().await?;
        Ok(notes + &outline.format(0, usize::MAX, OUTLINE_TOKENS))
    }

    /// Opens an address and takes a picture of its page, for a command of the user.
    pub async fn picture(
        &self,
        key: &SessionKey,
        address: &str,
        options: ScreenshotOptions,
    ) -> Result<Vec<u8>> {
        let url = self.check_address(address, &[])?;
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

    /// Checks an address before it is opened. The proxy checks it again when it connects. A private address
    /// must be among those that the user typed.
    pub fn check_address(&self, text: &str, typed: &[String]) -> Result<Url> {
        let url = parse_page_url(text)?;
        let policy = match typed_endpoint(&url, typed) {
            Some(_) => lango_net::AddressPolicy::Anywhere,
            None => self.parts.options.policy,
        };
        check_url(&url, policy)?;
        let host = url.host_str().unwrap_or_default();
        if !self.parts.options.settings.allows_host(host) {
            return Err(lango_net::FetchError::HostNotAllowed(host.to_owned()).into());
        }
        Ok(url)
    }
}

/// Returns host and port of an address on this machine or the local network that the user typed. Names count
/// only if no one else decides what they mean: the owner of any other name could point it to this machine.
pub(crate) fn typed_endpoint(url: &Url, typed: &[String]) -> Option<(String, u16)> {
    let endpoint = |url: &Url| {
        let host = url.host()?;
        let is_fixed = !matches!(host, url::Host::Domain(name) if name != "localhost");
        is_fixed.then_some((host.to_string(), url.port_or_known_default()?))
    };
    let wanted = endpoint(url)?;
    let typed = typed
        .iter()
        .filter_map(|text| endpoint(&parse_page_url(text).ok()?));
    typed.into_iter().find(|typed| *typed == wanted)
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
