//! `lango memory …`: what is remembered of conversations, why, and no more.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _};

use lango_app::open_memory;
use lango_domain::event::{Event, EventBody, Principal, SessionId};
use lango_domain::memory::{self, Memory, MemoryId, MemoryOrigin, MemoryQuery};
use lango_domain::session::StoreError;
use lango_domain::text::{one_line, strip_control_chars};
use lango_knowledge::forget::{ForgetSelection, LearnedItem};
use lango_knowledge::memory::{
    MemoryEvidence, ObservationalMemory, Observer, memory_json, memory_line,
};
use serde_json::{Value, json};

use super::{CommandContext, runtime, with_damage_warnings};
use crate::args::{GlobalArgs, MemoryCommand, MemoryListArgs};
use crate::output::{CliError, CommandOutput, DIM, NAME, print_stderr, styled};

/// Of a long event, so much is shown.
const MAX_EVENT_CHARS: usize = 600;

pub fn run(global: &GlobalArgs, command: &MemoryCommand) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::load(global)?;
    let store = setting.store.open()?;
    let chronicle = open_memory(&setting.loaded, &setting.environment, store.clone())?;
    let output = runtime()?.block_on(async {
        match command {
            MemoryCommand::Status => status(&chronicle).await,
            MemoryCommand::Observations(wish) => {
                list(&chronicle, wish, memory::MemoryLevel::Observations).await
            }
            MemoryCommand::Reflections(wish) => {
                list(&chronicle, wish, memory::MemoryLevel::Reflections).await
            }
            MemoryCommand::Why { id } => why(&chronicle, id).await,
            MemoryCommand::Forget { what, yes } => forget(&chronicle, &what.join(" "), *yes).await,
        }
    })?;
    Ok(with_damage_warnings(output, &store))
}

fn store_error(error: StoreError) -> CliError {
    CliError::store(error.to_string())
}

async fn status(chronicle: &ObservationalMemory) -> Result<CommandOutput, CliError> {
    let census = chronicle
        .memories()
        .stats(&Principal::local())
        .await
        .map_err(store_error)?;
    let settings = chronicle.settings();
    let (observer, told) = match chronicle.observer() {
        Observer::Rules => (
            "rules",
            "rules: no language model is in force, so names, dates, preferences, decisions and promises are taken from \
             your own sentences"
                .to_owned(),
        ),
        Observer::Model { name, .. } => (name.as_str(), name.clone()),
    };
    let mut plain = format!(
        "Observations: {}, of these asked for: {}. Reflections: {}. Sessions: {}.\nObserved by {told}.\n",
        census.observations, census.asked, census.reflections, census.sessions
    );
    let _ = writeln!(
        plain,
        "Sessions in which observations stand for the earlier part: {} (past {} tokens; condensed past {}).",
        census.condensed_sessions,
        settings.message_token_threshold,
        settings.observation_token_threshold
    );
    if census.put_off > 0 {
        let _ = writeln!(
            plain,
            "Sessions in which the model did not get through, to be tried again: {}.",
            census.put_off
        );
    }
    if !settings.enabled {
        plain.push_str(
            "Memory is switched off (observationalMemory.enabled): nothing is added, nothing is recalled.\n",
        );
    }
    let json = json!({
        "enabled": settings.enabled,
        "observer": observer,
        "observations": census.observations,
        "asked": census.asked,
        "reflections": census.reflections,
        "sessions": census.sessions,
        "condensed_sessions": census.condensed_sessions,
        "put_off": census.put_off,
    });
    Ok(CommandOutput::new(plain, json))
}

async fn list(
    chronicle: &ObservationalMemory,
    wish: &MemoryListArgs,
    what: memory::MemoryLevel,
) -> Result<CommandOutput, CliError> {
    let session = wish.session.as_deref().map(SessionId::new);
    let which = MemoryQuery {
        level: what,
        session,
        limit: wish.limit.get(),
    };
    let found = chronicle
        .memories()
        .list(&Principal::local(), which)
        .await
        .map_err(store_error)?;
    let mut plain = memory_lines(&found);
    if found.is_empty() {
        plain.push_str("There is nothing.\n");
    }
    Ok(CommandOutput::new(
        plain,
        json!({ "items": found.iter().map(memory_json).collect::<Vec<_>>() }),
    ))
}

fn memory_lines(memories: &[Memory]) -> String {
    memories
        .iter()
        .map(|memory| format!("{}\n", one_line(&memory_line(memory))))
        .collect()
}

