//! One tab, as the tools use it: calls into its documents, and commands that a dialog may interrupt.

pub mod actions;
pub mod extract;
pub mod frames;
pub mod input;
pub mod keys;
pub mod navigation;
pub mod outline;
pub mod screenshot;
pub mod settle;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::cdp::COMMAND_TIMEOUT;
use crate::error::{BrowserError, Result};
use crate::refs::{ElementRef, RefPlace, RefTable};
use crate::tab_state::{Frame, FrameId, OpenDialog, Tab, TabId};

/// Lango's script. It runs in a world of its own in each document.
const SCRIPT: &str = concat!(
    include_str!("js/dom.js"),
    include_str!("js/elements.js"),
    include_str!("js/outline.js"),
    include_str!("js/act.js"),
    include_str!("js/extract.js"),
);

/// Calls a function of the script. The numbers of references are passed in and out.
const CALL: &str = "async function(name, args, next) {
    const L = globalThis.langoPage;
    if (!L) return { missing: true };
    L.next = Math.max(L.next, next);
    const result = await L[name](args);
    return { result, next: L.next };
}";

/// A tab of a session.
#[derive(Clone)]
pub struct Page {
    pub browser: Arc<Browser>,
    pub tab: TabId,
    /// The references of the session.
    pub refs: Arc<Mutex<RefTable>>,
    /// The name of the profile whose cookies the page gets.
    pub profile: Option<String>,
}

impl Page {
    pub fn with_tab<T>(&self, read: impl FnOnce(&Tab) -> T) -> Result<T> {
        self.browser.tabs.with_tab(&self.tab, read)
    }

    pub fn main_frame(&self) -> FrameId {
        self.tab.clone()
    }

    pub fn url(&self) -> String {
        self.with_tab(|tab| tab.url().to_owned())
            .unwrap_or_default()
    }

    fn frame(&self, id: &str) -> Result<Frame> {
        let gone = || BrowserError::Protocol("the frame is gone".to_owned());
        self.with_tab(|tab| tab.frames.get(id).cloned())?
            .ok_or_else(gone)
    }

    /// Sends a command to the tab. A dialog that opens interrupts it, since the page is blocked then.
    pub async fn command(&self, method: &str, params: Value) -> Result<Value> {
        let session = self.with_tab(|tab| tab.session.clone())?;
        let call = self.browser.cdp.call(Some(&session), method, params);
        self.unless_dialog(call).await
    }

