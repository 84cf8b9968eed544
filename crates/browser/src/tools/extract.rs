//! `browser_extract`: reads content of a page as article, links, tables, forms or results.

use std::sync::Arc;

use lango_domain::{
    Destination, Intent, OutgoingData, Safety, Tool, ToolContext, ToolError, ToolOutput,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::navigate::{open_intent, open_page, outgoing_address};
use super::{find_element, page_output, session_of};
use crate::error::Result;
use crate::navigator::Navigator;
use crate::page::Page;
use crate::page::extract::{ExtractScope, format_hits};

const MAX_LIMIT: usize = 20;

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ExtractMode {
    /// Description, headings and counts.
    Summary,
    /// Links with their addresses.
    Links,
    /// The readable text as markdown.
    #[default]
    Article,
    /// Tables as markdown.
    Table,
    /// Forms with their fields.
    Form,
    /// The results of a search page.
    SearchResults,
}

#[derive(Deserialize, JsonSchema)]
struct ExtractArgs {
    #[schemars(description = "What to read; article if left out.")]
    mode: Option<ExtractMode>,
    /// A reference such as e12: read only that element.
    r#ref: Option<String>,
    /// The number of lines or entries to skip.
    offset: Option<usize>,
    #[schemars(description = "Most entries: 20 if left out, up to 20.")]
    limit: Option<usize>,
    /// An address to open first; the open page if left out.
    url: Option<String>,
}

pub(super) fn tool(navigator: &Arc<Navigator>) -> Tool {
    let description = "Reads the page that is open, or the one at `url`: its article as markdown, its links, tables, \
        forms, or the results of a search page.";
    let (run, describe) = (Arc::clone(navigator), Arc::clone(navigator));
    Tool::new(
        "browser_extract",
        description,
        Safety::Safe,
        move |context: ToolContext, args: ExtractArgs| {
            let navigator = Arc::clone(&run);
            async move { extract(&navigator, &context, args).await }
        },
    )
    .with_intent(move |context, args: ExtractArgs| {
        let intent = match &args.url {
            Some(url) => open_intent(&describe, &context, url),
            None => Ok(reading_intent("reads the open page")),
        };
        async move { intent }
    })
    .with_untrusted_output()
    .with_outgoing(|args: ExtractArgs| outgoing_or_nothing(args.url))
    .with_phrases([
        "(read|summarize) [me] [the] (page|site|website|article|) [at] {url:word} in the browser",
        "(read|summarize) [me] [the] (open|current) page",
        "read [me] [the] (site|website|webpage|page|) [at] {url:word}",
        "(open|visit|browse|navigate to|go to) {url:word} and (read|tell|show|give) [me] [the] (headline|headlines|title|heading|headings) {mode=\"summary\"}",
        "(open|visit|browse|navigate to|go to) {url:word} and (read|tell|show|summarize) [me] (it|the page|the text|the article)",
    ])
}

/// Returns the intent of a call that only looks at the open page.
pub(super) fn reading_intent(shows: &str) -> Intent {
    Intent {
        level: Safety::Safe,
        shows: shows.to_owned(),
        subject: String::new(),
        pattern: None,
    }
}

/// Returns the address that a call opens, or data that is nothing.
pub(super) fn outgoing_or_nothing(url: Option<String>) -> OutgoingData {
    url.map_or_else(
        || OutgoingData {
            to: Destination::Configured(Vec::new()),
            data: String::new(),
        },
        outgoing_address,
    )
}

async fn extract(
    navigator: &Navigator,
    context: &ToolContext,
    args: ExtractArgs,
) -> std::result::Result<ToolOutput, ToolError> {
    let mut session = session_of(navigator, context).await;
    if let Some(url) = &args.url {
        let url = navigator.check_address(url, &context.typed_addresses)?;
        let opened = open_page(navigator, &mut session, &url).await?;
        // A file is not a page: its text is all there is.
        if opened.contains("\nPDF file\n") {
            return Ok(page_output(&session.page()?, opened));
        }
    }
    let page = session.page()?;
    page.check_usable()?;
    let element = match &args.r#ref {
        Some(text) => Some(find_element(&page, text).await?),
        None => None,
    };
    let scope = ExtractScope {
        element,
        offset: args.offset.unwrap_or_default(),
        limit: args.limit.unwrap_or(MAX_LIMIT).clamp(1, MAX_LIMIT),
    };
    let text = read(&page, args.mode.unwrap_or_default(), scope).await?;
    let text = format!("url: {}\n{text}", page.url());
    Ok(page_output(&page, text))
}

async fn read(page: &Page, mode: ExtractMode, scope: ExtractScope) -> Result<String> {
    match mode {
        ExtractMode::Summary => page.summary(scope).await,
        ExtractMode::Links => page.links(scope).await,
        ExtractMode::Article => page.article(scope).await,
        ExtractMode::Table => page.tables(scope).await,
        ExtractMode::Form => page.forms(scope).await,
        ExtractMode::SearchResults => Ok(format_hits(&page.search_hits(scope).await?, scope)),
    }
}
