//! The `search_fetch` tool: fetches a page and returns its text.

use std::sync::Arc;

use lango_domain::{Destination, Intent, OutgoingData, Safety, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use lango_net::{ContentKind, FetchError, FetchedPage, GuardedClient, check_url, parse_url};
use lango_text::sanitize::strip_control_chars;

const DEFAULT_CHARS: usize = 20_000;
const MAX_CHARS: usize = 100_000;

/// Returns the text of a PDF file, or a reason why there is none.
pub type PdfReader = Arc<dyn Fn(Vec<u8>) -> Result<String, String> + Send + Sync>;

#[derive(Deserialize, JsonSchema)]
struct SearchFetchArgs {
    /// The address of the page, beginning with https:// or http://.
    url: String,
    #[schemars(
        description = "How many characters to give back at most: 20000 if left out, up to 100000."
    )]
    max_chars: Option<usize>,
}

pub fn tool(guarded: GuardedClient, read_pdf: PdfReader) -> Tool {
    let description = "Fetches a page from the web and gives back its readable text as markdown: title, headings, \
        lists, tables, code, and links with their addresses. Of a PDF it gives the text, page by page. Text and JSON come \
        as they are.";
    let intent_client = guarded.clone();
    Tool::new(
        "search_fetch",
        description,
        Safety::Moderate,
        move |_, args: SearchFetchArgs| {
            let guarded = guarded.clone();
            let read_pdf = Arc::clone(&read_pdf);
            async move { fetch(&guarded, read_pdf, args).await }
        },
    )
    .with_intent(move |_, args: SearchFetchArgs| {
        let intent = intent(&intent_client, &args.url);
        async move { intent }
    })
    .with_untrusted_output()
    .with_outgoing(|args: SearchFetchArgs| {
        let host = parse_url(&args.url)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        OutgoingData {
            to: Destination::Host(host.unwrap_or_default()),
            data: args.url,
        }
    })
    .with_phrases([
        "(fetch|download) [the] (page|url|article|website|link|) [at] {url:word}",
        "get [the] (page|url|article|website|link) [at] {url:word}",
        "(read|open|show) [me] [the] (page|url|article|website|link) [at] {url:word}",
        "what does [the] (page|url|article|website|) [at] {url:word} say",
        "what is on [the] (page|url|website) [at] {url:word}",
    ])
}

/// Returns the intent with the whole URL, because all of it is sent.
fn intent(guarded: &GuardedClient, url: &str) -> Result<Intent, ToolError> {
    let url = parse_page_url(url)
        .and_then(|url| check_url(&url, guarded.policy()).map(|()| url))
        .map_err(tool_failure)?;
    let pattern = format!("{}/*", url.origin().ascii_serialization());
    let (shows, subject) = (format!("fetches {url}"), url.to_string());
    Ok(Intent {
        level: Safety::Moderate,
        shows,
        subject,
        pattern: Some(pattern),
    })
}

async fn fetch(
    guarded: &GuardedClient,
    read_pdf: PdfReader,
    args: SearchFetchArgs,
) -> Result<String, ToolError> {
    let max_chars = args.max_chars.unwrap_or(DEFAULT_CHARS);
    if !(1..=MAX_CHARS).contains(&max_chars) {
        return Err(ToolError(format!(
            "max_chars is {max_chars}; it must be from 1 to {MAX_CHARS}"
        )));
    }
    let url = parse_page_url(&args.url).map_err(tool_failure)?;
    let page = guarded.get(url.as_str()).await.map_err(tool_failure)?;
    let source = page.url.clone();
    // Converting a large page takes a while and must not block other tasks.
    let text = tokio::task::spawn_blocking(move || page_text(&page, &*read_pdf)).await;
    let text = text.map_err(|_panic| ToolError("cannot read the page".to_owned()))??;
    let text = if text.is_empty() {
        "[the page has no text]".to_owned()
    } else {
        truncate_text(text, max_chars)
    };
    Ok(format!("source: {source}\n\n{text}"))
}

fn page_text(
    page: &FetchedPage,
    read_pdf: &dyn Fn(Vec<u8>) -> Result<String, String>,
) -> Result<String, ToolError> {
    match page.kind {
        ContentKind::Html => Ok(super::html_to_markdown(&page.text(), &page.url)),
        ContentKind::Text => Ok(strip_control_chars(page.text().trim())),
        ContentKind::Pdf => read_pdf(page.bytes.clone())
            .map(|text| strip_control_chars(text.trim()))
            .map_err(|error| ToolError(format!("{}: {error}", page.url))),
    }
}

fn truncate_text(mut text: String, max_chars: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max_chars) {
        let all = text.chars().count();
        text.truncate(end);
        text.push_str(&format!(
            "\n\n[cut after {max_chars} of {all} characters; a larger max_chars shows more]"
        ));
    }
    text
}

/// Parses a URL; the scheme `https://` may be omitted.
fn parse_page_url(text: &str) -> Result<Url, FetchError> {
    let text = text.trim().trim_start_matches('<').trim_end_matches('>');
    let host = text.split([':', '/', '?', '#']).next().unwrap_or_default();
    let is_bare =
        host.contains('.') && !host.starts_with('.') && !host.contains(char::is_whitespace);
    if is_bare {
        parse_url(&format!("https://{text}"))
    } else {
        parse_url(text)
    }
}

fn tool_failure(error: FetchError) -> ToolError {
    ToolError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_urls_without_scheme() {
        for (text, expected) in [
            ("example.com", Some("https://example.com/")),
            (
                "example.com:8080/a?b=http://c",
                Some("https://example.com:8080/a?b=http://c"),
            ),
            ("<http://example.com/a>", Some("http://example.com/a")),
            ("HTTP://EXAMPLE.com", Some("http://example.com/")),
            ("milk", None),
            ("../etc/passwd", None),
            ("see example.com", None),
            ("", None),
        ] {
            assert_eq!(
                parse_page_url(text).ok().map(String::from).as_deref(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn truncates_by_characters() {
        assert_eq!(truncate_text("äöü".to_owned(), 3), "äöü");
        assert!(
            truncate_text("äöüß".to_owned(), 3).starts_with("äöü\n\n[cut after 3 of 4 characters")
        );
    }
}
