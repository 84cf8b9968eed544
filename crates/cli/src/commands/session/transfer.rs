//! `lango session export` and `import`: sessions as files of JSON lines, or as Markdown.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use lango_app::{LegacyMessage, check_value_count, replay_author};
use lango_domain::content::{Attachment, BlobData, BlobId};
use lango_domain::event::{Branch, EVENT_VERSION, Event, EventBody, Principal, SessionId, TurnId};
use lango_domain::session::SessionKeyRef;
use lango_domain::session_catalog::SessionInfo;
use lango_domain::{Label, Stores};
use lango_text::sanitize::one_line;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{CommandContext, load_events, parse_session, session_json};
use crate::args::ExportFormat;
use crate::output::{CliError, CommandOutput};

/// The maximum size of an imported file.
const MAX_IMPORT_BYTES: u64 = 256 * 1024 * 1024;

/// The maximum number of JSON values in one line.
const MAX_LINE_VALUES: usize = 1_000_000;

/// The prefix of the label of imported events.
const IMPORT_LABEL_PREFIX: &str = "the imported session ";

/// The `type` of a line with the bytes of an attachment.
const BLOB_TYPE: &str = "blob";

/// A line with the bytes of an attachment. It stands before the first event that names them.
#[derive(Serialize, Deserialize)]
struct BlobLine {
    r#type: String,
    blob: BlobId,
    /// The bytes as base64.
    data: String,
}

pub async fn export(
    stores: &Stores,
    session: &SessionId,
    format: ExportFormat,
) -> Result<CommandOutput, CliError> {
    let info = stores.catalog.session(&Principal::local(), session).await?;
    let events = load_events(stores, session).await?;
    let text = match format {
        ExportFormat::Jsonl => format_lines(stores, session, &events).await?,
        ExportFormat::Markdown => format_markdown(&info, &events),
    };
    let json =
        json!({ "session": session_json(&info), "format": format.to_string(), "text": text });
    Ok(CommandOutput::new(text, json))
}

async fn format_lines(
    stores: &Stores,
    session: &SessionId,
    events: &[Arc<Event>],
) -> Result<String, CliError> {
    let (mut text, mut written) = (String::new(), HashSet::new());
    for event in events {
        for attachment in event.attachments() {
            if written.insert(&attachment.blob) {
                let line = blob_line(stores, session, attachment).await?;
                line.into_iter()
                    .for_each(|line| push_line(&mut text, &line));
            }
        }
        push_line(&mut text, &without_import_label(event));
    }
    Ok(text)
}

/// Returns the bytes of an attachment, or `None` if they are lost.
async fn blob_line(
    stores: &Stores,
    session: &SessionId,
    attachment: &Attachment,
) -> Result<Option<BlobLine>, CliError> {
    let key = SessionKeyRef {
        session,
        principal: &Principal::local(),
    };
    let bytes = stores.blobs.blob(key, &attachment.blob).await?;
    let loaded = bytes.map(|bytes| Attachment {
        data: BlobData::loaded(bytes),
        ..attachment.clone()
    });
    Ok(loaded.and_then(|loaded| {
        Some(BlobLine {
            r#type: BLOB_TYPE.to_owned(),
            data: loaded.base64()?,
            blob: loaded.blob,
        })
    }))
}

