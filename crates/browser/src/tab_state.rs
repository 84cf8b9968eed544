//! The tabs of the browser as its events describe them: frames, documents, dialogs, requests.
//!
//! [`TabRegistry::apply`] decides what an event means and which commands answer it. It does no IO.

mod auth;
mod downloads;
mod frames;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lango_text::sanitize::truncated_line;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cdp::{CdpEvent, CdpSession};
pub use auth::AuthAttempts;
pub use downloads::{ApprovedDownload, Download, DownloadState, origin_of};
pub use frames::{DocumentId, Frame, FrameId};

/// The id of a tab: the protocol's target.
pub type TabId = Arc<str>;

/// Most tabs of one session. A page can open any number.
const MAX_TABS: usize = 10;
const MAX_NOTICES: usize = 20;
const MAX_DIALOG_CHARS: usize = 300;

/// A dialog that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDialog {
    /// `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    pub message: String,
}

/// A request of a page for files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenChooser {
    pub session: CdpSession,
    pub node: i64,
    pub accepts_many: bool,
}

#[derive(Debug)]
pub struct Tab {
    pub id: TabId,
    pub session: CdpSession,
    /// The isolated context that the tab belongs to.
    pub context: String,
    /// The number that agents know it by.
    pub number: u32,
    pub opener: Option<TabId>,
    pub opened: Instant,
    pub frames: HashMap<FrameId, Frame>,
    pub dialog: Option<OpenDialog>,
    pub chooser: Option<OpenChooser>,
    /// Requests in flight, by id, with their start.
    pub requests: HashMap<String, Instant>,
    /// Events that the agent should know about.
    pub notices: Vec<String>,
    pub has_crashed: bool,
}

impl Tab {
    /// The main frame has the id of the tab.
    pub fn main_frame(&self) -> Option<&Frame> {
        self.frames.get(&self.id)
    }

    pub fn url(&self) -> &str {
        self.main_frame().map_or("", |frame| frame.url.as_str())
    }

    fn notice(&mut self, text: String) {
        if self.notices.len() < MAX_NOTICES {
            self.notices.push(text);
        }
    }
}

/// A command that answers an event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventReaction {
    pub session: Option<CdpSession>,
    pub method: &'static str,
    pub params: Value,
}

impl EventReaction {
    fn new(session: Option<&CdpSession>, method: &'static str, params: Value) -> Self {
        Self {
            session: session.cloned(),
            method,
            params,
        }
    }
}

#[derive(Default)]
pub struct TabRegistry {
    tabs: HashMap<TabId, Tab>,
    /// The tab of each protocol session.
    sessions: HashMap<CdpSession, TabId>,
    /// The contexts that Lango created. Other tabs belong to the browser itself.
    contexts: HashSet<String>,
    next_number: HashMap<String, u32>,
    /// Files that pages offered, oldest first.
    downloads: Vec<Download>,
    /// The file that may be saved next, by context.
    pub approved_downloads: HashMap<String, ApprovedDownload>,
    /// The sites with stored credentials.
    pub auth: AuthAttempts,
}

impl TabRegistry {
    pub fn add_context(&mut self, context: &str) {
        self.contexts.insert(context.to_owned());
    }

    pub fn remove_context(&mut self, context: &str) {
        self.contexts.remove(context);
        self.approved_downloads.remove(context);
        self.downloads
            .retain(|download| download.context != context);
    }

    pub fn tab(&self, id: &str) -> Option<&Tab> {
        self.tabs.get(id)
    }

    pub fn tab_mut(&mut self, id: &str) -> Option<&mut Tab> {
        self.tabs.get_mut(id)
    }

    /// Returns the tabs of a context, oldest first.
    pub fn tabs_of(&self, context: &str) -> Vec<&Tab> {
        let mut tabs: Vec<&Tab> = self.tabs.values().collect();
        tabs.retain(|tab| tab.context == context);
        tabs.sort_by_key(|tab| tab.number);
        tabs
    }

    fn session_tab(&mut self, session: Option<&CdpSession>) -> Option<&mut Tab> {
        let id = self.sessions.get(session?)?;
        self.tabs.get_mut(id)
    }

