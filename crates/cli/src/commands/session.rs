//! `lango session …`: lists, shows, exports, imports and deletes sessions.

mod delete;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use lango_app::{LegacyMessage, replay_author};
use lango_domain::Label;
use lango_domain::Stores;
use lango_domain::event::{Branch, EVENT_VERSION, Event, EventBody, Principal, SessionId, TurnId};
use lango_domain::session::{HistoryWindow, SessionKeyRef};
use lango_domain::session_catalog::SessionInfo;
use lango_text::sanitize::{one_line, strip_control_chars};
use serde_json::{Value, json};

use super::{CommandContext, parse_session, runtime, with_damage_warnings};
use crate::args::{ExportFormat, GlobalArgs, SessionCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// The maximum number of search hits.
const MAX_HITS: usize = 50;
/// The maximum size of an imported file.
const MAX_IMPORT_BYTES: u64 = 256 * 1024 * 1024;

/// The prefix of the label of imported events.
const IMPORT_LABEL_PREFIX: &str = "the imported session ";

pub fn run(global: &GlobalArgs, command: &SessionCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let output = runtime()?.block_on(async {
        match command {
            SessionCommand::List => list(&stores).await,
            SessionCommand::Show { session } => show(&stores, &session_id(session)).await,
            SessionCommand::Export { session, format } => {
                export(&stores, &session_id(session), *format).await
            }
            SessionCommand::Import { file, session } => {
                import(&context, &stores, file, session.as_deref()).await
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
            EventBody::User { text } | EventBody::Answer { text } => {
                writeln!(plain, "{author}: {}", strip_control_chars(text).trim_end())
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

async fn export(
    stores: &Stores,
    session: &SessionId,
    format: ExportFormat,
) -> Result<CommandOutput, CliError> {
    let info = stores.catalog.session(&Principal::local(), session).await?;
    let events = load_events(stores, session).await?;
    let text = match format {
        ExportFormat::Jsonl => events
            .iter()
            .filter_map(|event| serde_json::to_string(&without_import_label(event)).ok())
            .fold(String::new(), |text, line| text + &line + "\n"),
        ExportFormat::Markdown => format_markdown(&info, &events),
    };
    let json =
        json!({ "session": session_json(&info), "format": format.to_string(), "text": text });
    Ok(CommandOutput::new(text, json))
}

/// Removes the label that `import` adds, so that a session stays the same after an export and an
/// import.
fn without_import_label(event: &Event) -> Event {
    let label = event
        .label
        .clone()
        .without(|source| source.starts_with(IMPORT_LABEL_PREFIX));
    Event {
        label,
        ..event.clone()
    }
}

fn format_markdown(session: &SessionInfo, events: &[Arc<Event>]) -> String {
    let mut text = format!("# {}\n", one_line(&session.title));
    for event in events {
        let _ = match &event.body {
            EventBody::User { text: request } => {
                write!(
                    text,
                    "\n## {}\n\n{}\n",
                    event.at.strftime("%Y-%m-%d %H:%M"),
                    request.trim()
                )
            }
            EventBody::Answer { text: answer } => {
                write!(text, "\n**{}**\n\n{}\n", event.author, answer.trim())
            }
            EventBody::ToolCall { tool, args, .. } => {
                write!(text, "\n- {} calls `{tool}` with `{args}`\n", event.author)
            }
            EventBody::TurnFailed { message, .. } => write!(text, "\n> {}\n", one_line(message)),
            _ => Ok(()),
        };
    }
    text
}

async fn import(
    context: &CommandContext,
    stores: &Stores,
    file: &Path,
    session: Option<&str>,
) -> Result<CommandOutput, CliError> {
    let read_error =
        |error: std::io::Error| CliError::usage(format!("cannot read {}: {error}", file.display()));
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(read_error)?;
    opened
        .take(MAX_IMPORT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if bytes.len() as u64 > MAX_IMPORT_BYTES {
        return Err(CliError::usage(format!(
            "{} is longer than {MAX_IMPORT_BYTES} bytes",
            file.display()
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| CliError::usage(format!("{} is not valid UTF-8", file.display())))?;
    let root = context.loaded.settings.agent.team.mode().root_name();
    let session = parse_session(session)?;
    let mut events = Vec::new();
    let mut turn = 0;
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let line_error = |error: serde_json::Error| {
            CliError::usage(format!("{}:{}: {error}", file.display(), number + 1))
        };
        let value: Value = serde_json::from_str(line).map_err(line_error)?;
        if value.get("type").is_some() {
            events.push(serde_json::from_value::<Event>(value).map_err(line_error)?);
            continue;
        }
        let message: LegacyMessage = serde_json::from_value(value).map_err(line_error)?;
        turn += usize::from(matches!(message.body(), EventBody::User { .. }) || turn == 0);
        events.extend(legacy_events(&message, &root, &session, turn));
    }
    if events.is_empty() {
        return Err(CliError::usage(format!(
            "{} contains no messages",
            file.display()
        )));
    }
    let source = Label::untrusted(format!("{IMPORT_LABEL_PREFIX}{}", file.display()));
    let events: Vec<_> = events
        .into_iter()
        .map(|event| Arc::new(sanitize_imported(event, &source)))
        .collect();
    let count = events.len();
    stores
        .catalog
        .import_session(&Principal::local(), &session, events)
        .await?;
    let json = json!({ "session": session, "events": count });
    Ok(CommandOutput::new(
        format!("{session}: {count} events.\n"),
        json,
    ))
}

/// Labels an imported event as untrusted and removes its grant.
///
/// The author of the file is unknown: the text may not be the user's own, and the user here never
/// gave the approvals in it.
fn sanitize_imported(mut event: Event, source: &Label) -> Event {
    event.label.join(source);
    if let EventBody::Approval { grant, .. } = &mut event.body {
        *grant = None;
    }
    event
}

/// Converts a legacy message to events. A message without an author is the root agent's (S70); an
/// answer ends its turn.
fn legacy_events(
    message: &LegacyMessage,
    root: &lango_domain::AgentName,
    session: &SessionId,
    turn: usize,
) -> Vec<Event> {
    let author = replay_author(message, root);
    let is_answer = matches!(message.body(), EventBody::Answer { .. });
    let bodies = std::iter::once(message.body()).chain(is_answer.then_some(EventBody::TurnDone));
    let event = |body| Event {
        v: EVENT_VERSION,
        seq: 0,
        turn: TurnId::new(format!("imported-{turn}")),
        session: session.clone(),
        author: author.clone(),
        branch: Branch::root(root),
        at: Timestamp::now(),
        label: Label::default(),
        body,
    };
    bodies.map(event).collect()
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
        let (EventBody::User { text } | EventBody::Answer { text } | EventBody::Report { text }) =
            &hit.event.body
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
