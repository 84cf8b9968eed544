//! The tool that forgets: `memory_forget`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{DEFAULT_LIMIT, LazyMemory, tool_error};
use crate::forget::{ForgetSelection, LearnedItem};
use crate::observational_memory::ObservationalMemory;

#[derive(Deserialize, JsonSchema)]
struct MemoryForgetArgs {
    /// Ids of memories (o12, r3) with commas between them, or the words of what to forget.
    what: String,
}

pub(super) fn memory_forget(memory: LazyMemory) -> Tool {
    let description = "Forgets for good what was learned from some words: \
        memories, knowledge, learnings, inquiries and facts, and everything that was made of them. \
        The conversations themselves stay.";
    let memory_for_intent = memory.clone();
    Tool::new(
        "memory_forget",
        description,
        Safety::Dangerous,
        move |context: ToolContext, args: MemoryForgetArgs| {
            let memory = memory.clone();
            async move {
                let memory = super::open_memory(&memory).await?;
                let (to_forget, related) = find_to_forget(&memory, &context, &args.what).await?;
                let forgotten = memory
                    .forgetter()
                    .forget(&context.principal, &to_forget)
                    .await
                    .map_err(tool_error)?;
                Ok(format_forgotten(&forgotten, &related))
            }
        },
    )
    .with_intent(move |context: ToolContext, args: MemoryForgetArgs| {
        let memory = memory_for_intent.clone();
        async move {
            let memory = super::open_memory(&memory).await?;
            let (to_forget, _) = find_to_forget(&memory, &context, &args.what).await?;
            let lines: Vec<String> = to_forget.iter().map(LearnedItem::display_line).collect();
            Ok(Intent {
                level: Safety::Dangerous,
                shows: format!("forget for good:\n{}", lines.join("\n")),
                subject: args.what,
                pattern: None,
            })
        }
    })
    .with_phrases([
        "forget that {what}",
        "forget about {what}",
        "forget what (i|we) said about {what}",
        "forget {what}",
        "(delete|erase|remove) [the] (memory|memories|observation) [about] {what}",
    ])
}

/// Returns the items to forget, and the related items that stay.
async fn find_to_forget(
    memory: &ObservationalMemory,
    context: &ToolContext,
    query: &str,
) -> Result<(Vec<LearnedItem>, Vec<LearnedItem>), ToolError> {
    let selection = memory
        .forgetter()
        .find_to_forget(&context.principal, query)
        .await
        .map_err(tool_error)?;
    match selection {
        ForgetSelection::Matched { to_forget, related } => Ok((to_forget, related)),
        ForgetSelection::NoMatch => Err(ToolError(
            "nothing like that is remembered; use memory_recall to find what is".to_owned(),
        )),
        ForgetSelection::Ambiguous(items) => {
            let lines: Vec<String> = items
                .iter()
                .take(DEFAULT_LIMIT)
                .map(LearnedItem::display_line)
                .collect();
            Err(ToolError(format!(
                "nothing was forgotten: several items mention that, and none states exactly that. \
                 Say which one, by id or in its own words, or say \"everything about\" it:\n{}",
                lines.join("\n")
            )))
        }
    }
}

/// Formats forgotten items by kind and id. Their text is not repeated, since later turns would read it.
fn format_forgotten(forgotten: &[LearnedItem], related: &[LearnedItem]) -> String {
    let mut text = format!("Forgotten: {}.", format_item_ids(forgotten));
    if !related.is_empty() {
        let ids = format_item_ids(related);
        let _ = write!(
            text,
            " Not forgotten, because it also says other things: {ids}."
        );
    }
    text
}

fn format_item_ids(items: &[LearnedItem]) -> String {
    let mut ids_by_kind: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for item in items {
        let ids = ids_by_kind.entry(item.id.kind()).or_default();
        ids.insert(item.id.to_string());
    }
    let lists = ids_by_kind
        .into_iter()
        .map(|(kind, ids)| format!("{kind} {}", ids.into_iter().collect::<Vec<_>>().join(", ")));
    lists.collect::<Vec<_>>().join("; ")
}
