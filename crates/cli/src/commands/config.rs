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

/// Returns the setting with its value; `<…>` in a key matches every configured name.
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
                let child_path = |name: &str| {
                    let path = if path.is_empty() {
                        name.to_owned()
                    } else {
                        format!("{path}.{name}")
                    };
                    (path, value.get(name).unwrap_or(&Value::Null))
                };
                names.into_iter().map(child_path).collect::<Vec<_>>()
            })
            .collect();
    }
    found
        .into_iter()
        .map(|(path, value)| (path, value.clone()))
        .collect()
}

fn check(context: &CommandContext) -> Result<CommandOutput, CliError> {
    let team = context.team(&ToolNames { tools: None })?;
    check_models(&context.loaded, &context.environment, &team)?;
    let files: Vec<String> = context
        .loaded
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let warnings: Vec<String> = context
        .loaded
        .warnings
        .iter()
        .cloned()
        .chain(team.warnings())
        .collect();
    let file_list = if files.is_empty() {
        "no files".to_owned()
    } else {
        files.join(", ")
    };
    let verdict = if warnings.is_empty() {
        "The configuration is valid"
    } else {
        "The configuration is valid, with warnings"
    };
    let json = json!({ "ok": true, "files": files, "warnings": warnings });
    Ok(CommandOutput::new(format!("{verdict} ({file_list})."), json).with_warnings(warnings))
}

pub fn init(global: &GlobalArgs, args: &InitArgs) -> Result<CommandOutput, CliError> {
    let environment = environment()?;
    let folder = if args.user {
        let none = || CliError::usage("there is no configuration folder; set HOME or LANGO_HOME");
        environment.config_folder().ok_or_else(none)?
    } else {
        environment.working_folder.clone()
    };
    let file = global.config.as_ref().map_or_else(
        || folder.join(FILE_NAMES[0]),
        |config| environment.working_folder.join(config),
    );
    if file.extension().is_none_or(|extension| extension != "toml") {
        return Err(CliError::usage(format!(
            "cannot write {}: the file name must end in .toml",
            file.display()
        )));
    }
    check_overwrite(&file, args.force)?;
    write_atomically(&file, commented_file().as_bytes())
        .map_err(|error| CliError::usage(format!("cannot write {}: {error}", file.display())))?;
    let path = file.display().to_string();
    Ok(CommandOutput::new(
        format!("Wrote {path} with every setting and its default."),
        json!({ "written": path }),
    ))
}

fn check_overwrite(file: &Path, force: bool) -> Result<(), CliError> {
    let exists = |file: &Path| file.symlink_metadata().is_ok();
    if exists(file) && !force {
        let message = format!("{} already exists; nothing was written", file.display());
        return Err(CliError::usage(message).with_hint("pass --force to overwrite it"));
    }
    let is_default_name = file.file_name().is_some_and(|name| name == FILE_NAMES[0]);
    let others = FILE_NAMES[1..].iter().map(|name| file.with_file_name(name));
    match others
        .into_iter()
        .find(|other| is_default_name && exists(other))
    {
        Some(other) => Err(CliError::usage(format!(
            "this folder already has the configuration {}; nothing was written",
            other.display()
        ))
        .with_hint("move that file first; a folder can have only one configuration file")),
        None => Ok(()),
    }
}

/// Writes a temporary file and renames it, so that a full disk keeps the old file and no symlink is
/// followed.
fn write_atomically(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let temporary = folder.join(format!(".lango-{}.new", std::process::id()));
    let mut new = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)?;
    let written = new
        .write_all(bytes)
        .and_then(|()| new.sync_all())
        .and_then(|()| fs::rename(&temporary, file));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
