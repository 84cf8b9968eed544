//! `lango undo` and `lango trash`: taking back what was done to files.

use std::fmt::Write as _;

use jiff::{Timestamp, ToSpan};
use lango_app::{undo_storage, workspace_folder};
use lango_domain::text::{one_line, strip_control_chars};
use lango_tools::files::{TrashEntry, TrashError, TrashedKind, UndoError, UndoReport};
use serde_json::{Value, json};

use super::CommandContext;
use crate::args::{GlobalArgs, TrashCommand, UndoArgs};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn undo(global: &GlobalArgs, wish: &UndoArgs) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::load(global)?;
    let journal = undo_storage(&setting.environment).journal;
    let (root, _) = workspace_folder(&setting.loaded, &setting.environment);
    let root = root
        .canonicalize()
        .map_err(|error| CliError::usage(format!("{}: {error}", root.display())))?;
    if wish.skip {
        journal.skip_last(&root).map_err(undo_error)?;
        let plain = "The last turn stays as it is; the next undo goes further back.\n";
        return Ok(CommandOutput::new(plain, json!({ "skipped": true })));
    }
    let only_show = wish.show;
    let undone = if only_show {
        journal.preview_last(&root)
    } else {
        journal.undo_last(&root)
    }
    .map_err(undo_error)?;
    let json = json!({
        "turn": undone.turn,
        "restored": undone.restored,
        "left": undone.skipped.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect::<Vec<_>>(),
        "commands": undone.commands,
    });
    Ok(CommandOutput::new(format_undo(&undone, only_show), json))
}

fn undo_error(error: UndoError) -> CliError {
    match error {
        UndoError::NothingToUndo => CliError::usage("there is nothing to undo in this workspace")
            .with_hint(
                "`lango trash list` shows what was deleted; --workspace names another folder",
            ),
        other => CliError::store(other.to_string()),
    }
}

fn format_undo(undone: &UndoReport, only_show: bool) -> String {
    let mut plain = String::new();
    let verb = if only_show {
        "would be as before"
    } else {
        "as before"
    };
    for path in &undone.restored {
        let _ = writeln!(
            plain,
            "{} {}",
            styled(NAME, one_line(path)),
            styled(DIM, verb)
        );
    }
    for (path, why) in &undone.skipped {
        let _ = writeln!(
            plain,
            "{} left as it is: {}",
            styled(NAME, one_line(path)),
            one_line(why)
        );
    }
    if !undone.skipped.is_empty() {
        plain.push_str("`lango undo` tries it again, `lango undo --skip` goes on without it.\n");
    }
    if undone.restored.is_empty() && undone.skipped.is_empty() {
        plain.push_str("The turn changed no file by itself.\n");
    }
    if !undone.commands.is_empty() {
        plain.push_str("What commands did cannot be undone:\n");
        undone
            .commands
            .iter()
            .for_each(|line| _ = writeln!(plain, "  $ {}", strip_control_chars(line)));
    }
    plain
}

pub fn trash(global: &GlobalArgs, command: &TrashCommand) -> Result<CommandOutput, CliError> {
    let setting = CommandContext::load(global)?;
    let trash = undo_storage(&setting.environment).trash;
    match command {
        TrashCommand::List => Ok(list(&trash.list())),
        TrashCommand::Restore { which } => {
            let path = trash.restore(which).map_err(trash_error)?;
            let plain = format!("{} is back.\n", one_line(&path.display().to_string()));
            Ok(CommandOutput::new(plain, json!({ "restored": path })))
        }
        TrashCommand::Empty { older_than } => {
            let days =
                older_than.map(|days| i64::from(days).saturating_mul(24).min(24 * 365 * 100));
            let before = days.map(|hours| {
                Timestamp::now()
                    .checked_sub(hours.hours())
                    .unwrap_or(Timestamp::MIN)
            });
            let gone = trash.empty(before);
            Ok(CommandOutput::new(
                format!("{gone} gone for good.\n"),
                json!({ "emptied": gone }),
            ))
        }
    }
}

fn list(all: &[TrashEntry]) -> CommandOutput {
    let mut plain = String::new();
    for trashed in all {
        let when = trashed.at.strftime("%Y-%m-%d %H:%M");
        let path = one_line(&trashed.path.display().to_string());
        let what = match trashed.kind {
            TrashedKind::Folder => format!("{} files, {} bytes", trashed.files, trashed.bytes),
            TrashedKind::File | TrashedKind::Link | TrashedKind::Special => {
                format!("{} bytes", trashed.bytes)
            }
        };
        let _ = writeln!(
            plain,
            "{}  {path}  {}",
            styled(NAME, &trashed.id),
            styled(DIM, format!("{what}, {when}"))
        );
    }
    if all.is_empty() {
        plain.push_str("The trash is empty.\n");
    }
    let items: Vec<Value> = all
        .iter()
        .map(|trashed| serde_json::to_value(trashed).unwrap_or_default())
        .collect();
    CommandOutput::new(plain, json!({ "items": items }))
}

fn trash_error(error: TrashError) -> CliError {
    match error {
        TrashError::Io(error) => CliError::store(error.to_string()),
        other => {
            CliError::usage(other.to_string()).with_hint("`lango trash list` shows what is there")
        }
    }
}
