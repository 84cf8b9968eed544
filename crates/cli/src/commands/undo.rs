//! `lango undo` and `lango trash`: undo file changes and restore deleted files.

use std::fmt::Write as _;

use jiff::{Timestamp, ToSpan};
use lango_app::capability::tools::files::{
    TrashEntry, TrashError, TrashedKind, UndoError, UndoReport,
};
use lango_app::{undo_storage, workspace_folder};
use lango_text::sanitize::{one_line, strip_control_chars};
use serde_json::{Value, json};

use super::CommandContext;
use crate::args::{GlobalArgs, TrashCommand, UndoArgs};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn undo(global: &GlobalArgs, args: &UndoArgs) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let journal = undo_storage(&context.environment).journal;
    let (root, _) = workspace_folder(&context.loaded, &context.environment);
    let root = root
        .canonicalize()
        .map_err(|error| CliError::usage(format!("{}: {error}", root.display())))?;
    if args.skip {
        journal.skip_last(&root).map_err(undo_error)?;
        let plain =
            "Kept the changes of the last turn; the next undo applies to the turn before it.\n";
        return Ok(CommandOutput::new(plain, json!({ "skipped": true })));
    }
    let is_preview = args.show;
    let undone = if is_preview {
        journal.preview_last(&root)
    } else {
        journal.undo_last(&root)
    }
    .map_err(undo_error)?;
    let json = json!({
        "turn": undone.turn,
        "restored": undone.restored,
        "left": undone.skipped.iter().map(|(path, reason)| json!({ "path": path, "why": reason })).collect::<Vec<_>>(),
        "commands": undone.commands,
    });
    Ok(CommandOutput::new(format_undo(&undone, is_preview), json))
}

fn undo_error(error: UndoError) -> CliError {
    match error {
        UndoError::NothingToUndo => CliError::usage("there is nothing to undo in this workspace")
            .with_hint(
                "`lango trash list` shows deleted files; use --workspace for another folder",
            ),
        other => CliError::store(other.to_string()),
    }
}

fn format_undo(undone: &UndoReport, is_preview: bool) -> String {
    let mut plain = String::new();
    let verb = if is_preview {
        "would be restored"
    } else {
        "restored"
    };
    for path in &undone.restored {
        let _ = writeln!(
            plain,
            "{} {}",
            styled(NAME, one_line(path)),
            styled(DIM, verb)
        );
    }
    for (path, reason) in &undone.skipped {
        let _ = writeln!(
            plain,
            "{} not restored: {}",
            styled(NAME, one_line(path)),
            one_line(reason)
        );
    }
    if !undone.skipped.is_empty() {
        plain.push_str("`lango undo` tries again; `lango undo --skip` keeps these changes.\n");
    }
    if undone.restored.is_empty() && undone.skipped.is_empty() {
        plain.push_str("The turn changed no files with the file tools.\n");
    }
    if !undone.commands.is_empty() {
        plain.push_str("Changes made by commands cannot be undone:\n");
        undone
            .commands
            .iter()
            .for_each(|line| _ = writeln!(plain, "  $ {}", strip_control_chars(line)));
    }
    plain
}

pub fn trash(global: &GlobalArgs, command: &TrashCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let trash = undo_storage(&context.environment).trash;
    match command {
        TrashCommand::List => Ok(list(&trash.list())),
        TrashCommand::Restore { which } => {
            let path = trash.restore(which).map_err(trash_error)?;
            let plain = format!("Restored {}.\n", one_line(&path.display().to_string()));
            Ok(CommandOutput::new(plain, json!({ "restored": path })))
        }
        TrashCommand::Empty { older_than } => {
            let hours =
                older_than.map(|days| i64::from(days).saturating_mul(24).min(24 * 365 * 100));
            let before = hours.map(|hours| {
                Timestamp::now()
                    .checked_sub(hours.hours())
                    .unwrap_or(Timestamp::MIN)
            });
            let removed = trash.empty(before);
            Ok(CommandOutput::new(
                format!("{removed} entries permanently deleted.\n"),
                json!({ "emptied": removed }),
            ))
        }
    }
}

fn list(entries: &[TrashEntry]) -> CommandOutput {
    let mut plain = String::new();
    for entry in entries {
        let when = entry.at.strftime("%Y-%m-%d %H:%M");
        let path = one_line(&entry.path.display().to_string());
        let size = match entry.kind {
            TrashedKind::Folder => format!("{} files, {} bytes", entry.files, entry.bytes),
            TrashedKind::File | TrashedKind::Link | TrashedKind::Special => {
                format!("{} bytes", entry.bytes)
            }
        };
        let _ = writeln!(
            plain,
            "{}  {path}  {}",
            styled(NAME, &entry.id),
            styled(DIM, format!("{size}, {when}"))
        );
    }
    if entries.is_empty() {
        plain.push_str("The trash is empty.\n");
    }
    let items: Vec<Value> = entries
        .iter()
        .map(|entry| serde_json::to_value(entry).unwrap_or_default())
        .collect();
    CommandOutput::new(plain, json!({ "items": items }))
}

fn trash_error(error: TrashError) -> CliError {
    match error {
        TrashError::Io(error) => CliError::store(error.to_string()),
        other => {
            CliError::usage(other.to_string()).with_hint("`lango trash list` lists the entries")
        }
    }
}