    /// Updates the state and returns the commands that answer the event.
    pub fn apply(&mut self, event: &CdpEvent) -> Vec<EventReaction> {
        let (session, params) = (event.session.as_ref(), &event.params);
        match event.method.as_str() {
            "Target.attachedToTarget" => return self.attach(session, params),
            "Target.detachedFromTarget" => self.detach(params),
            "Page.javascriptDialogOpening" => return self.open_dialog(session, params),
            "Browser.downloadWillBegin" => return self.begin_download(params),
            "Browser.downloadProgress" => return self.update_download(params),
            "Fetch.requestPaused" | "Fetch.authRequired" => {
                return self.auth.answer(session, &event.method, params);
            }
            method => {
                if let Some((session, tab)) = session.zip(self.session_tab(session)) {
                    apply_to_tab(tab, session, method, params);
                }
            }
        }
        Vec::new()
    }

    fn attach(&mut self, parent: Option<&CdpSession>, params: &Value) -> Vec<EventReaction> {
        let info = &params["targetInfo"];
        let session: CdpSession = text(params, "sessionId").into();
        let id: TabId = text(info, "targetId").into();
        let run = EventReaction::new(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
        match text(info, "type") {
            "page" => {
                let context = text(info, "browserContextId");
                let is_full = self.tabs_of(context).len() >= MAX_TABS;
                if is_full && self.contexts.contains(context) {
                    self.note_closed_popup(text(info, "openerId"));
                    let close = json!({ "targetId": &*id });
                    return vec![EventReaction::new(None, "Target.closeTarget", close)];
                }
                self.add_tab(&id, &session, info);
                [
                    set_up(&session, true),
                    self.auth.set_up(&session),
                    vec![run],
                ]
                .concat()
            }
            "iframe" => {
                let Some(tab) = self.session_tab(parent) else {
                    return vec![run];
                };
                tab.adopt_frame(&id, &session);
                let tab = tab.id.clone();
                self.sessions.insert(session.clone(), tab);
                [
                    set_up(&session, false),
                    self.auth.set_up(&session),
                    vec![run],
                ]
                .concat()
            }
            // Workers have no document. Their requests go through the proxy like all others.
            _ => vec![run],
        }
    }

    fn add_tab(&mut self, id: &TabId, session: &CdpSession, info: &Value) {
        let context = text(info, "browserContextId").to_owned();
        let next = self.next_number.entry(context.clone()).or_default();
        *next += 1;
        let opener = text(info, "openerId");
        let mut tab = Tab {
            id: id.clone(),
            session: session.clone(),
            context,
            number: *next,
            opener: (!opener.is_empty()).then(|| opener.into()),
            opened: Instant::now(),
            frames: HashMap::new(),
            dialog: None,
            chooser: None,
            requests: HashMap::new(),
            notices: Vec::new(),
            has_crashed: false,
        };
        tab.adopt_frame(id, session);
        self.sessions.insert(session.clone(), id.clone());
        self.tabs.insert(id.clone(), tab);
    }

    fn note_closed_popup(&mut self, opener: &str) {
        if let Some(tab) = self.tabs.get_mut(opener) {
            tab.notice(format!("a new tab was closed: {MAX_TABS} are open already"));
        }
    }

    fn detach(&mut self, params: &Value) {
        let session: CdpSession = text(params, "sessionId").into();
        let Some(id) = self.sessions.remove(&session) else {
            return;
        };
        let Some(tab) = self.tabs.get_mut(&id) else {
            return;
        };
        if tab.session == session {
            self.tabs.remove(&id);
        } else {
            tab.drop_session(&session);
        }
    }

    fn open_dialog(&mut self, session: Option<&CdpSession>, params: &Value) -> Vec<EventReaction> {
        let Some(tab) = self.session_tab(session) else {
            return Vec::new();
        };
        let kind = text(params, "type").to_owned();
        let message = truncated_line(text(params, "message"), MAX_DIALOG_CHARS);
        if kind == "alert" {
            tab.notice(format!("the page showed an alert: \"{message}\""));
            let accept = json!({ "accept": true });
            return vec![EventReaction::new(
                Some(&tab.session),
                "Page.handleJavaScriptDialog",
                accept,
            )];
        }
        tab.dialog = Some(OpenDialog { kind, message });
        Vec::new()
    }

    /// Adds the frames of a session that existed before its events were enabled.
    pub fn add_frame_tree(&mut self, session: &CdpSession, tree: &Value) {
        if let Some(tab) = self.session_tab(Some(session)) {
            tab.add_frame_tree(session, tree);
        }
    }
}

/// Returns the commands that prepare a tab or a frame of another site.
fn set_up(session: &CdpSession, is_tab: bool) -> Vec<EventReaction> {
    let command = |method, params| EventReaction::new(Some(session), method, params);
    let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
    let buffers = json!({ "maxTotalBufferSize": 1_000_000, "maxResourceBufferSize": 500_000 });
    let mut commands = vec![
        command("Page.enable", json!({})),
        command("Page.setLifecycleEventsEnabled", json!({ "enabled": true })),
        command("Network.enable", buffers),
        command("Target.setAutoAttach", attach),
        command(
            "Page.setInterceptFileChooserDialog",
            json!({ "enabled": true }),
        ),
    ];
    if is_tab {
        let focus = json!({ "enabled": true });
        commands.push(command("Emulation.setFocusEmulationEnabled", focus));
    }
    commands.push(command("Page.getFrameTree", json!({})));
    commands
}

/// Updates a tab from an event of one of its sessions.
fn apply_to_tab(tab: &mut Tab, session: &CdpSession, method: &str, params: &Value) {
    match method {
        "Page.frameAttached" => tab.add_child_frame(session, params),
        "Page.frameDetached" if params["reason"] != "swap" => {
            tab.remove_frame(text(params, "frameId"));
        }
        "Page.frameNavigated" => tab.navigate_frame(session, &params["frame"]),
        "Page.navigatedWithinDocument" => {
            if let Some(frame) = tab.frames.get_mut(text(params, "frameId")) {
                frame.url = text(params, "url").to_owned();
                frame.is_navigating = false;
            }
        }
        "Page.lifecycleEvent" if params["name"] == "DOMContentLoaded" => {
            if let Some(frame) = tab.frames.get_mut(text(params, "frameId")) {
                frame.ready = Some(text(params, "loaderId").into());
            }
        }
        "Page.frameRequestedNavigation" | "Page.frameStartedNavigating" => {
            let disposition = params["disposition"].as_str();
            let is_same_document = params["navigationType"] == "sameDocument";
            if let Some(frame) = tab.frames.get_mut(text(params, "frameId"))
                && disposition.is_none_or(|place| place == "currentTab")
                && !is_same_document
            {
                frame.is_navigating = true;
            }
        }
        "Page.frameStoppedLoading" => {
            if let Some(frame) = tab.frames.get_mut(text(params, "frameId")) {
                frame.is_navigating = false;
                frame.has_request = false;
            }
        }
        "Page.javascriptDialogClosed" => tab.dialog = None,
        "Page.fileChooserOpened" => {
            tab.chooser = params["backendNodeId"].as_i64().map(|node| OpenChooser {
                session: session.clone(),
                node,
                accepts_many: params["mode"] == "selectMultiple",
            });
        }
        "Network.requestWillBeSent" => begin_request(tab, params),
        "Network.responseReceived" if params["type"] == "Document" => {
            if let Some(frame) = tab.frames.get_mut(text(params, "frameId")) {
                frame.receive_response(&params["response"]);
            }
        }
        "Network.loadingFinished" | "Network.loadingFailed" => {
            tab.requests.remove(text(params, "requestId"));
        }
        "Inspector.targetCrashed" => tab.has_crashed = true,
        _ => {}
    }
}

/// Notes a request that the page may still react to.
fn begin_request(tab: &mut Tab, params: &Value) {
    let kind = text(params, "type");
    if !matches!(kind, "Document" | "XHR" | "Fetch" | "Script") {
        return;
    }
    let id = text(params, "requestId").to_owned();
    tab.requests.insert(id, Instant::now());
    let frame = tab.frames.get_mut(text(params, "frameId"));
    if let Some(frame) = frame.filter(|_| kind == "Document") {
        frame.begin_request(&params["request"]);
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

#[cfg(test)]
#[path = "tab_state_tests.rs"]
mod tests;
