//! The action `tab`: lists, opens, closes and switches tabs.

use std::time::Duration;

use serde_json::json;

use crate::error::{BrowserError, Result};
use crate::session_pages::SessionPages;

pub(super) async fn use_tab(session: &mut SessionPages, text: Option<&str>) -> Result<String> {
    match text.map(str::trim) {
        Some("new") => session.open_tab().await?,
        Some("close") => {
            let page = session.page()?;
            let params = json!({ "targetId": &*page.tab });
            page.browser
                .cdp
                .call(None, "Target.closeTarget", params)
                .await?;
            let is_gone =
                |tabs: &crate::tab_state::TabRegistry| tabs.tab(&page.tab).is_none().then_some(());
            page.browser
                .tabs
                .wait(Duration::from_secs(5), is_gone)
                .await;
            let last = session.with_tabs(|tabs| tabs.last().map(|tab| tab.id.clone()))?;
            match last {
                Some(tab) => session.current = Some(tab),
                None => session.open_tab().await?,
            }
        }
        Some(number) if !number.is_empty() => {
            let number = number.trim_start_matches("tab").trim();
            let found = session.with_tabs(|tabs| {
                let mut tabs = tabs.iter();
                let tab = tabs.find(|tab| tab.number.to_string() == number);
                tab.map(|tab| tab.id.clone())
            })?;
            let missing = || BrowserError::action(format!("there is no tab {number}"));
            session.current = Some(found.ok_or_else(missing)?);
        }
        _ => {}
    }
    let current = session.current.clone();
    let mut text = session.with_tabs(|tabs| {
        let line = |tab: &&crate::tab_state::Tab| {
            let mark = if Some(&tab.id) == current.as_ref() {
                " (current)"
            } else {
                ""
            };
            format!("tab {}{mark}: {}\n", tab.number, tab.url())
        };
        tabs.iter().map(line).collect::<String>()
    })?;
    let page = session.page()?;
    if page.check_usable().is_ok() {
        let outline = session.look(&page).await?;
        text += &outline.format(0, usize::MAX, crate::page::outline::OUTLINE_TOKENS);
    }
    Ok(text)
}
