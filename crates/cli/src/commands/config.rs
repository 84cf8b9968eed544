//! `lango config …` and `lango init`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use lango_app::config::{Entry, FILE_NAMES, commented_file, entries, to_json};
use lango_app::{Loaded, Settings};
use serde_json::{Value, json};

use super::{Setting, environment};
use crate::args::{ConfigCommand, Global, ToolNames};
use crate::output::{DIM, Failure, NAME, Output, styled};

pub fn run(global: &Global, command: &ConfigCommand) -> Result<Output, Failure> {
    match command {
        ConfigCommand::Schema => {
            let schema = Settings::schema();
            Ok(Output::new(format!("{schema:#}"), schema))
        }
        ConfigCommand::Show => Ok(show(&Setting::read(global)?.loaded)),
        ConfigCommand::Check => check(&Setting::read(global)?),
    }
}

fn show(loaded: &Loaded) -> Output {
    let json = to_json(&loaded.settings);
    let value_of = |key: &str| match json.pointer(&format!("/{}", key.replace('.', "/"))) {
        None | Some(Value::Null) => "(not set)".to_owned(),
        Some(value) => value.to_string(),
    };
    let rows: Vec<(String, String, Option<String>)> = entries()
        .into_iter()
        .map(|Entry { key, .. }| (value_of(&key), origin(loaded, &key), key))
        .map(|(value, origin, key)| (key, value, origin))
        .collect();
    let width = rows.iter().map(|(key, value, _)| key.len() + value.len()).max().unwrap_or(0);
    let mut plain = String::new();
    for (key, value, origin) in rows {
        let gap = " ".repeat(width - key.len() - value.len() + 2);
        let origin =
            origin.map_or(String::new(), |origin| format!("{gap}{}", styled(DIM, format!("# {origin}"))));
        let _ = writeln!(plain, "{} = {value}{origin}", styled(NAME, key));
    }
    Output::new(plain, json)
}

/// Where a setting, or something below it, was set.
fn origin(loaded: &Loaded, key: &str) -> Option<String> {
    loaded.origins_under(key).map(ToString::to_string).next()
}

fn check(setting: &Setting) -> Result<Output, Failure> {
    let team = setting.team(&ToolNames { tools: None })?;
    let files: Vec<String> = setting.loaded.files.iter().map(|file| file.display().to_string()).collect();
    let warnings = team.warnings();
    let read =
        if files.is_empty() { "no file; the defaults are in force".to_owned() } else { files.join(", ") };
    let verdict =
        if warnings.is_empty() { "The configuration is good" } else { "The configuration can be used" };
    let json = json!({ "ok": true, "files": files, "warnings": warnings });
    Ok(Output::new(format!("{verdict} ({read})."), json).with_warnings(warnings))
}

pub fn init(user: bool, force: bool) -> Result<Output, Failure> {
    let environment = environment()?;
    let folder = if user {
        let none = || Failure::usage("there is no configuration folder: neither LANGO_HOME nor HOME is set");
        environment.config_folder().ok_or_else(none)?
    } else {
        environment.working_folder
    };
    if let Some(present) =
        FILE_NAMES.iter().map(|name| folder.join(name)).find(|file| file.exists() && !force)
    {
        let message = format!("{} is there already; nothing was written", present.display());
        return Err(Failure::usage(message).with_hint("--force replaces it"));
    }
    let file = folder.join(FILE_NAMES[0]);
    let cannot = |error| Failure::usage(format!("cannot write {}: {error}", file.display()));
    fs::create_dir_all(&folder).map_err(cannot)?;
    // Written beside and renamed, so that a full disk leaves the old file as it was.
    let beside = folder.join(".lango.toml.new");
    let written = fs::File::create(&beside)
        .and_then(|mut new| new.write_all(commented_file().as_bytes()).and_then(|()| new.sync_all()))
        .and_then(|()| fs::rename(&beside, &file));
    if let Err(error) = written {
        let _ = fs::remove_file(&beside);
        return Err(cannot(error));
    }
    let shown = file.display().to_string();
    Ok(Output::new(
        format!("Wrote {shown}; every setting stands there with its default."),
        json!({ "written": shown }),
    ))
}
