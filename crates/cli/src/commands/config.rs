//! `lango config …` and `lango init`.

mod trust;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use lango_app::config::{FILE_NAMES, commented_file, setting_docs, to_json};
use lango_app::{LoadedConfig, Settings, check_models};
use serde_json::{Value, json};

use super::{CommandContext, environment};
use crate::args::{ConfigCommand, GlobalArgs, InitArgs, ToolNames};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn run(global: &GlobalArgs, command: &ConfigCommand) -> Result<CommandOutput, CliError> {
    match command {
        ConfigCommand::Schema => {
            let schema = Settings::schema();
            Ok(CommandOutput::new(format!("{schema:#}"), schema))
        }
        ConfigCommand::Trust { yes } => trust::run(global, *yes),
        ConfigCommand::Show => Ok(show(&CommandContext::load(global)?.loaded)),
        ConfigCommand::Check => check(&CommandContext::load(global)?),
    }
}

fn show(loaded: &LoadedConfig) -> CommandOutput {
    let json = to_json(&loaded.settings);
    let rows: Vec<(String, String, Option<String>)> = setting_docs()
        .iter()
        .flat_map(|entry| setting_values(&json, &entry.key))
        .map(|(key, value)| {
            let origin = loaded.origins_under(&key).map(ToString::to_string).next();
            let value = if value.is_null() {
                "(not set)".to_owned()
            } else {
                value.to_string()
            };
            (key, value, origin)
        })
        .collect();
    let width = rows
        .iter()
        .map(|(key, value, _)| key.len() + value.len())
        .max()
        .unwrap_or(0);
    let mut plain = String::new();
    for (key, value, origin) in rows {
        let gap = " ".repeat(width - key.len() - value.len() + 2);
        let origin = origin.map_or(String::new(), |origin| {
            format!("{gap}{}", styled(DIM, format!("# {origin}")))
        });
        let _ = writeln!(plain, "{} = {value}{origin}", styled(NAME, key));
    }
    CommandOutput::new(plain, json).with_warnings(loaded.warnings.clone())
}

/// The setting with its value; `<…>` in a key stands for every name that is there.
fn setting_values(json: &Value, key: &str) -> Vec<(String, Value)> {
    let mut found = vec![(String::new(), json)];
    for part in key.split('.') {
        found = found
            .into_iter()
            .flat_map(|(path, value)| {
                let names: Vec<&str> = match value.as_object() {
                    Some(map) if part.starts_with('<') => map.keys().map(String::as_str).collect(),
                    _ if part.starts_with('<') => Vec::new(),
                    _ => vec![part],
                };
                let below = |name: &str| {
                    let path = if path.is_empty() {
                        name.to_owned()
                    } else {
                        format!("{path}.{name}")
                    };
                    (path, value.get(name).unwrap_or(&Value::Null))
                };
                names.into_iter().map(below).collect::<Vec<_>>()
            })
            .collect();
    }
    found
        .into_iter()
        .map(|(path, value)| (path, value.clone()))
        .collect()
}

fn check(setting: &CommandContext) -> Result<CommandOutput, CliError> {
    let team = setting.team(&ToolNames { tools: None })?;
    check_models(&setting.loaded, &setting.environment, &team)?;
    let files: Vec<String> = setting
        .loaded
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let warnings: Vec<String> = setting
        .loaded
        .warnings
        .iter()
        .cloned()
        .chain(team.warnings())
        .collect();
    let read = if files.is_empty() {
        "no file".to_owned()
    } else {
        files.join(", ")
    };
    let verdict = if warnings.is_empty() {
        "The configuration is good"
    } else {
        "The configuration can be used"
    };
    let json = json!({ "ok": true, "files": files, "warnings": warnings });
    Ok(CommandOutput::new(format!("{verdict} ({read})."), json).with_warnings(warnings))
}

pub fn init(global: &GlobalArgs, wish: &InitArgs) -> Result<CommandOutput, CliError> {
    let environment = environment()?;
    let folder = if wish.user {
        let none = || {
            CliError::usage("there is no configuration folder: neither LANGO_HOME nor HOME is set")
        };
        environment.config_folder().ok_or_else(none)?
    } else {
        environment.working_folder.clone()
    };
    let file = global.config.as_ref().map_or_else(
        || folder.join(FILE_NAMES[0]),
        |named| environment.working_folder.join(named),
    );
    if file.extension().is_none_or(|extension| extension != "toml") {
        return Err(CliError::usage(format!(
            "{} does not end in .toml",
            file.display()
        )));
    }
    check_overwrite(&file, wish.force)?;
    write_atomically(&file, commented_file().as_bytes())
        .map_err(|error| CliError::usage(format!("cannot write {}: {error}", file.display())))?;
    let shown = file.display().to_string();
    Ok(CommandOutput::new(
        format!("Wrote {shown}; every setting stands there with its default."),
        json!({ "written": shown }),
    ))
}

fn check_overwrite(file: &Path, force: bool) -> Result<(), CliError> {
    let is_there = |file: &Path| file.symlink_metadata().is_ok();
    if is_there(file) && !force {
        let message = format!("{} is there already; nothing was written", file.display());
        return Err(CliError::usage(message).with_hint("--force replaces it"));
    }
    let is_default_name = file.file_name().is_some_and(|name| name == FILE_NAMES[0]);
    let others = FILE_NAMES[1..].iter().map(|name| file.with_file_name(name));
    match others
        .into_iter()
        .find(|other| is_default_name && is_there(other))
    {
        Some(other) => Err(CliError::usage(format!(
            "{} is this folder's configuration; nothing was written",
            other.display()
        ))
        .with_hint("move it away first: a folder has one configuration file")),
        None => Ok(()),
    }
}

/// Written beside and renamed, so that a full disk leaves the old file as it was, and nothing is written through a link.
fn write_atomically(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!(".lango-{}.new", std::process::id()));
    let mut new = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&beside)?;
    let written = new
        .write_all(bytes)
        .and_then(|()| new.sync_all())
        .and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
