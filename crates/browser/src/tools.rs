//! The navigator's tools (S85).

mod action;
mod extract;
mod file_transfer;
mod intent;
mod navigate;
mod observe;
mod screenshot;
mod search;
mod tabs;
mod typing;

use std::sync::Arc;

use lango_domain::{Content, Label, Tool, ToolContext, ToolError, ToolOutput};

use crate::error::{BrowserError, Result};
use crate::navigator::Navigator;
use crate::page::Page;
use crate::refs::ElementRef;
use crate::session_pages::SessionPages;

/// Returns the tools of the navigator.
pub fn tools(navigator: &Arc<Navigator>) -> Vec<Tool> {
    vec![
        navigate::tool(navigator),
        search::tool(navigator),
        observe::tool(navigator),
        extract::tool(navigator),
        action::tool(navigator),
        screenshot::tool(navigator),
    ]
}

impl From<BrowserError> for ToolError {
    fn from(error: BrowserError) -> Self {
        let hint = match &error {
            BrowserError::Network(lango_net::FetchError::PrivateAddress(_)) => {
                "; the user can allow it with the setting net.allowPrivate"
            }
            _ => "",
        };
        Self(format!("{error}{hint}"))
    }
}

/// Returns text of a page: untrusted, with the page as its source. It is private if only the user's cookies
/// or password open the page.
fn page_output(page: &Page, content: impl Into<Content>) -> ToolOutput {
    let mut label = Label::untrusted(format!("the page {}", page.url()));
    if let Some(source) = page.private_source() {
        label.join(&Label::private(source));
    }
    ToolOutput {
        content: content.into(),
        label: Some(label),
    }
}

/// Returns the element that an argument means: a reference, or a visible name.
async fn find_element(page: &Page, text: &str) -> Result<ElementRef> {
    if let Ok(element) = ElementRef::parse(text) {
        return Ok(element);
    }
    let args = serde_json::json!({ "name": text });
    let found = page.call(&page.main_frame(), "byName", args).await?;
    let found = crate::page::check(found)?;
    Ok(ElementRef(found["ref"].as_u64().unwrap_or_default()))
}

/// Waits for the pages of the session that calls.
async fn session_of(
    navigator: &Navigator,
    context: &ToolContext,
) -> tokio::sync::OwnedMutexGuard<SessionPages> {
    let mut session = navigator.session(&context.session_key()).await;
    session.typed_addresses.clone_from(&context.typed_addresses);
    session
}
