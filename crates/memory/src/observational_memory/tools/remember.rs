//! Tools that add memories: `memory_store` and `observe_event`.

use lango_domain::memory::{MemoryKind, MemoryNote, MemoryPriority, MemorySpeaker, NewMemory};
use lango_domain::{Safety, Tool, ToolContext, ToolError};
use lango_text::sanitize::one_line;
use lango_text::token_estimate;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{LazyMemory, tool_error};
use crate::observational_memory::ObservationalMemory;
use crate::observational_memory::rules::{default_priority, detect_kind, is_user_wording};

/// Maximum tokens of one memory.
const MAX_MEMORY_TOKENS: usize = 90;

#[derive(Deserialize, JsonSchema)]
struct MemoryStoreArgs {
    #[schemars(
        description = "What to remember, in the user's own words where there are any: one sentence."
    )]
    content: String,
    #[schemars(description = "What kind of thing it is; found out when left out.")]
    kind: Option<MemoryKind>,
    #[schemars(description = "How much it matters later; medium or more when left out.")]
    priority: Option<MemoryPriority>,
}

#[derive(Deserialize, JsonSchema)]
struct ObserveEventArgs {
    #[schemars(description = "What happened or was said, in one sentence.")]
    event: String,
    #[schemars(description = "What kind of thing it is; an event when left out.")]
    kind: Option<MemoryKind>,
    #[schemars(description = "How much it matters later; medium when left out.")]
    priority: Option<MemoryPriority>,
}

pub(super) fn memory_store(memory: LazyMemory) -> Tool {
    let description =
        "Remembers something about the user or the conversation, for this and every later one.";
    Tool::new(
        "memory_store",
        description,
        Safety::Moderate,
        move |context, args: MemoryStoreArgs| {
            let memory = memory.clone();
            async move {
                let kind = args.kind.unwrap_or_else(|| detect_kind(&args.content));
                let priority = args.priority.unwrap_or_else(|| default_priority(kind));
                let memory = super::open_memory(&memory).await?;
                memory
                    .remember(&context, &args.content, kind, priority)
                    .await
            }
        },
    )
    .with_phrases([
        "remember that {content}",
        "remember {content}",
        "keep in mind that {content}",
        "note that {content}",
        "(dont|do not) forget that {content}",
    ])
}

pub(super) fn observe_event(memory: LazyMemory) -> Tool {
    let description =
        "Notes down something that happened in this conversation, so that it is known later.";
    Tool::new(
        "observe_event",
        description,
        Safety::Moderate,
        move |context, args: ObserveEventArgs| {
            let memory = memory.clone();
            async move {
                let kind = args.kind.unwrap_or(MemoryKind::Event);
                let priority = args.priority.unwrap_or(MemoryPriority::Medium);
                let memory = super::open_memory(&memory).await?;
                memory.remember(&context, &args.event, kind, priority).await
            }
        },
    )
    .with_phrases([
        "observe that {event}",
        "(note|log|record) the event {event}",
        "(log|record) that {event}",
    ])
}

impl ObservationalMemory {
    async fn remember(
        &self,
        context: &ToolContext,
        content: &str,
        kind: MemoryKind,
        priority: MemoryPriority,
    ) -> Result<String, ToolError> {
        let text = one_line(content);
        if text.is_empty() {
            return Err(ToolError(
                "there is nothing to remember; say it in one sentence".to_owned(),
            ));
        }
        if token_estimate::estimate(&text) > MAX_MEMORY_TOKENS {
            return Err(ToolError(
                "the text is too long to remember; say it in at most 60 words".to_owned(),
            ));
        }
        if self.is_secret(&text) {
            return Err(ToolError(
                "this looks like a password or a key; secrets are not remembered".to_owned(),
            ));
        }
        let key = context.session_key();
        let request = self
            .memories()
            .request(&key, &context.turn)
            .await
            .map_err(tool_error)?;
        let message = request.as_ref().map_or("", |(_, text)| text.as_str());
        let speaker = if is_user_wording(&text, message) {
            MemorySpeaker::User
        } else {
            MemorySpeaker::Others
        };
        let note = MemoryNote {
            text: text.clone(),
            kind,
            priority,
            speaker,
            label: context.label.clone(),
            at: self.now(),
        };
        let memory = NewMemory {
            note,
            turn: context.turn.clone(),
            sources: request.map(|(seq, _)| seq).into_iter().collect(),
        };
        let id = self
            .memories()
            .store(&key, memory)
            .await
            .map_err(tool_error)?;
        Ok(format!("Remembered as {id} ({kind}): {text}"))
    }
}
