//! A running browser: its process, its proxy, and the tabs of each context.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lango_net::{AddressPolicy, EgressLimits, EgressProxy, EgressRules};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::cdp::{CdpClient, CdpEvent};
use crate::credentials::SiteCredentials;
use crate::error::{BrowserError, Result};
use crate::launch::{LaunchOptions, launch};
use crate::locate::find_browser;
use crate::settings::BrowserSettings;
use crate::tab_state::{AuthAttempts, Tab, TabId, TabRegistry};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const PROFILE_PREFIX: &str = "lango-browser-";

/// Everything that a browser is started from.
#[derive(Clone)]
pub struct BrowserOptions {
    pub settings: BrowserSettings,
    pub policy: AddressPolicy,
    /// `PATH`, and the variables of the display.
    pub variables: Vec<(OsString, OsString)>,
    /// The folder for temporary files.
    pub temp_folder: PathBuf,
}

impl BrowserOptions {
    fn variable(&self, name: &str) -> Option<&OsString> {
        let mut variables = self.variables.iter();
        variables
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    pub fn find_browser(&self) -> Result<crate::locate::InstalledBrowser> {
        find_browser(
            &self.settings,
            self.variable("PATH").map(|path| path.as_ref()),
        )
    }

    /// Returns the variables that a browser with windows needs.
    fn display_variables(&self) -> Vec<(OsString, OsString)> {
        const NAMES: [&str; 4] = [
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "XAUTHORITY",
            "XDG_RUNTIME_DIR",
        ];
        let is_wanted = |name: &OsString| NAMES.iter().any(|wanted| name == wanted);
        let mut variables = self.variables.clone();
        variables.retain(|(name, _)| !self.settings.headless && is_wanted(name));
        variables
    }
}

/// A running browser. It ends when this is dropped.
pub struct Browser {
    pub cdp: CdpClient,
    pub proxy: EgressProxy,
    pub tabs: SharedTabs,
    /// The version, such as `HeadlessChrome/148.0`.
    pub version: String,
    /// The folder for files that are given to pages.
    pub uploads: PathBuf,
    /// The folder for files of pages, until they are complete.
    pub downloads: PathBuf,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.cdp.close();
    }
}

impl Browser {
    pub async fn start(options: &BrowserOptions) -> Result<Self> {
        let installed = options.find_browser()?;
        let failed = |error: std::io::Error| {
            BrowserError::Unavailable(format!("cannot start the browser: {error}"))
        };
        let settings = options.settings.clone();
        let rules = EgressRules {
            policy: options.policy,
            allows_host: Arc::new(move |host| settings.allows_host(host)),
        };
        let proxy = EgressProxy::start(rules, EgressLimits::default())
            .await
            .map_err(failed)?;
        remove_old_profiles(&options.temp_folder);
        let profile = tempfile::Builder::new()
            .prefix(&format!("{PROFILE_PREFIX}{}-", std::process::id()))
            .tempdir_in(&options.temp_folder)
            .map_err(failed)?;
        let uploads = profile.path().join("uploads");
        let downloads = profile.path().join("downloads");
        for folder in [&uploads, &downloads] {
            std::fs::create_dir(folder).map_err(failed)?;
        }
        let pipes = launch(&LaunchOptions {
            browser: &installed,
            is_headless: options.settings.headless,
            proxy: proxy.address(),
            profile: profile.path(),
            variables: options.display_variables(),
        })?;
        let (cdp, events) = CdpClient::connect(pipes.messages, pipes.commands);
        let tabs = SharedTabs::default();
        let sites = SiteCredentials::from_settings(&options.settings.credentials);
        tabs.update(|tabs| tabs.auth = AuthAttempts::new(sites.into()));
        tokio::spawn(follow_events(cdp.clone(), tabs.clone(), events));
        let version = connect(&cdp).await.map_err(|error| {
            let path = installed.path.display();
            BrowserError::Unavailable(format!("{path} did not start: {error}"))
        })?;
        Ok(Self {
            cdp,
            proxy,
            tabs,
            version,
            uploads,
            downloads,
            _profile: profile,
        })
    }

    /// Creates a context: cookies, storage and tabs that no other context sees.
    pub async fn create_context(&self) -> Result<String> {
        let created = self
            .cdp
            .call(None, "Target.createBrowserContext", json!({}))
            .await?;
        let context = created["browserContextId"].as_str().unwrap_or_default();
        self.tabs.update(|tabs| tabs.add_context(context));
        self.deny_downloads(context).await?;
        Ok(context.to_owned())
    }

