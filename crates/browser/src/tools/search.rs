//! `browser_search`: searches the web with the configured search page.

use std::sync::Arc;

use lango_domain::{
    Destination, Intent, OutgoingData, Safety, Tool, ToolContext, ToolError, ToolOutput,
};
use lango_text::sanitize::truncated_line;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::{page_output, session_of};
use crate::error::BrowserError;
use crate::navigator::Navigator;
use crate::page::extract::{ExtractScope, format_hits};

const DEFAULT_LIMIT: usize = 5;
const MAX_LIMIT: usize = 20;
const MAX_QUERY_CHARS: usize = 400;
/// Most searches of one turn. More of them rarely find more.
const SEARCHES_PER_TURN: u32 = 2;

#[derive(Deserialize, JsonSchema)]
struct SearchArgs {
    /// The words to search for.
    query: String,
    #[schemars(description = "Most results: 5 if left out, up to 20.")]
    limit: Option<usize>,
}

pub(super) fn tool(navigator: &Arc<Navigator>) -> Tool {
    let description = "Searches the web and gives back titles, addresses and extracts with references to click. At \
        most two searches for each request of the user.";
    let (run, describe) = (Arc::clone(navigator), Arc::clone(navigator));
    let host = search_address(navigator, "")
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    let hosts: Vec<String> = host.into_iter().collect();
    Tool::new(
        "browser_search",
        description,
        Safety::Safe,
        move |context: ToolContext, args: SearchArgs| {
            let navigator = Arc::clone(&run);
            async move { search(&navigator, &context, args).await }
        },
    )
    .with_intent(move |_, args: SearchArgs| {
        let intent = search_address(&describe, &args.query).map(|url| Intent {
            level: Safety::Safe,
            shows: format!(
                "asks {} for: {}",
                url.host_str().unwrap_or_default(),
                args.query
            ),
            subject: args.query,
            pattern: None,
        });
        async move { intent.map_err(ToolError::from) }
    })
    .with_untrusted_output()
    .with_outgoing(move |args: SearchArgs| OutgoingData {
        to: Destination::Configured(hosts.clone()),
        data: args.query,
    })
    .with_phrases([
        "search [the] (web|internet) for {query} (in|with) the browser",
        "(browse|search) the web for {query}",
        "search for {query} in the browser",
    ])
}

/// Returns the address of the search page for a query.
fn search_address(navigator: &Navigator, query: &str) -> Result<Url, BrowserError> {
    let query = truncated_line(query, MAX_QUERY_CHARS);
    let words: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
    let template = &navigator.parts.options.settings.search_url;
    if !template.contains("{query}") {
        let message = "browser.searchUrl must contain {query}";
        return Err(BrowserError::Unavailable(message.to_owned()));
    }
    navigator.check_address(&template.replace("{query}", &words), &[])
}

async fn search(
    navigator: &Navigator,
    context: &ToolContext,
    args: SearchArgs,
) -> Result<ToolOutput, ToolError> {
    if args.query.trim().is_empty() {
        return Err(ToolError("query is empty".to_owned()));
    }
    let url = search_address(navigator, &args.query)?;
    let mut session = session_of(navigator, context).await;
    let count = match &session.searches {
        Some((turn, count)) if *turn == context.turn => count + 1,
        _ => 1,
    };
    if count > SEARCHES_PER_TURN {
        let message = "two searches were made for this request; report what was found";
        return Err(ToolError(message.to_owned()));
    }
    session.searches = Some((context.turn.clone(), count));
    session.open(navigator, &url).await?;
    let page = session.page()?;
    let scope = ExtractScope {
        element: None,
        offset: 0,
        limit: args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
    };
    let hits = page.search_hits(scope).await?;
    Ok(page_output(&page, format_hits(&hits, scope)))
}