    /// Runs a command unless a dialog is open or opens meanwhile.
    async fn unless_dialog<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let tabs = &self.browser.tabs;
        let dialog = tabs.wait(Duration::from_secs(3600), |tabs| {
            match tabs.tab(&self.tab) {
                Some(tab) if tab.has_crashed => Some(Err(crashed())),
                Some(tab) => tab.dialog.clone().map(Ok),
                None => Some(Err(BrowserError::NoPage)),
            }
        });
        tokio::select! {
            biased;
            dialog = dialog => match dialog {
                Some(Ok(dialog)) => Err(BrowserError::DialogOpen(describe_dialog(&dialog))),
                Some(Err(error)) => Err(error),
                None => Err(BrowserError::Closed),
            },
            result = call => result,
        }
    }

    /// Calls a function of the script in a frame.
    pub async fn call(&self, frame: &str, name: &str, args: Value) -> Result<Value> {
        self.call_within(frame, name, args, COMMAND_TIMEOUT).await
    }

    pub async fn call_within(
        &self,
        frame: &str,
        name: &str,
        args: Value,
        limit: Duration,
    ) -> Result<Value> {
        let first = self.try_call(frame, name, &args, limit).await;
        match first {
            // The document may have been replaced between two commands.
            Err(error) if error.is_gone() => {
                self.forget_world(frame);
                self.try_call(frame, name, &args, limit).await
            }
            result => result,
        }
    }

    async fn try_call(
        &self,
        frame: &str,
        name: &str,
        args: &Value,
        limit: Duration,
    ) -> Result<Value> {
        let (world, place) = self.world(frame).await?;
        let session = self.frame(frame)?.session;
        let next = self.lock_refs().next();
        let arguments = json!([{ "value": name }, { "value": args }, { "value": next }]);
        let params = json!({
            "functionDeclaration": CALL, "executionContextId": world, "arguments": arguments,
            "returnByValue": true, "awaitPromise": true, "userGesture": true,
        });
        let method = "Runtime.callFunctionOn";
        let call = self
            .browser
            .cdp
            .call_within(Some(&session), method, params, limit);
        let response = self.unless_dialog(call).await?;
        let value = script_value(response)?;
        self.lock_refs()
            .record(value["next"].as_u64().unwrap_or_default(), place);
        Ok(value["result"].clone())
    }

    /// Returns the context of the script in the current document of a frame, and that document.
    async fn world(&self, id: &str) -> Result<(i64, RefPlace)> {
        let frame = self.frame(id)?;
        let place = RefPlace {
            tab: self.tab.clone(),
            frame: frame.id.clone(),
            document: frame.document.clone(),
        };
        if let Some(world) = frame.world {
            return Ok((world, place));
        }
        let (cdp, session) = (&self.browser.cdp, Some(&frame.session));
        let params = json!({ "frameId": id, "worldName": "lango" });
        let created = self.unless_dialog(cdp.call(session, "Page.createIsolatedWorld", params));
        let world = created.await?["executionContextId"]
            .as_i64()
            .unwrap_or_default();
        let script = format!("if (!globalThis.langoPage) {{ {SCRIPT} }} 0");
        let params = json!({ "expression": script, "contextId": world, "returnByValue": true });
        let evaluated = self.unless_dialog(cdp.call(session, "Runtime.evaluate", params));
        script_value(evaluated.await?)?;
        self.browser.tabs.update(|tabs| {
            let frame = tabs
                .tab_mut(&self.tab)
                .and_then(|tab| tab.frames.get_mut(id));
            if let Some(frame) = frame.filter(|frame| frame.document == place.document) {
                frame.world = Some(world);
            }
        });
        Ok((world, place))
    }

    fn forget_world(&self, id: &str) {
        self.browser.tabs.update(|tabs| {
            let tab = tabs.tab_mut(&self.tab);
            if let Some(frame) = tab.and_then(|tab| tab.frames.get_mut(id)) {
                frame.world = None;
            }
        });
    }

    /// Returns the frame of a reference, if its document is still open.
    pub fn frame_of(&self, element: ElementRef) -> Result<FrameId> {
        let place = self.lock_refs().place(element)?.clone();
        if place.tab != self.tab {
            let number = self.browser.tabs.with_tab(&place.tab, |tab| tab.number);
            let message = match number {
                Ok(number) => {
                    format!("{element} is in tab {number}; switch to it with the action tab")
                }
                Err(_) => format!("{element} was in a tab that is closed"),
            };
            return Err(BrowserError::action(message));
        }
        let current = self.with_tab(|tab| tab.frames.get(&place.frame).cloned())?;
        match current {
            Some(frame) if frame.document == place.document => Ok(place.frame),
            _ => Err(BrowserError::action(format!(
                "{element} belongs to a page that is no longer open; now {} is open: look at it with browser_observe",
                self.url()
            ))),
        }
    }

    /// Returns the host of the document that a reference belongs to; `None` for a document without one, such
    /// as a frame that a script wrote.
    pub fn host_of(&self, element: ElementRef) -> Result<Option<String>> {
        let url = url::Url::parse(&self.frame(&self.frame_of(element)?)?.url).ok();
        Ok(url.and_then(|url| url.host_str().map(str::to_owned)))
    }

    /// Calls a function about an element and returns its result; a result with an error fails.
    pub async fn call_on(&self, element: ElementRef, name: &str, mut args: Value) -> Result<Value> {
        let frame = self.frame_of(element)?;
        args["ref"] = json!(element.0);
        check(self.call(&frame, name, args).await?)
    }

    /// Fails if the tab cannot be used: a dialog is open, or the page crashed.
    pub fn check_usable(&self) -> Result<()> {
        self.with_tab(|tab| match &tab.dialog {
            Some(dialog) => Err(BrowserError::DialogOpen(describe_dialog(dialog))),
            None if tab.has_crashed => Err(crashed()),
            None => Ok(()),
        })?
    }

    /// Returns the source of the page's content if it is private: only the user's cookies or password open
    /// it.
    pub fn private_source(&self) -> Option<String> {
        let address = self.url();
        if let Some(profile) = &self.profile {
            return Some(format!("the page {address} with the profile {profile}"));
        }
        let url = url::Url::parse(&address).ok()?;
        let is_own = self.browser.tabs.lock().auth.has_site(&url);
        is_own.then(|| format!("the page {address} with your password"))
    }

    /// Describes an error of the server, since its page may be empty.
    pub fn status_note(&self) -> String {
        let response = self.with_tab(|tab| tab.main_frame()?.response.clone());
        let Some(response) = response.ok().flatten().filter(|found| found.status >= 400) else {
            return String::new();
        };
        let Some(realm) = response.realm.filter(|_| response.status == 401) else {
            return format!("the server answered with the error {}\n", response.status);
        };
        let url = url::Url::parse(&response.url).ok();
        let host = url
            .as_ref()
            .and_then(url::Url::host_str)
            .unwrap_or_default();
        let tabs = self.browser.tabs.lock();
        let reason = match &url {
            _ if tabs.auth.was_refused(host) => {
                "it refused those of the setting browser.credentials".to_owned()
            }
            Some(url) if tabs.auth.has_host(url) => {
                "those of the setting browser.credentials are not sent, since the connection is not encrypted"
                    .to_owned()
            }
            _ => format!(
                "the user can store them: `lango secret set NAME --host {host}` with the value user:password, and the \
                 setting browser.credentials.\"{host}\" = \"vault:NAME\""
            ),
        };
        format!("{host} asks for a user name and a password (\"{realm}\"); {reason}\n")
    }

    /// Takes what happened in the tab apart from the call: alerts, downloads.
    pub fn take_notices(&self) -> Vec<String> {
        self.browser.tabs.update(|tabs| {
            tabs.tab_mut(&self.tab)
                .map(|tab| std::mem::take(&mut tab.notices))
                .unwrap_or_default()
        })
    }

    pub fn lock_refs(&self) -> std::sync::MutexGuard<'_, RefTable> {
        self.refs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the document of the main frame.
    pub fn document(&self) -> Option<Arc<str>> {
        let document = |tab: &Tab| tab.main_frame().map(|frame| frame.document.clone());
        self.with_tab(document).ok().flatten()
    }
}

