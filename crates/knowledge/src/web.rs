//! The web: pages that models, people and other pages name, and engines that find them.
//!
//! Whatever comes from there is data of strangers. Addresses are checked where the connection is made, sizes and times are
//! bounded, and a page reaches a model as plain markdown.

mod address;
mod article;
mod body;
mod charset;
mod content;
mod engine;
mod engine_results;
mod fetch;
mod guarded;
mod html;
mod markdown;
mod search;
mod settings;
mod tidied;
mod words;

pub use address::Reach;
pub use content::Kind;
pub use engine::WebError;
pub use guarded::{FetchError, Guarded, Limits, Page};
pub use settings::{Engine, EngineKind, NetSettings, SearchSettings};

use lango_domain::Tool;

/// `search_fetch`, and `search_web` where the person has named an engine.
pub fn tools(search: &SearchSettings, net: &NetSettings) -> Result<Vec<Tool>, WebError> {
    let guarded = Guarded::new(net.reach(), Limits::default());
    let mut tools = vec![fetch::tool(guarded)];
    if !search.engines.is_empty() {
        tools.push(search::tool(engine::connected(&search.engines)?));
    }
    Ok(tools)
}

/// The readable part of an HTML page as markdown, its title first. Links are made absolute against `base`.
pub fn readable(html: &str, base: &url::Url) -> String {
    markdown::readable(&html::Document::parse(html), base)
}
