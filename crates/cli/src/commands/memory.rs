//! `lango memory …`: lists, explains and forgets memories of conversations.

use std::fmt::Write as _;
use std::sync::Arc;

use lango_app::capability::memory::forget::{ForgetSelection, LearnedItem};
use lango_app::capability::memory::observational_memory::{
    MemoryEvidence, ObservationalMemory, Observer, memory_json, memory_line,
};
use lango_app::open_memory;
use lango_domain::Content;
use lango_domain::event::{Event, EventBody, Principal, SessionId};
use lango_domain::memory::{self, Memory, MemoryId, MemoryOrigin, MemoryQuery};
use lango_text::sanitize::{one_line, strip_control_chars};
use serde_json::{Value, json};

use super::{CommandContext, runtime, with_damage_warnings};
use crate::args::{GlobalArgs, MemoryCommand, MemoryListArgs};
use crate::confirmation::{can_ask, confirm};
use crate::output::{CliError, CommandOutput, DIM, NAME, print_stderr, styled};

/// The maximum number of characters that are shown of an event.
const MAX_EVENT_CHARS: usize = 600;

pub fn run(global: &GlobalArgs, command: &MemoryCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let memory = open_memory(&context.loaded, &context.environment, stores.clone())?;
    let output = runtime()?.block_on(async {
        match command {
            MemoryCommand::Status => status(&memory).await,
            MemoryCommand::Observations(args) => {
                list(&memory, args, memory::MemoryLevel::Observations).await
            }
            MemoryCommand::Reflections(args) => {
                list(&memory, args, memory::MemoryLevel::Reflections).await
            }
            MemoryCommand::Why { id } => why(&memory, id).await,
            MemoryCommand::Forget { query, yes } => forget(&memory, &query.join(" "), *yes).await,
        }
    })?;
    Ok(with_damage_warnings(output, &stores))
}

async fn status(memory: &ObservationalMemory) -> Result<CommandOutput, CliError> {
    let stats = memory.memories().stats(&Principal::local()).await?;
    let settings = memory.settings();
    let (observer, observer_text) = match memory.observer() {
        Observer::Rules => (
            "rules",
            "rules: without a language model, names, dates, preferences, decisions and promises are extracted from \
             your own sentences"
                .to_owned(),
        ),
        Observer::Model { name, .. } => (name.as_str(), name.clone()),
    };
    let mut plain = format!(
        "Observations: {} ({} on request). Reflections: {}. Sessions: {}.\nObserved by {observer_text}.\n",
        stats.observations, stats.asked, stats.reflections, stats.sessions
    );
    let _ = writeln!(
        plain,
        "Sessions whose earlier part is replaced by observations: {} (above {} tokens; condensed above {}).",
        stats.condensed_sessions,
        settings.message_token_threshold,
        settings.observation_token_threshold
    );
    if stats.put_off > 0 {
        let _ = writeln!(
            plain,
            "Sessions to retry because the model failed: {}.",
            stats.put_off
        );
    }
    if !settings.enabled {
        plain.push_str(
            "Memory is disabled (observationalMemory.enabled): nothing is added or recalled.\n",
        );
    }
    let json = json!({
        "enabled": settings.enabled,
        "observer": observer,
        "observations": stats.observations,
        "asked": stats.asked,
        "reflections": stats.reflections,
        "sessions": stats.sessions,
        "condensed_sessions": stats.condensed_sessions,
        "put_off": stats.put_off,
    });
    Ok(CommandOutput::new(plain, json))
}

async fn list(
    memory: &ObservationalMemory,
    args: &MemoryListArgs,
    level: memory::MemoryLevel,
) -> Result<CommandOutput, CliError> {
    let session = args.session.as_deref().map(SessionId::new);
    let query = MemoryQuery {
        level,
        session,
        limit: args.limit.get(),
    };
    let memories = memory.memories().list(&Principal::local(), query).await?;
    let mut plain = memory_lines(&memories);
    if memories.is_empty() {
        plain.push_str("There are no memories yet.\n");
    }
    Ok(CommandOutput::new(
        plain,
        json!({ "items": memories.iter().map(memory_json).collect::<Vec<_>>() }),
    ))
}

fn memory_lines(memories: &[Memory]) -> String {
    memories
        .iter()
        .map(|memory| format!("{}\n", one_line(&memory_line(memory))))
        .collect()
}

