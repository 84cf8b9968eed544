//! `lango session delete`.

use std::sync::Arc;

use lango_app::delete_session_files;
use lango_domain::event::{Event, EventBody, Principal};
use lango_domain::{Content, Stores};
use serde_json::json;

use super::{load_events, session_id};
use crate::commands::{CommandContext, chat};
use crate::output::{CliError, CommandOutput};

pub(super) async fn run(
    context: &CommandContext,
    stores: &Stores,
    sessions: &[String],
) -> Result<CommandOutput, CliError> {
    for session in sessions {
        stores
            .catalog
            .session(&Principal::local(), &session_id(session))
            .await?;
    }
    for session in sessions {
        let session = session_id(session);
        // A session that cannot be read can still be deleted.
        let events = load_events(stores, &session).await.unwrap_or_default();
        stores.catalog.delete(&Principal::local(), &session).await?;
        delete_typed_lines(context, &events);
        delete_session_files(&context.environment, &Principal::local(), &session);
    }
    let plain = format!("Deleted: {}.\n", sessions.join(", "));
    Ok(CommandOutput::new(plain, json!({ "deleted": sessions })))
}

/// Deletes the requests of a session from the input history of `lango chat`.
fn delete_typed_lines(context: &CommandContext, events: &[Arc<Event>]) {
    let Some(file) = context
        .environment
        .config_folder()
        .map(|folder| folder.join(chat::HISTORY_FILE))
    else {
        return;
    };
    let Ok(history) = std::fs::read_to_string(&file) else {
        return;
    };
    let is_deleted = |line: &str| {
        events
            .iter()
            .any(|event| matches!(&event.body, EventBody::User(Content { text, .. }) if text == line.trim()))
    };
    let remaining: Vec<&str> = history.lines().filter(|line| !is_deleted(line)).collect();
    let _ = std::fs::write(&file, remaining.join("\n") + "\n");
}
