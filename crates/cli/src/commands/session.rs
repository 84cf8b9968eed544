//! `lango session …`: lists, shows, exports, imports and deletes sessions.

mod delete;
mod files;
mod transfer;

use std::fmt::Write as _;
use std::sync::Arc;

use lango_domain::event::{Event, EventBody, Principal, SessionId};
use lango_domain::session::{HistoryWindow, SessionKeyRef};
use lango_domain::session_catalog::SessionInfo;
use lango_domain::{Content, Stores};
use lango_text::sanitize::{one_line, strip_control_chars};
use serde_json::{Value, json};

use super::{CommandContext, parse_session, runtime, with_damage_warnings};
use crate::args::{GlobalArgs, SessionCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// The maximum number of search hits.
const MAX_HITS: usize = 50;
pub fn run(global: &GlobalArgs, command: &SessionCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let output = runtime()?.block_on(async {
        match command {
            SessionCommand::List => list(&stores).await,
            SessionCommand::Show { session } => show(&stores, &session_id(session)).await,
            SessionCommand::Files { session, save } => {
                files::run(&stores, &session_id(session), save.as_deref()).await
            }
            SessionCommand::Export { session, format } => {
                transfer::export(&stores, &session_id(session), *format).await
            }
            SessionCommand::Import { file, session } => {
                transfer::import(&context, &stores, file, session.as_deref()).await
            }
            SessionCommand::Delete { sessions } => delete::run(&context, &stores, sessions).await,
            SessionCommand::Fork { session, at, into } => {
                fork(&stores, &session_id(session), *at, into.as_deref()).await
            }
            SessionCommand::Rename { session, title } => {
                rename(&stores, &session_id(session), &title.join(" ")).await
            }
            SessionCommand::Search { text } => search(&stores, text).await,
        }
    })?;
    Ok(with_damage_warnings(output, &stores))
}

fn session_id(name: &str) -> SessionId {
    SessionId::new(name)
}

async fn list(stores: &Stores) -> Result<CommandOutput, CliError> {
    let sessions = stores.catalog.sessions(&Principal::local()).await?;
    let mut plain = String::new();
    for session in &sessions {
        let state = if session.is_settled {
            ""
        } else {
            " (interrupted)"
        };
        let when = session.updated.strftime("%Y-%m-%d %H:%M");
        let title = strip_control_chars(&session.title);
        let _ = writeln!(
            plain,
            "{}  {title}{state} {}",
            styled(NAME, one_line(session.id.as_str())),
            styled(DIM, format!("{when}, {} events", session.events))
        );
    }
    if sessions.is_empty() {
        plain.push_str("No sessions yet.\n");
    }
    Ok(CommandOutput::new(
        plain,
        json!({ "items": sessions.iter().map(session_json).collect::<Vec<_>>() }),
    ))
}

fn session_json(session: &SessionInfo) -> Value {
    json!({
        "id": session.id,
        "title": session.title,
        "events": session.events,
        "created": session.created,
        "updated": session.updated,
        "state": session.state(),
    })
}

async fn load_events(stores: &Stores, session: &SessionId) -> Result<Vec<Arc<Event>>, CliError> {
    let key = SessionKeyRef {
        session,
        principal: &Principal::local(),
    };
    let events = stores.sessions.load(key, HistoryWindow::Everything);
    Ok(events.await?)
}

async fn show(stores: &Stores, session: &SessionId) -> Result<CommandOutput, CliError> {
    let info = stores.catalog.session(&Principal::local(), session).await?;
    let events = load_events(stores, session).await?;
    let event_refs: Vec<&Event> = events.iter().map(|event| &**event).collect();
    Ok(CommandOutput::new(
        format_events(&events),
        json!({ "session": session_json(&info), "events": event_refs }),
    ))
}

/// Formats the events as readable text.
fn format_events(events: &[Arc<Event>]) -> String {
    let mut plain = String::new();
    for event in events {
        let author = styled(NAME, one_line(&event.author.to_string()));
        let _ = match &event.body {
            EventBody::User(content) | EventBody::Answer(content) => {
                let text = content.to_plain_text();
                writeln!(plain, "{author}: {}", strip_control_chars(&text).trim_end())
            }
            EventBody::Transfer { to, .. } => {
                writeln!(plain, "{}", styled(DIM, format!("{} → {to}", event.author)))
            }
            EventBody::ToolCall { tool, .. } => {
                writeln!(
                    plain,
                    "{}",
                    styled(DIM, format!("{} · {tool}", event.author))
                )
            }
            EventBody::TurnFailed { message, .. } => {
                writeln!(plain, "{}", styled(DIM, strip_control_chars(message)))
            }
            _ => Ok(()),
        };
    }
    plain
}

async fn rename(
    stores: &Stores,
    session: &SessionId,
    title: &str,
) -> Result<CommandOutput, CliError> {
    if one_line(title).is_empty() {
        return Err(CliError::usage("the title is empty"));
    }
    let principal = Principal::local();
    stores.catalog.rename(&principal, session, title).await?;
    let title = stores.catalog.session(&principal, session).await?.title;
    Ok(CommandOutput::new(
        format!("{session}: {title}\n"),
        json!({ "session": session, "title": title }),
    ))
}

async fn fork(
    stores: &Stores,
    session: &SessionId,
    at: Option<u64>,
    into: Option<&str>,
) -> Result<CommandOutput, CliError> {
    let into = parse_session(into)?;
    let copied = stores
        .catalog
        .fork(&Principal::local(), session, at.unwrap_or(u64::MAX), &into)
        .await?;
    let plain = format!("Created {into} with the first {copied} events of {session}.\n");
    Ok(CommandOutput::new(
        plain,
        json!({ "session": into, "events": copied }),
    ))
}

async fn search(stores: &Stores, text: &str) -> Result<CommandOutput, CliError> {
    if text.trim().is_empty() {
        return Err(CliError::usage("the search text is empty"));
    }
    let hits = stores
        .catalog
        .search(&Principal::local(), text, MAX_HITS)
        .await?;
    let mut plain = String::new();
    let mut items = Vec::new();
    for hit in &hits {
        let (EventBody::User(Content { text, .. })
        | EventBody::Answer(Content { text, .. })
        | EventBody::Report(Content { text, .. })) = &hit.event.body
        else {
            continue;
        };
        let excerpt: String = one_line(text).chars().take(160).collect();
        let location = styled(
            DIM,
            format!("{} {}", one_line(hit.session.as_str()), hit.event.seq),
        );
        let _ = writeln!(
            plain,
            "{location} {}: {excerpt}",
            styled(NAME, one_line(&hit.event.author.to_string()))
        );
        items.push(json!({
            "session": hit.session, "title": hit.title, "seq": hit.event.seq, "author": hit.event.author,
            "at": hit.event.at, "text": text,
        }));
    }
    if hits.is_empty() {
        plain.push_str("No matches found.\n");
    }
    Ok(CommandOutput::new(plain, json!({ "items": items })))
}
