//! Waits until a page has finished reacting to an action.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::Page;
use crate::error::{BrowserError, Result};
use crate::tab_state::{Tab, TabRegistry};

/// Time without a change of the document after which a page is quiet.
const QUIET: Duration = Duration::from_millis(20);
/// The same after a request has been answered: the page still works on the answer.
const QUIET_AFTER_REQUEST: Duration = Duration::from_millis(60);
/// Time to wait for requests that an action started. Long polls never end.
const REQUEST_LIMIT: Duration = Duration::from_millis(1_500);

/// The state of a page before an action.
#[derive(Clone)]
pub struct ActionMark {
    at: Instant,
    document: Option<Arc<str>>,
}

impl ActionMark {
    /// The time before the action.
    pub fn start(&self) -> Instant {
        self.at
    }
}

/// The reaction of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageReaction {
    Navigating,
    Requesting,
    Idle,
}

impl Page {
    pub fn mark(&self) -> ActionMark {
        ActionMark {
            at: Instant::now(),
            document: self.document(),
        }
    }

    /// Waits until a new tab has left its empty page and has content.
    pub async fn wait_until_loaded(&self, limit: Duration) {
        let is_there = |tabs: &TabRegistry| {
            let Some(frame) = tabs.tab(&self.tab).and_then(|tab| tab.main_frame()) else {
                return Some(());
            };
            let is_empty = matches!(frame.url.as_str(), "" | "about:blank" | ":");
            let is_busy = frame.is_navigating || !frame.is_ready();
            (!(is_busy || is_empty && frame.has_request)).then_some(())
        };
        self.browser.tabs.wait(limit, is_there).await;
    }

    /// Waits until the page is quiet, a dialog opens, or the deadline passes.
    pub async fn settle(&self, mark: &ActionMark, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        let mut quiet = QUIET;
        while Instant::now() < deadline {
            if self.with_tab(|tab| tab.dialog.is_some() || tab.has_crashed)? {
                return Ok(());
            }
            match self.with_tab(|tab| reaction(tab, mark))? {
                PageReaction::Navigating => {
                    self.wait_for_content(mark.document.clone(), deadline).await;
                    quiet = QUIET_AFTER_REQUEST;
                    if self.with_tab(|tab| reaction(tab, mark))? == PageReaction::Navigating {
                        return Ok(());
                    }
                }
                PageReaction::Requesting if mark.at.elapsed() < REQUEST_LIMIT => {
                    let is_over = |tabs: &TabRegistry| {
                        let tab = tabs.tab(&self.tab);
                        let is_over = tab.is_none_or(|tab| {
                            tab.dialog.is_some() || reaction(tab, mark) != PageReaction::Requesting
                        });
                        is_over.then_some(())
                    };
                    let end = (mark.at + REQUEST_LIMIT).min(deadline);
                    self.browser.tabs.wait_until(end, is_over).await;
                    quiet = QUIET_AFTER_REQUEST;
                }
                _ => {
                    self.wait_quiet(quiet, deadline).await?;
                    let is_busy = |tab: &Tab| match reaction(tab, mark) {
                        PageReaction::Navigating => true,
                        PageReaction::Requesting => mark.at.elapsed() < REQUEST_LIMIT,
                        PageReaction::Idle => false,
                    };
                    if !self.with_tab(is_busy)? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits until the document of the main frame does not change any more.
    async fn wait_quiet(&self, quiet: Duration, deadline: Instant) -> Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let args = json!({ "quiet": quiet.as_millis() as u64, "limit": left.as_millis() as u64 });
        let limit = left + Duration::from_secs(1);
        let waited = self
            .try_call(&self.main_frame(), "quiet", &args, limit)
            .await;
        match waited {
            Ok(_) | Err(BrowserError::DialogOpen(_) | BrowserError::Unresponsive(_)) => Ok(()),
            // The document was replaced; the loop sees the navigation.
            Err(error) if error.is_gone() => {
                self.forget_world(&self.main_frame());
                tokio::task::yield_now().await;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

fn reaction(tab: &Tab, mark: &ActionMark) -> PageReaction {
    let is_loading = tab.main_frame().is_some_and(|frame| {
        frame.is_navigating
            || (Some(&frame.document) != mark.document.as_ref() && !frame.is_ready())
    });
    let is_requesting = tab.requests.values().any(|start| *start >= mark.at);
    match (is_loading, is_requesting) {
        (true, _) => PageReaction::Navigating,
        (false, true) => PageReaction::Requesting,
        (false, false) => PageReaction::Idle,
    }
}
