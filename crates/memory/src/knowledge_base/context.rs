//! Adds the knowledge entries that a request names to its context.

use std::collections::HashSet;

use futures::future::{BoxFuture, FutureExt};
use lango_domain::hooks::{ContextError, ContextRequest, ContextSource};
use lango_domain::knowledge::KnowledgeEntry;
use lango_domain::{Label, LabeledText};

use super::{KnowledgeBase, entry_line};
use lango_text::{analyze, analyze_query};

const TOKEN_CAP: usize = 300;
const MAX_ENTRIES: usize = 4;
/// Most bytes of a request that are analyzed.
const MAX_BYTES: usize = 4_000;

/// Provides the entries whose keys occur, word by word, in the request.
pub struct KnowledgeContext(pub KnowledgeBase);

impl ContextSource for KnowledgeContext {
    fn name(&self) -> &str {
        "knowledge"
    }

    fn max_tokens(&self) -> usize {
        TOKEN_CAP
    }

    fn gather(
        &self,
        request: ContextRequest,
    ) -> BoxFuture<'static, Result<Option<LabeledText>, ContextError>> {
        let knowledge_base = self.0.clone();
        async move {
            let context_error = |error: lango_domain::StoreError| ContextError(error.to_string());
            let store = knowledge_base.store.get().await.map_err(context_error)?;
            let entries = store
                .entries(&request.principal)
                .await
                .map_err(context_error)?;
            let named = entries_named_in(&request.text, &entries);
            let lines: Vec<String> = named.iter().map(|entry| entry_line(entry)).collect();
            let label = named
                .iter()
                .fold(Label::private("knowledge"), |label, entry| {
                    label.joined(&entry.source.label)
                });
            Ok((!lines.is_empty()).then(|| LabeledText {
                text: lines.join("\n"),
                label,
            }))
        }
        .boxed()
    }
}

/// Returns the entries that a request names. The longest keys come first, as the most specific.
fn entries_named_in<'a>(request: &str, entries: &'a [KnowledgeEntry]) -> Vec<&'a KnowledgeEntry> {
    let request = &request[..request.floor_char_boundary(MAX_BYTES.min(request.len()))];
    let request_terms: HashSet<String> = analyze(request).into_iter().collect();
    let key_length_if_named = |entry: &KnowledgeEntry| {
        let words = analyze_query(&entry.key);
        let is_named = words
            .iter()
            .all(|word| word.iter().any(|term| request_terms.contains(term)));
        (is_named && !words.is_empty()).then_some(words.len())
    };
    let mut named: Vec<(usize, &KnowledgeEntry)> = entries
        .iter()
        .filter_map(|entry| Some((key_length_if_named(entry)?, entry)))
        .collect();
    named.sort_by_key(|(words, _)| std::cmp::Reverse(*words));
    named
        .into_iter()
        .take(MAX_ENTRIES)
        .map(|(_, entry)| entry)
        .collect()
}
