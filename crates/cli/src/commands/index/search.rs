//! `lango index search`: passages for a query.

use std::fmt::Write as _;

use lango_app::capability::documents::document_index::DocumentIndex;
use lango_app::capability::documents::passage_json;
use lango_domain::documents::SpanUnit;
use lango_domain::documents::{Passage, SearchScope};
use lango_domain::event::Principal;
use lango_text::sanitize::{one_line, strip_control_chars};
use lango_text::suggest::did_you_mean;
use serde_json::json;

use super::index_error;
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub async fn search(
    index: &DocumentIndex,
    query: &str,
    collection: Option<String>,
    limit: usize,
) -> Result<CommandOutput, CliError> {
    if query.trim().is_empty() {
        return Err(CliError::usage("the query is empty"));
    }
    let mut warnings = unknown_collection_warning(index, collection.as_deref()).await?;
    let scope = SearchScope {
        principal: Principal::local(),
        session: None,
        collections: collection.map(|name| vec![name]),
    };
    let (passages, embedding_error) = index
        .search_with_fallback(query, &scope, limit)
        .await
        .map_err(index_error)?;
    warnings.extend(embedding_error.map(|error| {
        format!("embeddings failed, so only the lexical index was searched: {error}")
    }));
    let mut plain = String::new();
    for passage in &passages {
        let heading = if passage.heading.is_empty() {
            String::new()
        } else {
            format!("  {}", one_line(&passage.heading))
        };
        let score = styled(DIM, format!("{:.2}", passage.score));
        let source = styled(NAME, citation(passage));
        let _ = writeln!(
            plain,
            "{source}{heading}  {score}\n{}\n",
            strip_control_chars(passage.text.trim())
        );
    }
    if passages.is_empty() {
        plain.push_str("No passages found.\n");
    }
    let json = json!({ "items": passages.iter().map(passage_json).collect::<Vec<_>>() });
    Ok(CommandOutput::new(plain, json).with_warnings(warnings))
}

fn citation(passage: &Passage) -> String {
    let (source, first, last) = (
        one_line(&passage.source),
        passage.span.first,
        passage.span.last,
    );
    match passage.span.unit {
        SpanUnit::Lines if first == last => format!("{source}:{first}"),
        SpanUnit::Lines => format!("{source}:{first}-{last}"),
        SpanUnit::Pages if first == last => format!("{source}, page {first}"),
        SpanUnit::Pages => format!("{source}, pages {first}-{last}"),
    }
}

/// Warns about an unknown collection, since searching it finds nothing without an error.
async fn unknown_collection_warning(
    index: &DocumentIndex,
    collection: Option<&str>,
) -> Result<Vec<String>, CliError> {
    let Some(name) = collection else {
        return Ok(Vec::new());
    };
    let collections = index.store().collections(&Principal::local()).await?;
    if collections.iter().any(|known| known.name == name) {
        return Ok(Vec::new());
    }
    let hint = did_you_mean(name, collections.iter().map(|known| known.name.as_str()));
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    Ok(vec![format!("unknown collection {}{hint}", one_line(name))])
}
