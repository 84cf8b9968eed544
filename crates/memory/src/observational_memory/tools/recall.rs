//! Tools that read memories: recall, the two lists, and `reflect_summary`.

use lango_domain::event::SessionId;
use lango_domain::memory::{Memory, MemoryLevel, MemoryQuery};
use lango_domain::{Safety, Tool, ToolContext};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{LazyMemory, MAX_LIMIT, check_limit, memories_output, tool_error};
use crate::observational_memory::recall::RecallMode;

#[derive(Deserialize, JsonSchema)]
struct MemoryRecallArgs {
    #[schemars(description = "The question, in the words of whoever asks.")]
    query: String,
    #[schemars(description = "How many, from 1 to 100.")]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct MemoryListToolArgs {
    /// Of this session only; of all of them when left out.
    session: Option<String>,
    #[schemars(description = "How many, from 1 to 100, the newest first.")]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct ReflectArgs {}

pub(super) fn memory_recall(memory: LazyMemory) -> Tool {
    let description = "Finds what is remembered of all conversations with the user \
        that fits a question, each with its date and id.";
    Tool::new(
        "memory_recall",
        description,
        Safety::Safe,
        move |context: ToolContext, args: MemoryRecallArgs| {
            let memory = memory.clone();
            async move {
                let limit = check_limit(args.limit)?;
                let memory = super::open_memory(&memory).await?;
                let recalled = memory
                    .recall(&context.principal, &args.query, RecallMode::Explicit, limit)
                    .await
                    .map_err(tool_error)?;
                let memories: Vec<Memory> =
                    recalled.into_iter().map(|found| found.memory).collect();
                let empty_text = "Nothing is remembered about that.";
                Ok(memories_output(&memories, empty_text))
            }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "what do you (know|remember) about {query}",
        "what {query}",
        "when {query}",
        "where {query}",
        "who {query}",
        "which {query}",
        "how {query}",
        "do you (remember|know|recall) {query}",
        "have (we|i) {query}",
        "did (we|i) {query}",
        "(recall|remember) what {query}",
        "recall {query}",
    ])
}

pub(super) fn memory_list_observations(memory: LazyMemory) -> Tool {
    list_tool(
        memory,
        "memory_list_observations",
        "Lists observations of conversations with the user, the newest first.",
        MemoryLevel::Observations,
    )
    .with_phrases([
        "(list|show) [me] [all] [the] [my] [your] (observations|memories)",
        "what do you (remember|know) [about me]",
    ])
}

pub(super) fn memory_list_reflections(memory: LazyMemory) -> Tool {
    let description = "Lists reflections: \
        what observations of a conversation were condensed to, the newest first.";
    list_tool(
        memory,
        "memory_list_reflections",
        description,
        MemoryLevel::Reflections,
    )
    .with_phrases(["(list|show) [me] [all] [the] [my] [your] reflections"])
}

fn list_tool(memory: LazyMemory, name: &str, description: &str, level: MemoryLevel) -> Tool {
    Tool::new(
        name,
        description,
        Safety::Safe,
        move |context: ToolContext, args: MemoryListToolArgs| {
            let memory = memory.clone();
            async move {
                let session = args.session.filter(|session| !session.trim().is_empty());
                let query = MemoryQuery {
                    level,
                    session: session.map(SessionId::new),
                    limit: check_limit(args.limit)?,
                };
                let memory = super::open_memory(&memory).await?;
                let listed = memory.memories().list(&context.principal, query);
                let listed = listed.await.map_err(tool_error)?;
                Ok(memories_output(&listed, "There is nothing yet."))
            }
        },
    )
    .with_untrusted_output()
    .with_private_output()
}

pub(super) fn reflect_summary(memory: LazyMemory) -> Tool {
    let description =
        "Condenses what was observed in this conversation so far, and gives the reflections.";
    Tool::new(
        "reflect_summary",
        description,
        Safety::Moderate,
        move |context: ToolContext, _: ReflectArgs| {
            let memory = memory.clone();
            async move {
                let memory = super::open_memory(&memory).await?;
                let key = context.session_key();
                memory.reflect(&key).await.map_err(tool_error)?;
                let query = MemoryQuery {
                    level: MemoryLevel::Reflections,
                    session: Some(key.session),
                    limit: MAX_LIMIT,
                };
                let listed = memory.memories().list(&key.principal, query);
                let mut listed = listed.await.map_err(tool_error)?;
                listed.reverse();
                let empty_text = "Nothing was observed in this conversation yet.";
                Ok(memories_output(&listed, empty_text))
            }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "(reflect on|summarise|summarize) [our] [this] [the] (conversation|history|session)",
        "reflect",
    ])
}
