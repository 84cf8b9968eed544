//! The chronicler's tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use lango_domain::event::SessionId;
use lango_domain::memory::{
    Memory, MemoryId, MemoryKind, MemoryLevel, MemoryNote, MemoryPriority, MemoryQuery,
    MemorySpeaker, NewMemory,
};
use lango_domain::session::SessionKey;
use lango_domain::text::one_line;
use lango_domain::{
    Intent, LabeledText, Safety, Tool, ToolContext, ToolError, ToolOutput, token_estimate,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::recall::RecallMode;
use super::rules::{default_priority, detect_kind, is_user_wording};
use super::{ObservationalMemory, digest};
use crate::forget::{ForgetSelection, LearnedItem};
use crate::lazy::Lazy;

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;
/// What is longer is not one thing to remember.
const MAX_MEMORY_TOKENS: usize = 90;

/// Tools after which the user's words of the turn are not observed as well.
pub(super) const MEMORY_CHANGING_TOOLS: [&str; 3] =
    ["memory_store", "memory_forget", "observe_event"];

pub(super) fn is_memory_tool(name: &str) -> bool {
    ["memory_", "observe_", "reflect_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[derive(Deserialize, JsonSchema)]
struct MemoryStoreArgs {
    /// What to remember, in the user's own words where there are any: one sentence.
    content: String,
    /// What kind of thing it is; found out when left out.
    kind: Option<MemoryKind>,
    /// How much it matters later; medium or more when left out.
    priority: Option<MemoryPriority>,
}

#[derive(Deserialize, JsonSchema)]
struct ObserveEventArgs {
    /// What happened or was said, in one sentence.
    event: String,
    /// What kind of thing it is; an event when left out.
    kind: Option<MemoryKind>,
    /// How much it matters later; medium when left out.
    priority: Option<MemoryPriority>,
}

#[derive(Deserialize, JsonSchema)]
struct MemoryRecallArgs {
    /// The question, in the words of whoever asks.
    query: String,
    /// How many, from 1 to 100.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct MemoryListToolArgs {
    /// Of this session only; of all of them when left out.
    session: Option<String>,
    /// How many, from 1 to 100, the newest first.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct MemoryForgetArgs {
    /// Ids of memories (o12, r3) with commas between them, or the words of what to forget.
    what: String,
}

#[derive(Deserialize, JsonSchema)]
struct ReflectArgs {}

/// The memory that all tools share, once it is opened; why it cannot be, else.
type LazyMemory = Lazy<ObservationalMemory, String>;

impl LazyMemory {
    async fn open_memory(&self) -> Result<Arc<ObservationalMemory>, ToolError> {
        self.get().await.cloned().map_err(tool_error)
    }
}

fn tool_error(error: impl std::fmt::Display) -> ToolError {
    ToolError(format!("memory cannot be used: {error}"))
}

pub fn tools(desk: Lazy<ObservationalMemory, String>) -> Vec<Tool> {
    vec![
        store(desk.clone()),
        recall(desk.clone()),
        list_observations(desk.clone()),
        list_reflections(desk.clone()),
        forget(desk.clone()),
        observe(desk.clone()),
        reflect(desk),
    ]
}

fn store(desk: LazyMemory) -> Tool {
    let described =
        "Remembers something about the user or the conversation, for this and every later one.";
    Tool::new(
        "memory_store",
        described,
        Safety::Moderate,
        move |context, args: MemoryStoreArgs| {
            let desk = desk.clone();
            async move {
                let kind = args.kind.unwrap_or_else(|| detect_kind(&args.content));
                let priority = args.priority.unwrap_or_else(|| default_priority(kind));
                desk.open_memory()
                    .await?
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

fn observe(desk: LazyMemory) -> Tool {
    let described =
        "Notes down something that happened in this conversation, so that it is known later.";
    Tool::new(
        "observe_event",
        described,
        Safety::Moderate,
        move |context, args: ObserveEventArgs| {
            let desk = desk.clone();
            async move {
                let kind = args.kind.unwrap_or(MemoryKind::Event);
                let priority = args.priority.unwrap_or(MemoryPriority::Medium);
                desk.open_memory()
                    .await?
                    .remember(&context, &args.event, kind, priority)
                    .await
            }
        },
    )
    .with_phrases([
        "observe that {event}",
        "(note|log|record) the event {event}",
        "(log|record) that {event}",
    ])
}

fn recall(desk: LazyMemory) -> Tool {
    let described = "Finds what is remembered of all conversations with the user that fits a question, each with its date and id.";
    Tool::new(
        "memory_recall",
        described,
        Safety::Safe,
        move |context: ToolContext, args: MemoryRecallArgs| {
            let desk = desk.clone();
            async move {
                let limit = check_limit(args.limit)?;
                let chronicle = desk.open_memory().await?;
                let found = chronicle
                    .recall(&context.principal, &args.query, RecallMode::Explicit, limit)
                    .await;
                let found: Vec<Memory> = found
                    .map_err(tool_error)?
                    .into_iter()
                    .map(|recalled| recalled.memory)
                    .collect();
                Ok(memories_output(&found, "Nothing is remembered about that."))
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

fn list_observations(desk: LazyMemory) -> Tool {
    let described = "Lists observations of conversations with the user, the newest first.";
    list_tool(
        desk,
        "memory_list_observations",
        described,
        MemoryLevel::Observations,
    )
    .with_phrases([
        "(list|show) [me] [all] [the] [my] [your] (observations|memories)",
        "what do you (remember|know) [about me]",
    ])
}

fn list_reflections(desk: LazyMemory) -> Tool {
    let described = "Lists reflections: what observations of a conversation were condensed to, the newest first.";
    list_tool(
        desk,
        "memory_list_reflections",
        described,
        MemoryLevel::Reflections,
    )
    .with_phrases(["(list|show) [me] [all] [the] [my] [your] reflections"])
}

fn list_tool(desk: LazyMemory, name: &str, described: &str, what: MemoryLevel) -> Tool {
    Tool::new(
        name,
        described,
        Safety::Safe,
        move |context: ToolContext, args: MemoryListToolArgs| {
            let desk = desk.clone();
            async move {
                let session = args
                    .session
                    .filter(|session| !session.trim().is_empty())
                    .map(SessionId::new);
                let which = MemoryQuery {
                    level: what,
                    session,
                    limit: check_limit(args.limit)?,
                };
                let found = desk
                    .open_memory()
                    .await?
                    .memories()
                    .list(&context.principal, which)
                    .await;
                Ok(memories_output(
                    &found.map_err(tool_error)?,
                    "There is nothing yet.",
                ))
            }
        },
    )
    .with_untrusted_output()
    .with_private_output()
}

fn forget(desk: LazyMemory) -> Tool {
    let described = "Forgets for good what was learned from some words: memories, knowledge, learnings, inquiries and facts, and \
        everything that was made of them. The conversations themselves stay.";
    let asked = desk.clone();
    Tool::new(
        "memory_forget",
        described,
        Safety::Dangerous,
        move |context: ToolContext, args: MemoryForgetArgs| {
            let desk = desk.clone();
            async move {
                let chronicle = desk.open_memory().await?;
                let (gone, left) = find_to_forget(&chronicle, &context, &args.what).await?;
                let gone = chronicle
                    .forgetter()
                    .forget(&context.principal, &gone)
                    .await
                    .map_err(tool_error)?;
                Ok(format_forgotten(&gone, &left))
            }
        },
    )
    .with_intent(move |context: ToolContext, args: MemoryForgetArgs| {
        let desk = asked.clone();
        async move {
            let chronicle = desk.open_memory().await?;
            let (gone, _) = find_to_forget(&chronicle, &context, &args.what).await?;
            let lines: Vec<String> = gone.iter().map(LearnedItem::display_line).collect();
            let shows = format!("forget for good:\n{}", lines.join("\n"));
            Ok(Intent {
                level: Safety::Dangerous,
                shows,
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

/// What would go, and what stays though it is about the same.
async fn find_to_forget(
    chronicle: &ObservationalMemory,
    context: &ToolContext,
    what: &str,
) -> Result<(Vec<LearnedItem>, Vec<LearnedItem>), ToolError> {
    match chronicle
        .forgetter()
        .find_to_forget(&context.principal, what)
        .await
        .map_err(tool_error)?
    {
        ForgetSelection::Matched {
            to_forget: gone,
            related: left,
        } => Ok((gone, left)),
        ForgetSelection::NoMatch => Err(ToolError(
            "nothing like that is remembered; memory_recall finds what is".to_owned(),
        )),
        ForgetSelection::Ambiguous(found) => {
            let lines: Vec<String> = found
                .iter()
                .take(DEFAULT_LIMIT)
                .map(LearnedItem::display_line)
                .collect();
            Err(ToolError(format!(
                "nothing was forgotten: several things are about that, and none says just that. Say which, by id or in its \
                 own words, or say \"everything about\" it:\n{}",
                lines.join("\n")
            )))
        }
    }
}

/// What is gone, by kind: its words are not said again, for they would be read in later turns.
fn format_forgotten(gone: &[LearnedItem], left: &[LearnedItem]) -> String {
    let mut text = format!("Forgotten: {}.", format_item_ids(gone));
    if !left.is_empty() {
        let _ = write!(
            text,
            " Left, for it says something else, too: {}.",
            format_item_ids(left)
        );
    }
    text
}

fn format_item_ids(traces: &[LearnedItem]) -> String {
    let mut kinds: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for trace in traces {
        kinds
            .entry(trace.id.kind())
            .or_default()
            .insert(trace.id.to_string());
    }
    let lists = kinds
        .into_iter()
        .map(|(kind, ids)| format!("{kind} {}", ids.into_iter().collect::<Vec<_>>().join(", ")));
    lists.collect::<Vec<_>>().join("; ")
}

fn reflect(desk: LazyMemory) -> Tool {
    let described =
        "Condenses what was observed in this conversation so far, and gives the reflections.";
    Tool::new(
        "reflect_summary",
        described,
        Safety::Moderate,
        move |context: ToolContext, _: ReflectArgs| {
            let desk = desk.clone();
            async move {
                let chronicle = desk.open_memory().await?;
                let (session, principal) = (context.session, context.principal);
                let of = SessionKey {
                    session: session.clone(),
                    principal: principal.clone(),
                };
                chronicle.reflect(&of).await.map_err(tool_error)?;
                let which = MemoryQuery {
                    level: MemoryLevel::Reflections,
                    session: Some(session),
                    limit: MAX_LIMIT,
                };
                let mut found = chronicle
                    .memories()
                    .list(&principal, which)
                    .await
                    .map_err(tool_error)?;
                found.reverse();
                Ok(memories_output(
                    &found,
                    "Nothing was observed in this conversation yet.",
                ))
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

/// Memories line by line, with what they were made from.
fn memories_output(found: &[Memory], nothing: &str) -> ToolOutput {
    let lines: Vec<String> = found.iter().map(digest::memory_line).collect();
    let text = if lines.is_empty() {
        nothing.to_owned()
    } else {
        lines.join("\n")
    };
    ToolOutput::from_labeled(LabeledText {
        text,
        label: digest::joined_label(found),
    })
}

fn check_limit(limit: Option<usize>) -> Result<usize, ToolError> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    let is_fine = (1..=MAX_LIMIT).contains(&limit);
    is_fine
        .then_some(limit)
        .ok_or_else(|| ToolError(format!("`limit` goes from 1 to {MAX_LIMIT}")))
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
                "there is nothing to remember: say it in one sentence".to_owned(),
            ));
        }
        if token_estimate::estimate(&text) > MAX_MEMORY_TOKENS {
            return Err(ToolError(
                "that is too long to remember: say it in at most 60 words".to_owned(),
            ));
        }
        if self.is_secret(&text) {
            return Err(ToolError(
                "this looks like a password or a key; secrets are not remembered".to_owned(),
            ));
        }
        let of = context.session_key();
        let request = self
            .memories()
            .request(&of, &context.turn)
            .await
            .map_err(tool_error)?;
        let said = request
            .as_ref()
            .map_or(String::new(), |(_, text)| text.clone());
        let words = if is_user_wording(&text, &said) {
            MemorySpeaker::User
        } else {
            MemorySpeaker::Others
        };
        let note = MemoryNote {
            text,
            kind,
            priority,
            speaker: words,
            label: context.label.clone(),
            at: self.now(),
        };
        let sources = request.map(|(seq, _)| seq).into_iter().collect();
        let memory = NewMemory {
            note,
            turn: context.turn.clone(),
            sources,
        };
        let words = memory.note.text.clone();
        let id = self
            .memories()
            .store(&of, memory)
            .await
            .map_err(tool_error)?;
        Ok(format!("Remembered as {id} ({kind}): {words}"))
    }
}

/// A memory as every command gives it.
pub fn memory_json(memory: &Memory) -> Value {
    let sources: Vec<Value> = memory
        .sources
        .iter()
        .map(|seq| json!({ "session": memory.session, "seq": seq }))
        .collect();
    let condenses: Vec<String> = memory
        .condenses
        .iter()
        .map(|id| MemoryId::Observation(*id).to_string())
        .collect();
    let mut item = json!({
        "id": memory.id.to_string(),
        "text": memory.note.text,
        "kind": memory.note.kind,
        "priority": memory.note.priority,
        "at": memory.note.at.to_string(),
        "session": memory.session,
        "sources": sources,
        "condenses": condenses,
        "generation": memory.generation,
        "words": memory.note.speaker,
        "origin": memory.origin,
    });
    if !memory.note.label.is_plain() {
        item["label"] = json!(memory.note.label);
    }
    item
}
