//! `lango mcp add | import | remove`: changes the file of servers.

use std::path::{Path, PathBuf};

use lango_app::capability::mcp::{ServerFiles, ServerKey};
use lango_app::{Environment, ImportedServers, ServersFile};
use serde_json::{Map, Value, json};

use super::{find, parse_key, trust};
use crate::args::{GlobalArgs, McpAddArgs};
use crate::commands::{CommandContext, environment};
use crate::output::{CliError, CommandOutput, NAME, styled};

pub fn add(global: &GlobalArgs, args: &McpAddArgs) -> Result<CommandOutput, CliError> {
    let (environment, key) = (environment()?, parse_key(&args.key)?);
    let settings = settings(&environment, args)?;
    let context = CommandContext::load(global)?;
    if context
        .loaded
        .settings
        .mcp
        .servers
        .contains_key(key.as_str())
    {
        let message = format!("there is a tool server `{key}` already");
        return Err(
            CliError::usage(message).with_hint(format!("run `lango mcp remove {key}` first"))
        );
    }
    let mut file = ServersFile::open(&environment)?;
    file.set(&key, settings);
    file.save()?;
    let added = format!("Added the tool server {}.\n", styled(NAME, &key));
    let server = find(&CommandContext::load(global)?, key.as_str())?;
    match trust::run(&server, args.yes) {
        Ok(mut output) => {
            output.plain = format!("{added}{}", output.plain);
            output.json["added"] = Value::from(key.as_str());
            Ok(output)
        }
        Err(error) => {
            let hint = format!("`{key}` was added, but is not used; run `lango mcp trust {key}`");
            Err(error.with_hint(hint))
        }
    }
}

fn settings(environment: &Environment, args: &McpAddArgs) -> Result<Value, CliError> {
    let mut settings = Map::new();
    let mut set = |name: &str, value: Value| _ = settings.insert(name.to_owned(), value);
    let absolute =
        |path: &PathBuf| Value::from(environment.working_folder.join(path).display().to_string());
    match (args.command.split_first(), &args.url) {
        (Some((command, rest)), None) => {
            let command = match command.contains('/') {
                true => absolute(&PathBuf::from(command)),
                false => Value::from(command.as_str()),
            };
            set("command", command);
            set("args", json!(rest));
            set("env", pairs("--env", &args.env)?.into());
            set("network", args.network.into());
            set("read", args.read.iter().map(absolute).collect());
            set("write", args.write.iter().map(absolute).collect());
            if let Some(cwd) = &args.cwd {
                set("cwd", absolute(cwd));
            }
        }
        (None, Some(url)) => {
            set("url", url.as_str().into());
            set("headers", pairs("--header", &args.header)?.into());
        }
        _ => {
            return Err(
                CliError::usage("pass either a command after `--`, or --url")
                    .with_hint("for example `lango mcp add time -- mcp-server-time`"),
            );
        }
    }
    if let Some(description) = &args.description {
        set("description", description.as_str().into());
    }
    Ok(Value::Object(settings))
}

fn pairs(option: &str, texts: &[String]) -> Result<Map<String, Value>, CliError> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), Value::from(value))),
        _ => Err(CliError::usage(format!("{option} needs NAME=VALUE"))),
    };
    texts.iter().map(pair).collect()
}

pub fn import(global: &GlobalArgs, path: &Path) -> Result<CommandOutput, CliError> {
    let environment = environment()?;
    let imported = ImportedServers::read(&environment.working_folder.join(path))?;
    let known = CommandContext::load(global)?.loaded.settings.mcp.servers;
    let mut file = ServersFile::open(&environment)?;
    let (mut warnings, mut added) = (imported.warnings, Vec::new());
    for (key, settings) in imported.servers {
        if known.contains_key(key.as_str()) {
            warnings.push(format!(
                "there is a tool server `{key}` already; it was left out"
            ));
            continue;
        }
        file.set(&key, settings);
        added.push(key.to_string());
    }
    file.save()?;
    let line = |key: &String| {
        format!(
            "{}  confirm it with `lango mcp trust {key}`\n",
            styled(NAME, key)
        )
    };
    let plain = match added.is_empty() {
        true => "No server was added.\n".to_owned(),
        false => added.iter().map(line).collect(),
    };
    Ok(
        CommandOutput::new(plain, json!({ "added": added, "warnings": warnings }))
            .with_warnings(warnings),
    )
}

pub fn remove(global: &GlobalArgs, key: &str) -> Result<CommandOutput, CliError> {
    let (environment, key) = (environment()?, parse_key(key)?);
    let mut file = ServersFile::open(&environment)?;
    if !file.remove(&key) {
        let known = CommandContext::load(global)?.loaded.settings.mcp.servers;
        let message = match known.contains_key(key.as_str()) {
            true => format!("the tool server `{key}` is in a configuration file; remove it there"),
            false => format!("there is no tool server `{key}`"),
        };
        return Err(CliError::usage(message).with_hint("run `lango mcp list`"));
    }
    file.save()?;
    remove_files(&environment, &key)?;
    let plain = format!("Removed the tool server {}.\n", styled(NAME, &key));
    Ok(CommandOutput::new(
        plain,
        json!({ "removed": key.as_str() }),
    ))
}

/// Removes what is known about a server, so that another server with its name is confirmed again.
fn remove_files(environment: &Environment, key: &ServerKey) -> Result<(), CliError> {
    let Some(data) = environment.data_folder() else {
        return Ok(());
    };
    ServerFiles::new(&data)
        .remove(key)
        .map_err(|error| CliError::store(error.to_string()))
}
