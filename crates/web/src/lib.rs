//! Web tools: fetching pages and searching with configured engines.
//!
//! All content from the web is untrusted. Addresses are checked when the connection is made, sizes
//! and times are limited, and pages are passed to models as plain markdown.

mod fetch;
mod search;
mod search_engine;
mod search_results;
mod settings;

pub use fetch::PdfReader;
pub use search_engine::WebError;
pub use settings::{EngineKind, SearchEngineSettings, SearchSettings};

use lango_domain::Tool;
use lango_net::{FetchLimits, GuardedClient, NetSettings};
use lango_text::html::{HtmlLimits, ReadablePage};

/// Pages are small, but PDF files with images are not.
const MAX_BODY_BYTES: usize = 20 * 1024 * 1024;

/// Returns `search_fetch`, and `search_web` if an engine is configured.
pub fn tools(
    search: &SearchSettings,
    net: &NetSettings,
    read_pdf: PdfReader,
) -> Result<Vec<Tool>, WebError> {
    let guarded = GuardedClient::new(
        net.address_policy(),
        FetchLimits {
            body: MAX_BODY_BYTES,
            can_leave_host: false,
            ..FetchLimits::default()
        },
    );
    let mut tools = vec![fetch::tool(guarded, read_pdf)];
    if !search.engines.is_empty() {
        tools.push(search::tool(search_engine::connect_all(&search.engines)?));
    }
    Ok(tools)
}

/// Limits for web pages.
const PAGE_LIMITS: HtmlLimits = HtmlLimits {
    nodes: 200_000,
    output_bytes: 512 * 1024,
};

/// Returns the readable content of an HTML page as markdown, starting with the title. Links are
/// resolved against `base`.
pub fn html_to_markdown(html: &str, base: &url::Url) -> String {
    ReadablePage::from_html(html, Some(base), PAGE_LIMITS).markdown()
}