async fn why(memory: &ObservationalMemory, id: &str) -> Result<CommandOutput, CliError> {
    let id: MemoryId = id
        .parse()
        .map_err(|error: memory::InvalidMemoryId| CliError::usage(error.to_string()))?;
    let evidence = memory.evidence(&Principal::local(), id).await?;
    let Some(evidence) = evidence else {
        return Err(CliError::usage(format!("unknown memory `{id}`"))
            .with_hint("`lango memory observations` lists the ids"));
    };
    let MemoryEvidence {
        memory,
        observations,
        events,
    } = &evidence;
    let mut plain = memory_lines(std::slice::from_ref(memory));
    if !observations.is_empty() {
        let _ = write!(plain, "condensed from\n{}", memory_lines(observations));
    }
    let origin = match &memory.origin {
        MemoryOrigin::Asked => "saved on request".to_owned(),
        MemoryOrigin::Rules => "observed by rules".to_owned(),
        MemoryOrigin::Model(name) => format!("written by {name}"),
    };
    let session = styled(NAME, one_line(memory.session.as_str()));
    let _ = writeln!(plain, "from session {session}, {origin}");
    if !memory.note.label.is_plain() {
        let _ = writeln!(plain, "{}", one_line(&memory.note.label.to_string()));
    }
    for event in events {
        let head = format!(
            "event {}, {}, {}",
            event.seq,
            event.author,
            event.at.strftime("%Y-%m-%d %H:%M")
        );
        let _ = writeln!(
            plain,
            "{}\n  {}",
            styled(DIM, head),
            strip_control_chars(&truncate(&event_text(event)))
        );
    }
    if events.is_empty() {
        plain.push_str("The source events were deleted.\n");
    }
    let mut json = memory_json(memory);
    json["observations"] = Value::from(observations.iter().map(memory_json).collect::<Vec<_>>());
    json["events"] = Value::from(events.iter().map(event_json).collect::<Vec<_>>());
    Ok(CommandOutput::new(plain, json))
}

fn event_json(event: &Arc<Event>) -> Value {
    json!({
        "session": event.session,
        "seq": event.seq,
        "author": event.author,
        "at": event.at.to_string(),
        "text": event_text(event),
    })
}

fn event_text(event: &Event) -> String {
    match &event.body {
        EventBody::User(Content { text, .. })
        | EventBody::Answer(Content { text, .. })
        | EventBody::Report(Content { text, .. })
        | EventBody::Note { text } => text.clone(),
        EventBody::ToolCall { tool, args, .. } => format!("{tool} {args}"),
        EventBody::ToolResult { content, error, .. } => {
            error.clone().unwrap_or_else(|| content.clone())
        }
        _ => String::new(),
    }
}

fn truncate(text: &str) -> String {
    let prefix: String = text.chars().take(MAX_EVENT_CHARS).collect();
    if prefix.len() < text.len() {
        format!("{prefix} …")
    } else {
        prefix
    }
}

async fn forget(
    memory: &ObservationalMemory,
    query: &str,
    yes: bool,
) -> Result<CommandOutput, CliError> {
    let principal = Principal::local();
    let (forgotten, kept) = match memory.forgetter().find_to_forget(&principal, query).await? {
        ForgetSelection::Matched {
            to_forget: forgotten,
            related: kept,
        } => (forgotten, kept),
        ForgetSelection::NoMatch => {
            return Err(
                CliError::usage(format!("no memory matches `{}`", one_line(query)))
                    .with_hint("`lango memory observations` lists the memories with their ids"),
            );
        }
        ForgetSelection::Ambiguous(items) => {
            print_stderr(&item_lines(&items));
            return Err(CliError::usage("several memories match, but none exactly")
                .with_hint("pass ids, the exact text of a memory, or \"everything about …\""));
        }
    };
    if !yes {
        confirm_forget(&forgotten)?;
    }
    let forgotten = memory.forgetter().forget(&principal, &forgotten).await?;
    Ok(forget_output(&forgotten, &kept))
}

/// Returns the output of a deletion: the forgotten items, and related items that were kept.
pub(super) fn forget_output(forgotten: &[LearnedItem], kept: &[LearnedItem]) -> CommandOutput {
    let mut plain = format!(
        "Forgotten:\n{}\nThe conversation itself stays in its session; delete that with `lango session delete`.\n",
        item_lines(forgotten)
    );
    if !kept.is_empty() {
        let _ = writeln!(
            plain,
            "Kept, since these also contain other information:\n{}",
            item_lines(kept)
        );
    }
    let items = |items: &[LearnedItem]| items.iter().map(LearnedItem::to_json).collect::<Vec<_>>();
    CommandOutput::new(
        plain,
        json!({ "forgotten": items(forgotten), "left": items(kept) }),
    )
}

fn item_lines(items: &[LearnedItem]) -> String {
    items
        .iter()
        .map(|item| strip_control_chars(&item.display_line()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Prints what would be forgotten, and asks for confirmation.
fn confirm_forget(forgotten: &[LearnedItem]) -> Result<(), CliError> {
    if !can_ask() {
        print_stderr(&item_lines(forgotten));
        return Err(CliError::denied(
            "nothing was forgotten because there is no terminal to confirm it",
        )
        .with_hint("pass --yes to forget without a question"));
    }
    confirm(&item_lines(forgotten), "Permanently forget these?")?
        .then_some(())
        .ok_or_else(|| CliError::denied("cancelled; nothing was forgotten"))
}