fn push_line(text: &mut String, line: &impl Serialize) {
    if let Ok(line) = serde_json::to_string(line) {
        text.push_str(&line);
        text.push('\n');
    }
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
            EventBody::User(request) => {
                write!(
                    text,
                    "\n## {}\n\n{}\n",
                    event.at.strftime("%Y-%m-%d %H:%M"),
                    request.to_plain_text().trim()
                )
            }
            EventBody::Answer(answer) => {
                let answer = answer.to_plain_text();
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

pub async fn import(
    context: &CommandContext,
    stores: &Stores,
    file: &Path,
    session: Option<&str>,
) -> Result<CommandOutput, CliError> {
    let text = read_import_file(file)?;
    let session = parse_session(session)?;
    let root = context.loaded.settings.agent.team.mode().root_name();
    let mut reader = ImportReader {
        root,
        session: session.clone(),
        events: Vec::new(),
        blobs: HashMap::new(),
        turn: 0,
    };
    let lines = text.lines().enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        reader.read_line(line).map_err(|reason| {
            CliError::usage(format!("{}:{}: {reason}", file.display(), number + 1))
        })?;
    }
    if reader.events.is_empty() {
        let file = file.display();
        return Err(CliError::usage(format!("{file} contains no messages")));
    }
    let source = Label::untrusted(format!("{IMPORT_LABEL_PREFIX}{}", file.display()));
    let events: Vec<_> = reader
        .events
        .into_iter()
        .map(|event| Arc::new(sanitize_imported(event, &source)))
        .collect();
    let count = events.len();
    let lost = lost_files(&events);
    stores
        .catalog
        .import_session(&Principal::local(), &session, events)
        .await?;
    let json = json!({ "session": session, "events": count, "lost_files": lost });
    let mut plain = format!("{session}: {count} events.\n");
    if !lost.is_empty() {
        let _ = writeln!(plain, "The file lacks the content of {}.", lost.join(", "));
    }
    Ok(CommandOutput::new(plain, json))
}

/// Returns the names of attachments whose bytes are not in the file.
fn lost_files(events: &[Arc<Event>]) -> Vec<String> {
    let attachments = events.iter().flat_map(|event| event.attachments());
    let lost = attachments.filter(|attachment| attachment.data.bytes().is_none());
    lost.map(|attachment| attachment.name.clone()).collect()
}

fn read_import_file(file: &Path) -> Result<String, CliError> {
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
    String::from_utf8(bytes)
        .map_err(|_| CliError::usage(format!("{} is not valid UTF-8", file.display())))
}

/// Reads the lines of an exported session, or of an older log of messages.
struct ImportReader {
    root: lango_domain::AgentName,
    session: SessionId,
    events: Vec<Event>,
    blobs: HashMap<BlobId, BlobData>,
    /// The number of the current turn of an older log.
    turn: usize,
}

impl ImportReader {
    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let described = |error: serde_json::Error| error.to_string();
        check_value_count(line.as_bytes(), MAX_LINE_VALUES).map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_str(line).map_err(described)?;
        match value.get("type").and_then(Value::as_str) {
            Some(BLOB_TYPE) => self.read_blob(serde_json::from_value(value).map_err(described)?),
            Some(_) => {
                let mut event: Event = serde_json::from_value(value).map_err(described)?;
                for attachment in event.body.attachments_mut() {
                    let data = self.blobs.get(&attachment.blob).cloned();
                    attachment.data = data.unwrap_or_default();
                    if let Some(bytes) = attachment.data.bytes() {
                        attachment.size = bytes.len() as u64;
                    }
                }
                self.events.push(event);
                Ok(())
            }
            None => {
                let message: LegacyMessage = serde_json::from_value(value).map_err(described)?;
                self.turn +=
                    usize::from(matches!(message.body(), EventBody::User(_)) || self.turn == 0);
                let events = legacy_events(&message, &self.root, &self.session, self.turn);
                self.events.extend(events);
                Ok(())
            }
        }
    }

    /// Keeps the bytes of an attachment, if they are what the line says.
    fn read_blob(&mut self, line: BlobLine) -> Result<(), String> {
        let read = Attachment::from_base64(&line.data, "attachment", None);
        let read = read.map_err(|error| error.to_string())?;
        if read.blob != line.blob {
            return Err("the bytes do not match their checksum".to_owned());
        }
        self.blobs.insert(read.blob, read.data);
        Ok(())
    }
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
    let is_answer = matches!(message.body(), EventBody::Answer(_));
    let bodies = std::iter::once(message.body()).chain(is_answer.then_some(EventBody::turn_done()));
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
