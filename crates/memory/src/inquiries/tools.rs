//! The librarian's tools for inquiries (S83).

use lango_domain::Clock;
use lango_domain::StoreError;
use lango_domain::inquiries::{Finder, Inquiry, InquiryStore};
use lango_domain::{Safety, Tool, ToolError};
use lango_text::sanitize::one_line;
use schemars::JsonSchema;
use serde::Deserialize;

use lango_domain::lazy::Lazy;

const DEFAULT_LIMIT: usize = 5;
const MAX_LIMIT: usize = 50;

pub fn tools(store: &Lazy<dyn InquiryStore>, now: &Clock) -> Vec<Tool> {
    vec![pending(store.clone()), dismiss(store.clone(), now.clone())]
}

#[derive(Deserialize, JsonSchema)]
struct PendingInquiriesArgs {
    #[schemars(description = "How many, from 1 to 50; 5 if left out.")]
    limit: Option<usize>,
}

fn pending(store: Lazy<dyn InquiryStore>) -> Tool {
    let description =
        "Lists the questions that wait for an answer of the user's, the oldest first.";
    Tool::new(
        "librarian_pending_inquiries",
        description,
        Safety::Safe,
        move |context, args: PendingInquiriesArgs| {
            let store = store.clone();
            async move {
                let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
                if !(1..=MAX_LIMIT).contains(&limit) {
                    let message = format!("`limit` must be from 1 to {MAX_LIMIT}");
                    return Err(ToolError(message));
                }
                let store = store.get().await.map_err(tool_error)?;
                let pending = store
                    .pending(&context.principal)
                    .await
                    .map_err(tool_error)?;
                if pending.is_empty() {
                    return Ok("No inquiry is pending.".to_owned());
                }
                Ok(pending
                    .iter()
                    .take(limit)
                    .map(inquiry_line)
                    .collect::<Vec<_>>()
                    .join("\n"))
            }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "(list|show) [me] [the] [my] [all] [pending] [open] inquiries",
        "(what|which) inquiries are (pending|open|there)",
        "(are there|do you have) [any] (pending|open|) inquiries",
        "what (do|would) you (want|like) to know [from me]",
        "do you have [any] [open] questions for me",
    ])
}

#[derive(Deserialize, JsonSchema)]
struct DismissInquiryArgs {
    /// The number of the inquiry.
    inquiry_id: u64,
}

fn dismiss(store: Lazy<dyn InquiryStore>, now: Clock) -> Tool {
    let description = "Takes a pending inquiry off the list \
        because the user does not want to answer it; it is not asked again.";
    Tool::new(
        "librarian_dismiss_inquiry",
        description,
        Safety::Moderate,
        move |context, args: DismissInquiryArgs| {
            let (store, at) = (store.clone(), now());
            async move {
                let store = store.get().await.map_err(tool_error)?;
                let id = args.inquiry_id;
                let dismissed = store.dismiss(&context.principal, id, at);
                if dismissed.await.map_err(tool_error)? {
                    Ok(format!("Inquiry {id} is dismissed and will not be asked again."))
                } else {
                    Err(ToolError(format!(
                        "inquiry {id} is not pending; use librarian_pending_inquiries to list those that are"
                    )))
                }
            }
        },
    )
    .with_phrases([
        "(dismiss|drop|skip) [the] inquiry [number] {inquiry_id:word}",
        "(do not|dont) ask [me] [about] [the] inquiry [number] {inquiry_id:word} [again]",
    ])
}

fn tool_error(error: StoreError) -> ToolError {
    ToolError(error.to_string())
}

/// Formats an inquiry on one line.
pub fn inquiry_line(inquiry: &Inquiry) -> String {
    let suffix = match inquiry.found_by {
        Finder::Model => "",
        Finder::Rule => ", found by rule",
    };
    let Inquiry {
        id,
        topic,
        question,
        ..
    } = inquiry;
    format!(
        "{id}. {} (about {}{suffix})",
        one_line(question),
        one_line(topic)
    )
}