fn crashed() -> BrowserError {
    BrowserError::action("the page crashed; reload it or open another one")
}

/// Describes an open dialog, with the way to answer it.
pub fn describe_dialog(dialog: &OpenDialog) -> String {
    let question = match dialog.kind.as_str() {
        "beforeunload" => "the page asks whether to leave it; changes may be lost".to_owned(),
        kind => format!("a {kind} dialog is open: \"{}\"", dialog.message),
    };
    format!("{question}. Answer it with browser_action dialog, text accept or dismiss")
}

/// Returns the value of a script, or its error.
fn script_value(response: Value) -> Result<Value> {
    if let Some(details) = response.get("exceptionDetails") {
        let text = details["exception"]["description"]
            .as_str()
            .or(details["text"].as_str());
        let text = lango_text::sanitize::truncated_line(text.unwrap_or("a script failed"), 300);
        return Err(BrowserError::Protocol(text));
    }
    let value = response["result"]["value"].clone();
    match value["missing"].as_bool() {
        Some(true) => Err(BrowserError::Protocol(
            "the script is not loaded".to_owned(),
        )),
        _ => Ok(value),
    }
}

/// Fails for a result that reports a stale element or another error.
pub fn check(result: Value) -> Result<Value> {
    match result["stale"].as_str().or(result["error"].as_str()) {
        Some(message) => Err(BrowserError::action(message)),
        None => Ok(result),
    }
}
