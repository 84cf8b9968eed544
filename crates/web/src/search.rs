//! The `search_web` tool: queries the configured engines in order until one responds.

use std::sync::Arc;

use lango_domain::{Destination, Intent, OutgoingData, Safety, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::search_engine::SearchEngineClient;
use super::search_results::WebResult;
use lango_text::sanitize::truncated_line;

const DEFAULT_LIMIT: usize = 8;
const MAX_LIMIT: usize = 20;
const MAX_QUERY_CHARS: usize = 400;

#[derive(Deserialize, JsonSchema)]
struct SearchWebArgs {
    #[schemars(description = "What to look for, as one would type it into a search engine.")]
    query: String,
    #[schemars(description = "How many results at most, from 1 to 20; 8 if left out.")]
    limit: Option<usize>,
}

pub fn tool(engines: Vec<SearchEngineClient>) -> Tool {
    let description = "Searches the web and gives back titles, addresses and short extracts. To read a result, use \
        search_fetch with its address.";
    let engines: Arc<[SearchEngineClient]> = engines.into();
    let search_engines = engines.clone();
    let hosts: Vec<String> = engines.iter().map(SearchEngineClient::host).collect();
    Tool::new(
        "search_web",
        description,
        Safety::Moderate,
        move |_, args: SearchWebArgs| {
            let engines = search_engines.clone();
            async move { search(&engines, &args).await }
        },
    )
    .with_intent(move |_, args: SearchWebArgs| {
        let intent = check_query(&args).map(|query| intent(&engines, query));
        async move { intent }
    })
    .with_untrusted_output()
    .with_outgoing(move |args: SearchWebArgs| OutgoingData {
        to: Destination::Configured(hosts.clone()),
        data: args.query,
    })
    .with_phrases([
        "search [the] (web|internet) for {query}",
        "search for {query} (online|on the web|on the internet)",
        "google {query} (online|on the web|)",
        "look up {query} (online|on the web|on the internet)",
        "what does the (web|internet) say about {query}",
    ])
}

/// Returns the intent with the engines that receive the query, and the query as it is sent.
fn intent(engines: &[SearchEngineClient], query: String) -> Intent {
    let names: Vec<String> = engines
        .iter()
        .map(SearchEngineClient::display_name)
        .collect();
    let shows = format!("asks {} for: {query}", names.join(", or if that fails "));
    Intent {
        level: Safety::Moderate,
        shows,
        subject: query,
        pattern: None,
    }
}

async fn search(engines: &[SearchEngineClient], args: &SearchWebArgs) -> Result<String, ToolError> {
    let query = check_query(args)?;
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ToolError(format!(
            "limit is {limit}; it must be from 1 to {MAX_LIMIT}"
        )));
    }
    let mut failures = Vec::new();
    for engine in engines {
        match engine.search(&query, limit).await {
            Ok(results) => return Ok(format_results(&query, &results)),
            Err(reason) => failures.push(format!("{}: {reason}", engine.display_name())),
        }
    }
    Err(ToolError(format!(
        "all search engines failed\n{}",
        failures.join("\n")
    )))
}

fn check_query(args: &SearchWebArgs) -> Result<String, ToolError> {
    let query = truncated_line(&args.query, usize::MAX);
    match query.chars().count() {
        0 => Err(ToolError("query is empty".to_owned())),
        1..=MAX_QUERY_CHARS => Ok(query),
        length => Err(ToolError(format!(
            "query has {length} characters; at most {MAX_QUERY_CHARS} are allowed"
        ))),
    }
}

fn format_results(query: &str, results: &[WebResult]) -> String {
    if results.is_empty() {
        return format!("nothing found for: {query}");
    }
    let entry = |(at, result): (usize, &WebResult)| {
        let snippet = if result.snippet.is_empty() {
            String::new()
        } else {
            format!("\n   {}", result.snippet)
        };
        format!("{}. {}\n   {}{snippet}", at + 1, result.title, result.url)
    };
    results
        .iter()
        .enumerate()
        .map(entry)
        .collect::<Vec<_>>()
        .join("\n")
}
