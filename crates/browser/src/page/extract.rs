//! Content of a page in other forms than the outline.

use lango_text::html::{HtmlLimits, ReadablePage};
use lango_text::sanitize::strip_control_chars;
use lango_text::token_estimate;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::{Page, check};
use crate::error::{BrowserError, Result};
use crate::refs::ElementRef;

/// Most characters of HTML that is read for an article.
const MAX_HTML_CHARS: usize = 2_000_000;
const ARTICLE_LIMITS: HtmlLimits = HtmlLimits {
    nodes: 200_000,
    output_bytes: 512 * 1024,
};
const ARTICLE_TOKENS: usize = 4_000;
const LIST_TOKENS: usize = 2_000;

/// The part of a page to extract.
#[derive(Clone, Copy, Debug)]
pub struct ExtractScope {
    pub element: Option<ElementRef>,
    pub offset: usize,
    pub limit: usize,
}

#[derive(Deserialize)]
struct PageLink {
    r#ref: u64,
    text: String,
    url: String,
}

/// A result of a search page.
#[derive(Deserialize)]
pub struct SearchHit {
    pub r#ref: u64,
    pub title: String,
    pub url: String,
    pub text: String,
}

#[derive(Deserialize)]
struct PageTable {
    r#ref: u64,
    caption: String,
    rows: Vec<Vec<String>>,
    total: usize,
}

#[derive(Deserialize)]
struct PageForm {
    r#ref: u64,
    name: String,
    method: String,
    action: String,
    fields: Vec<String>,
}

impl Page {
    async fn read(&self, scope: ExtractScope, name: &str, mut args: Value) -> Result<Value> {
        args["next"] = json!(0);
        match scope.element {
            Some(element) => self.call_on(element, name, args).await,
            None => {
                args["ref"] = json!(0);
                check(self.call(&self.main_frame(), name, args).await?)
            }
        }
    }

    /// Returns the readable text of the page as markdown.
    pub async fn article(&self, scope: ExtractScope) -> Result<String> {
        let page = self
            .read(scope, "html", json!({ "cap": MAX_HTML_CHARS }))
            .await?;
        let html = page["html"].as_str().unwrap_or_default().to_owned();
        let base = Url::parse(page["url"].as_str().unwrap_or_default()).ok();
        let convert =
            move || ReadablePage::from_html(&html, base.as_ref(), ARTICLE_LIMITS).markdown();
        let text = tokio::task::spawn_blocking(convert).await;
        let text = text.map_err(|_panic| BrowserError::action("the page cannot be read"))?;
        let text = strip_control_chars(&text);
        let lines: Vec<&str> = text.lines().collect();
        let rest = lines.get(scope.offset..).unwrap_or_default();
        Ok(cap_lines(
            rest.iter().map(|line| (*line).to_owned()),
            scope,
            ARTICLE_TOKENS,
            usize::MAX,
        ))
    }

    pub async fn links(&self, scope: ExtractScope) -> Result<String> {
        let found = self.read(scope, "links", json!({})).await?;
        let links: Vec<PageLink> = parse(&found["links"])?;
        let lines = links.iter().skip(scope.offset);
        let lines = lines.map(|link| format!("[e{} \"{}\"] {}", link.r#ref, link.text, link.url));
        Ok(cap_lines(lines, scope, LIST_TOKENS, scope.limit))
    }

    pub async fn tables(&self, scope: ExtractScope) -> Result<String> {
        let found = self.read(scope, "tables", json!({})).await?;
        let tables: Vec<PageTable> = parse(&found["tables"])?;
        if tables.is_empty() {
            return Ok("[no table]\n".to_owned());
        }
        let mut text = String::new();
        for table in tables {
            text += &format!(
                "table e{} {} ({} rows)\n",
                table.r#ref, table.caption, table.total
            );
            let rows = table.rows.iter().enumerate().skip(scope.offset);
            let rows = rows.map(|(at, row)| format_row(row, at == 0));
            text += &cap_lines(rows, scope, LIST_TOKENS, scope.limit);
        }
        Ok(token_estimate::truncate(&text, 2 * LIST_TOKENS).to_owned())
    }

    pub async fn forms(&self, scope: ExtractScope) -> Result<String> {
        let found = self.read(scope, "forms", json!({})).await?;
        let forms: Vec<PageForm> = parse(&found["forms"])?;
        if forms.is_empty() {
            return Ok("[no form]\n".to_owned());
        }
        let lines = forms.iter().flat_map(|form| {
            let head = match form.r#ref {
                0 => "fields outside of forms".to_owned(),
                number => format!(
                    "form e{number} {} ({} {})",
                    form.name, form.method, form.action
                ),
            };
            std::iter::once(head).chain(form.fields.iter().cloned())
        });
        Ok(cap_lines(lines, scope, LIST_TOKENS, usize::MAX))
    }

    pub async fn summary(&self, scope: ExtractScope) -> Result<String> {
        let found = self.read(scope, "summary", json!({})).await?;
        let mut text = String::new();
        if let Some(description) = found["description"]
            .as_str()
            .filter(|text| !text.is_empty())
        {
            text += &format!("{description}\n");
        }
        for heading in found["headings"].as_array().into_iter().flatten() {
            text += &format!("{}\n", heading.as_str().unwrap_or_default());
        }
        text += &format!(
            "{} links, {} forms, {} fields, {} tables\n",
            found["links"], found["forms"], found["fields"], found["tables"]
        );
        Ok(token_estimate::truncate(&text, LIST_TOKENS).to_owned())
    }

    pub async fn search_hits(&self, scope: ExtractScope) -> Result<Vec<SearchHit>> {
        let found = self.read(scope, "results", json!({})).await?;
        parse(&found["results"])
    }
}

/// Formats results, each with its reference.
pub fn format_hits(hits: &[SearchHit], scope: ExtractScope) -> String {
    if hits.is_empty() {
        return "[no results]\n".to_owned();
    }
    let entries = hits.iter().skip(scope.offset);
    let entries = entries.map(|hit| {
        format!(
            "[e{} \"{}\"] {}\n  {}",
            hit.r#ref, hit.title, hit.url, hit.text
        )
    });
    cap_lines(entries, scope, LIST_TOKENS, scope.limit)
}

fn format_row(cells: &[String], is_head: bool) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let row = format!("| {} |", cells.join(" | "));
    if is_head {
        let line = "---|".repeat(cells.len());
        return format!("{row}\n|{line}");
    }
    row
}

fn cap_lines(
    lines: impl Iterator<Item = String>,
    scope: ExtractScope,
    tokens: usize,
    limit: usize,
) -> String {
    let (mut text, mut used, mut shown, mut left_out) = (String::new(), 0, 0, 0);
    for line in lines {
        used += token_estimate::estimate(&line) + 1;
        if left_out > 0 || shown >= limit || (used > tokens && shown > 0) {
            left_out += 1;
            continue;
        }
        let line = token_estimate::truncate(&line, tokens);
        text.push_str(line);
        text.push('\n');
        shown += 1;
    }
    if left_out > 0 {
        let next = scope.offset + shown;
        text += &format!("… {left_out} more: offset {next}\n");
    }
    if text.is_empty() {
        text.push_str("[nothing]\n");
    }
    text
}

fn parse<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
    serde_json::from_value(value.clone())
        .map_err(|error| BrowserError::Protocol(format!("unexpected content: {error}")))
}
