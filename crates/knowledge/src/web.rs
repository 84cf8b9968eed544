//! The web: pages that models, people and other pages name, and engines that find them.
//!
//! Whatever comes from there is data of strangers. Addresses are checked where the connection is made, sizes and times are
//! bounded, and a page reaches a model as plain markdown.

mod fetch;
mod search;
mod search_engine;
mod search_results;
mod settings;

pub use search_engine::WebError;
pub use settings::{EngineKind, SearchEngineSettings, SearchSettings};

use crate::html::{HtmlLimits, ReadablePage};
use lango_domain::Tool;
use lango_net::{FetchLimits, GuardedClient, NetSettings};

/// Pages are small; papers with pictures are not.
const MAX_BODY: usize = 20 * 1024 * 1024;

/// `search_fetch`, and `search_web` where the person has named an engine.
pub fn tools(search: &SearchSettings, net: &NetSettings) -> Result<Vec<Tool>, WebError> {
    let guarded = GuardedClient::new(
        net.address_policy(),
        FetchLimits {
            body: MAX_BODY,
            can_leave_host: false,
            ..FetchLimits::default()
        },
    );
    let mut tools = vec![fetch::tool(guarded)];
    if !search.engines.is_empty() {
        tools.push(search::tool(search_engine::connect_all(&search.engines)?));
    }
    Ok(tools)
}

/// Nobody reads more of a page.
const PAGE_LIMITS: HtmlLimits = HtmlLimits {
    nodes: 200_000,
    output_bytes: 512 * 1024,
};

/// The readable part of an HTML page as markdown, its title first. Links are made absolute against `base`.
pub fn html_to_markdown(html: &str, base: &url::Url) -> String {
    ReadablePage::from_html(html, Some(base), PAGE_LIMITS).markdown()
}