    /// Lets a context save files in a folder, under the protocol's ids as names.
    pub async fn allow_downloads(&self, context: &str, folder: &Path) -> Result<()> {
        let params = json!({
            "behavior": "allowAndName", "downloadPath": folder, "browserContextId": context, "eventsEnabled": true,
        });
        let method = "Browser.setDownloadBehavior";
        self.cdp.call(None, method, params).await.map(drop)
    }

    pub async fn deny_downloads(&self, context: &str) -> Result<()> {
        let params =
            json!({ "behavior": "deny", "browserContextId": context, "eventsEnabled": true });
        let method = "Browser.setDownloadBehavior";
        self.cdp.call(None, method, params).await.map(drop)
    }

    pub fn close_context(&self, context: &str) {
        self.tabs.update(|tabs| tabs.remove_context(context));
        let params = json!({ "browserContextId": context });
        self.cdp.send(None, "Target.disposeBrowserContext", params);
    }

    /// Opens an empty tab.
    pub async fn create_tab(&self, context: &str) -> Result<TabId> {
        let params = json!({ "url": "about:blank", "browserContextId": context });
        let created = self.cdp.call(None, "Target.createTarget", params).await?;
        let id: TabId = created["targetId"].as_str().unwrap_or_default().into();
        let is_known = |tabs: &TabRegistry| {
            let frame = tabs.tab(&id)?.main_frame()?;
            (!frame.document.is_empty()).then_some(())
        };
        match self.tabs.wait(START_TIMEOUT, is_known).await {
            Some(()) => Ok(id.clone()),
            None => Err(BrowserError::Unresponsive(START_TIMEOUT)),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.cdp.is_closed()
    }
}

async fn connect(cdp: &CdpClient) -> Result<String> {
    let version = cdp
        .call_within(None, "Browser.getVersion", json!({}), START_TIMEOUT)
        .await?;
    let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
    cdp.call(None, "Target.setAutoAttach", attach).await?;
    Ok(version["product"].as_str().unwrap_or_default().to_owned())
}

/// Removes the folders of processes that were killed.
fn remove_old_profiles(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name
            .strip_prefix(PROFILE_PREFIX)
            .and_then(|rest| rest.split('-').next());
        let is_dead = process
            .is_some_and(|id| id.parse::<u32>().is_ok() && !Path::new("/proc").join(id).exists());
        if is_dead && Path::new("/proc/self").exists() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The tabs, shared between the task that follows events and the calls that wait for them.
#[derive(Clone)]
pub struct SharedTabs {
    registry: Arc<Mutex<TabRegistry>>,
    changes: watch::Sender<u64>,
}

impl Default for SharedTabs {
    fn default() -> Self {
        Self {
            registry: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl SharedTabs {
    pub fn lock(&self) -> MutexGuard<'_, TabRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn update<T>(&self, change: impl FnOnce(&mut TabRegistry) -> T) -> T {
        let result = change(&mut self.lock());
        self.changes.send_modify(|count| *count += 1);
        result
    }

    /// Reads a tab.
    pub fn with_tab<T>(&self, id: &str, read: impl FnOnce(&Tab) -> T) -> Result<T> {
        self.lock().tab(id).map(read).ok_or(BrowserError::NoPage)
    }

    /// Waits until `find` returns a value, at most for `limit`.
    pub async fn wait<T>(
        &self,
        limit: Duration,
        find: impl Fn(&TabRegistry) -> Option<T>,
    ) -> Option<T> {
        self.wait_until(Instant::now() + limit, find).await
    }

    pub async fn wait_until<T>(
        &self,
        deadline: Instant,
        find: impl Fn(&TabRegistry) -> Option<T>,
    ) -> Option<T> {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(found) = find(&self.lock()) {
                return Some(found);
            }
            let changed = tokio::time::timeout_at(deadline, changes.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                return find(&self.lock());
            }
        }
    }
}

/// Applies events until the browser ends.
async fn follow_events(
    cdp: CdpClient,
    tabs: SharedTabs,
    mut events: mpsc::UnboundedReceiver<CdpEvent>,
) {
    while let Some(event) = events.recv().await {
        let reactions = tabs.update(|tabs| tabs.apply(&event));
        for reaction in reactions {
            let session = reaction.session.as_ref();
            if reaction.method != "Page.getFrameTree" {
                cdp.send(session, reaction.method, reaction.params);
                continue;
            }
            let started = cdp.start(session, reaction.method, reaction.params);
            if let (Ok((_, response)), Some(session)) = (started, reaction.session) {
                let tabs = tabs.clone();
                tokio::spawn(async move {
                    if let Ok(Ok(tree)) = response.await {
                        let tree: &Value = &tree["frameTree"];
                        tabs.update(|tabs| tabs.add_frame_tree(&session, tree));
                    }
                });
            }
        }
    }
    tabs.update(|tabs| *tabs = TabRegistry::default());
}