async fn why(chronicle: &ObservationalMemory, id: &str) -> Result<CommandOutput, CliError> {
    let id: MemoryId = id
        .parse()
        .map_err(|error: memory::InvalidMemoryId| CliError::usage(error.to_string()))?;
    let found = chronicle
        .evidence(&Principal::local(), id)
        .await
        .map_err(store_error)?;
    let Some(reason) = found else {
        return Err(CliError::usage(format!("nothing is remembered as `{id}`"))
            .with_hint("`lango memory observations` lists what is"));
    };
    let MemoryEvidence {
        memory,
        observations,
        events,
    } = &reason;
    let mut plain = memory_lines(std::slice::from_ref(memory));
    if !observations.is_empty() {
        let _ = write!(plain, "condensed from\n{}", memory_lines(observations));
    }
    let written = match &memory.origin {
        MemoryOrigin::Asked => "kept because it was asked for".to_owned(),
        MemoryOrigin::Rules => "observed by rules".to_owned(),
        MemoryOrigin::Model(name) => format!("written by {name}"),
    };
    let session = styled(NAME, one_line(memory.session.as_str()));
    let _ = writeln!(plain, "from session {session}, {written}");
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
        plain.push_str("The events are not kept any more.\n");
    }
    let said = |event: &std::sync::Arc<Event>| json!({ "session": event.session, "seq": event.seq, "author": event.author, "at": event.at.to_string(), "text": event_text(event) });
    let mut json = memory_json(memory);
    json["observations"] = Value::from(observations.iter().map(memory_json).collect::<Vec<_>>());
    json["events"] = Value::from(events.iter().map(said).collect::<Vec<_>>());
    Ok(CommandOutput::new(plain, json))
}

fn event_text(event: &Event) -> String {
    match &event.body {
        EventBody::User { text }
        | EventBody::Answer { text }
        | EventBody::Report { text }
        | EventBody::Note { text } => text.clone(),
        EventBody::ToolCall { tool, args, .. } => format!("{tool} {args}"),
        EventBody::ToolResult { content, error, .. } => {
            error.clone().unwrap_or_else(|| content.clone())
        }
        _ => String::new(),
    }
}

fn truncate(text: &str) -> String {
    let cut: String = text.chars().take(MAX_EVENT_CHARS).collect();
    if cut.len() < text.len() {
        format!("{cut} …")
    } else {
        cut
    }
}

async fn forget(
    chronicle: &ObservationalMemory,
    what: &str,
    yes: bool,
) -> Result<CommandOutput, CliError> {
    let of = Principal::local();
    let (gone, left) = match chronicle
        .forgetter()
        .find_to_forget(&of, what)
        .await
        .map_err(store_error)?
    {
        ForgetSelection::Matched {
            to_forget: gone,
            related: left,
        } => (gone, left),
        ForgetSelection::NoMatch => {
            return Err(CliError::usage(format!(
                "nothing that is remembered fits `{}`",
                one_line(what)
            ))
            .with_hint("`lango memory observations` lists everything with its id"));
        }
        ForgetSelection::Ambiguous(found) => {
            print_stderr(&trace_lines(&found));
            return Err(
                CliError::usage("several things are about that, and none says just that")
                    .with_hint("name ids, say it in its own words, or say \"everything about …\""),
            );
        }
    };
    if !yes {
        confirm_forget(&gone)?;
    }
    let gone = chronicle
        .forgetter()
        .forget(&of, &gone)
        .await
        .map_err(store_error)?;
    Ok(forget_output(&gone, &left))
}

/// What is gone, and what is about the same and stays.
pub(super) fn forget_output(gone: &[LearnedItem], left: &[LearnedItem]) -> CommandOutput {
    let mut plain = format!(
        "Forgotten:\n{}\nWhat was said stays in its session; `lango session delete` takes that out.\n",
        trace_lines(gone)
    );
    if !left.is_empty() {
        let _ = writeln!(
            plain,
            "Left, for it says something else, too:\n{}",
            trace_lines(left)
        );
    }
    let items =
        |traces: &[LearnedItem]| traces.iter().map(LearnedItem::to_json).collect::<Vec<_>>();
    CommandOutput::new(
        plain,
        json!({ "forgotten": items(gone), "left": items(left) }),
    )
}

fn trace_lines(traces: &[LearnedItem]) -> String {
    traces
        .iter()
        .map(|trace| strip_control_chars(&trace.display_line()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Shows what would go, and waits for a yes.
fn confirm_forget(gone: &[LearnedItem]) -> Result<(), CliError> {
    print_stderr(&trace_lines(gone));
    if !std::io::stdin().is_terminal() {
        return Err(CliError::denied("nobody is there to confirm it")
            .with_hint("--yes forgets without a question"));
    }
    print_stderr("Forget these for good? [y/N]");
    let answer = std::io::stdin()
        .lock()
        .lines()
        .next()
        .and_then(Result::ok)
        .unwrap_or_default();
    let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    is_yes
        .then_some(())
        .ok_or_else(|| CliError::denied("nothing was forgotten"))
}
