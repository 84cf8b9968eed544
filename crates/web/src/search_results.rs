//! Parses the responses of search engines.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use lango_text::html::HtmlDocument;
use lango_text::sanitize::truncated_line;

const MAX_TITLE_CHARS: usize = 200;
const MAX_SNIPPET_CHARS: usize = 500;
const MAX_URL_BYTES: usize = 1_000;

/// A search result; all fields are single lines of plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebResult {
    pub title: String,
    pub url: String,
    pub snippet: String,
}

impl WebResult {
    /// Returns `None` if the URL cannot be fetched.
    fn new(title: &str, url: &str, snippet: &str) -> Option<Self> {
        let url = Url::parse(url.trim())
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let url = String::from(url);
        let (title, snippet) = (
            truncated_line(title, MAX_TITLE_CHARS),
            truncated_line(snippet, MAX_SNIPPET_CHARS),
        );
        let title = if title.is_empty() {
            truncated_line(&url, MAX_TITLE_CHARS)
        } else {
            title
        };
        (url.len() <= MAX_URL_BYTES).then_some(Self {
            title,
            url,
            snippet,
        })
    }

    pub fn map_text(&mut self, change: impl Fn(&str) -> String) {
        for text in [&mut self.title, &mut self.url, &mut self.snippet] {
            *text = change(text);
        }
    }
}

/// Parses one entry of a list. Texts may be missing or of another type.
fn parse_result(entry: &Value) -> Option<WebResult> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let plain = |text: Option<&str>| html_to_text(text.unwrap_or_default());
    WebResult::new(
        &plain(text("title")),
        text("url")?,
        &plain(text("content").or_else(|| text("description"))),
    )
}

pub fn parse_searxng(bytes: &[u8]) -> Result<Vec<WebResult>, String> {
    #[derive(Deserialize)]
    struct Reply {
        results: Vec<Value>,
    }
    let reply: Reply = parse_json(bytes)?;
    Ok(reply.results.iter().filter_map(parse_result).collect())
}

pub fn parse_brave(bytes: &[u8]) -> Result<Vec<WebResult>, String> {
    #[derive(Deserialize)]
    struct Reply {
        web: Option<Web>,
    }
    #[derive(Deserialize)]
    struct Web {
        #[serde(default)]
        results: Vec<Value>,
    }
    let reply: Reply = parse_json(bytes)?;
    Ok(reply
        .web
        .iter()
        .flat_map(|web| &web.results)
        .filter_map(parse_result)
        .collect())
}

fn parse_json<Reply: DeserializeOwned>(bytes: &[u8]) -> Result<Reply, String> {
    serde_json::from_slice(bytes).map_err(|_| "the response is not the expected JSON".to_owned())
}

/// Removes markup: engines highlight matched words and escape `&`.
fn html_to_text(html: &str) -> String {
    let document = HtmlDocument::parse(html, super::PAGE_LIMITS.nodes);
    (0..document.nodes.len())
        .filter(|at| document.element(*at).is_none())
        .map(|at| document.text(at))
        .collect()
}

/// Parses a page on which each result has a link of the class `result__a`, followed by a snippet.
pub fn parse_duckduckgo(html: &str, base: &Url) -> Result<Vec<WebResult>, String> {
    let document = HtmlDocument::parse(html, super::PAGE_LIMITS.nodes);
    let end = document.nodes.len();
    let mut results: Vec<WebResult> = Vec::new();
    let (mut ad_end, mut has_no_results, mut needs_snippet) = (0, false, false);
    for (at, element) in document.elements(0, end) {
        if element.has_class("result--ad") {
            ad_end = document.end(at);
        }
        has_no_results |= element.has_class("no-results") || element.has_class("result--no-result");
        if at < ad_end {
            continue;
        }
        if element.has_class("result__a") {
            let target = element
                .attribute("href")
                .and_then(|href| result_url(href, base));
            let result = target.and_then(|url| WebResult::new(&document.text(at), &url, ""));
            needs_snippet = result.is_some();
            results.extend(result);
        } else if element.has_class("result__snippet") && needs_snippet {
            let snippet = truncated_line(&document.text(at), MAX_SNIPPET_CHARS);
            if let Some(last) = results.last_mut() {
                last.snippet = snippet;
            }
            needs_snippet = false;
        }
    }
    if results.is_empty() && !has_no_results {
        return Err("the page contains no results; the engine may require a captcha".to_owned());
    }
    Ok(results)
}

