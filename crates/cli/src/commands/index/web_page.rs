//! Adds a web page to the document index.

use std::path::Path;
use std::time::Duration;

use lango_app::capability::documents::document_index::{
    DocumentIndex, IngestReport, chunk_document,
};
use lango_app::capability::documents::parse::{self, ParsedDocument};
use lango_app::{ContentKind, FetchLimits, FetchedPage, GuardedClient, policy_for_user_url};
use lango_domain::documents::NewDocument;
use lango_domain::event::Principal;

use super::index_error;
use crate::output::CliError;

/// Longer than for tools, since the user asked for this page.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the normalized URL without its fragment.
pub fn normalize_url(url: &str) -> String {
    let Ok(mut parsed) = lango_app::parse_url(url) else {
        return url.to_owned();
    };
    parsed.set_fragment(None);
    parsed.into()
}

/// Adds the page. The inner error is the reason why the page was skipped.
///
/// A URL that the user typed may be on a private network and redirect within it; any other may not.
pub async fn add(
    index: &DocumentIndex,
    url: &str,
    collection: &str,
) -> Result<Result<IngestReport, String>, CliError> {
    let url = normalize_url(url);
    let url = url.as_str();
    let body = usize::try_from(parse::MAX_BYTES).unwrap_or(usize::MAX);
    let limits = FetchLimits {
        body,
        total: FETCH_TIMEOUT,
        ..FetchLimits::default()
    };
    let page = match GuardedClient::new(policy_for_user_url(url).await, limits)
        .get(url)
        .await
    {
        Ok(page) => page,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let hash = parse::content_hash(&page.bytes);
    let sources = index
        .store()
        .sources(&Principal::local(), collection)
        .await?;
    let existing = sources.into_iter().find(|source| source.source == url);
    if existing.as_ref().is_some_and(|source| source.hash == hash) {
        return Ok(Ok(IngestReport {
            unchanged: 1,
            ..IngestReport::default()
        }));
    }
    let document = match parse_page(page) {
        Ok(document) => document,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let chunks = chunk_document(&document);
    let (new, changed) = if existing.is_some() { (0, 1) } else { (1, 0) };
    let added = IngestReport {
        new,
        changed,
        chunks: chunks.len(),
        ..IngestReport::default()
    };
    let (collection, source, root) = (collection.to_owned(), url.to_owned(), url.to_owned());
    let title = document.title.unwrap_or_else(|| url.to_owned());
    let document = NewDocument {
        collection,
        source,
        root,
        title,
        hash,
        session: None,
        chunks,
    };
    index
        .ingest_documents(&Principal::local(), vec![document])
        .await
        .map_err(index_error)?;
    Ok(Ok(added))
}

/// Parses the page by its content type, or by the file name in its URL.
fn parse_page(page: FetchedPage) -> Result<ParsedDocument, parse::ParseError> {
    let file_name = page
        .url
        .path_segments()
        .and_then(|mut segments| segments.next_back())
        .unwrap_or_default();
    match page.kind {
        ContentKind::Pdf => parse::parse_document(Path::new("page.pdf"), page.bytes),
        ContentKind::Html => {
            parse::parse_document(Path::new("page.html"), page.text().into_bytes())
        }
        ContentKind::Text => parse::parse_document(Path::new(file_name), page.text().into_bytes()),
    }
}