/// Returns the target of a result. Links go through the engine with the target in `uddg`;
/// advertisements link to the engine itself.
fn result_url(href: &str, base: &Url) -> Option<String> {
    let link = base.join(href).ok()?;
    let is_own = link
        .host_str()
        .is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"))
        || link.host() == base.host();
    if !is_own {
        return Some(link.into());
    }
    let target = link
        .query_pairs()
        .find(|(name, _)| name == "uddg")
        .map(|(_, target)| target.into_owned())?;
    let is_ad = Url::parse(&target)
        .is_ok_and(|url| url.host_str() == Some("duckduckgo.com") && url.path() == "/y.js");
    (!is_ad).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(title: &str, url: &str, snippet: &str) -> WebResult {
        WebResult {
            title: title.to_owned(),
            url: url.to_owned(),
            snippet: snippet.to_owned(),
        }
    }

    #[test]
    fn parses_searxng_json() {
        let reply = br#"{ "query": "x", "results": [
            { "url": "https://a.example/", "title": "A\u001b[1m &amp; B", "content": "one\ntwo", "score": 1 },
            { "url": "https://b.example/", "title": null },
            { "url": "javascript:alert(1)", "title": "C", "content": "" },
            { "title": "no address" }, { "url": 5 }, null, "x",
            { "url": "https://c.example/", "title": [1], "content": null, "description": "d" } ] }"#;
        let expected = [
            result("A[1m & B", "https://a.example/", "one two"),
            result("https://b.example/", "https://b.example/", ""),
            result("https://c.example/", "https://c.example/", "d"),
        ];
        assert_eq!(parse_searxng(reply).unwrap(), expected);
        assert_eq!(parse_searxng(br#"{ "results": [] }"#).unwrap(), []);
        assert!(parse_searxng(b"<html>").is_err() && parse_searxng(b"{}").is_err());
    }

    #[test]
    fn parses_brave_json() {
        let reply = br#"{ "type": "search", "web": { "results": [
            { "title": "A", "url": "https://a.example/?q=1", "description": "some <strong>words</strong> &lt;b&gt;" } ] } }"#;
        assert_eq!(
            parse_brave(reply).unwrap(),
            [result("A", "https://a.example/?q=1", "some words <b>")]
        );
        assert_eq!(parse_brave(br#"{ "type": "search" }"#).unwrap(), []);
        assert!(parse_brave(b"[]").is_err());
    }

    #[test]
    fn parses_duckduckgo_html() {
        let page = r#"<div class="result results_links result--ad"><a class="result__a" href="https://ad.example/">Ad</a>
            <a class="result__snippet">buy</a></div>
            <div class="result results_links web-result"><h2 class="result__title">
            <a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx%3Fy%3D1%26z&amp;rut=abc">A <b>page</b></a>
            </h2><a class="result__snippet" href="/x">some <b>words</b></a></div>
            <div class="result"><a class="result__a" href="https://b.example/">B</a></div>
            <div class="result"><a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x">own</a>
            <a class="result__snippet">of nobody</a></div>
            <div class="result"><a class="result__a" href="//duckduckgo.com/l/?uddg=javascript%3Ax">bad</a></div>"#;
        let base = Url::parse("https://html.duckduckgo.com").unwrap();
        let expected = [
            result("A page", "https://a.example/x?y=1&z", "some words"),
            result("B", "https://b.example/", ""),
        ];
        assert_eq!(parse_duckduckgo(page, &base).unwrap(), expected);
        assert_eq!(
            parse_duckduckgo("<div class='no-results'>none</div>", &base).unwrap(),
            []
        );
        assert!(parse_duckduckgo("<form class=anomaly-modal>", &base).is_err());
    }
}
