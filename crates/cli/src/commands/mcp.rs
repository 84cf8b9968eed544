//! `lango mcp …`: tool servers.

mod change;
mod trust;

use std::fmt::Write as _;
use std::sync::Arc;

use lango_app::capability::mcp::{
    McpError, McpServer, ServerKey, ToolDefinition, TrustState, trusted_definitions,
};
use lango_app::{ServerStatus, open_servers, server_statuses};
use lango_domain::{Content, Generation, Safety, ToolOutputSink};
use lango_text::sanitize::{escape_hidden_chars, strip_control_chars, truncated_line};
use lango_text::{suggest, token_estimate};
use serde_json::{Value, json};

use super::{CommandContext, runtime};
use crate::args::{GlobalArgs, McpCommand};
use crate::confirmation::{can_ask, confirm};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// Most bytes of a log that are read.
const MAX_LOG_BYTES: u64 = 2 * 1024 * 1024;

pub fn run(global: &GlobalArgs, command: &McpCommand) -> Result<CommandOutput, CliError> {
    match command {
        McpCommand::Add(args) => change::add(global, args),
        McpCommand::Import { file } => change::import(global, file),
        McpCommand::Remove { key } => change::remove(global, key),
        McpCommand::List => Ok(list(&CommandContext::load(global)?)),
        McpCommand::Tools { key } => tools(find(&CommandContext::load(global)?, key)?.as_ref()),
        McpCommand::Check { key } => check(&CommandContext::load(global)?, key.as_deref()),
        McpCommand::Call {
            key,
            tool,
            arguments,
            yes,
        } => {
            let server = find(&CommandContext::load(global)?, key)?;
            call(&server, (tool, arguments), *yes)
        }
        McpCommand::Trust { key, yes } => {
            trust::run(find(&CommandContext::load(global)?, key)?.as_ref(), *yes)
        }
        McpCommand::Logs { key, lines } => {
            logs(find(&CommandContext::load(global)?, key)?.as_ref(), *lines)
        }
    }
}

/// Returns a server of the settings.
fn find(context: &CommandContext, key: &str) -> Result<Arc<McpServer>, CliError> {
    let (servers, problems) = open_servers(
        &context.loaded,
        &context.environment,
        &Generation::default(),
    );
    if let Some(server) = servers.iter().find(|server| server.key.as_str() == key) {
        return Ok(Arc::clone(server));
    }
    let prefix = format!("mcp.servers.{key}: ");
    if let Some(problem) = problems.iter().find(|problem| problem.starts_with(&prefix)) {
        return Err(CliError::usage(problem.clone()));
    }
    let shown = truncated_line(key, 80);
    let names = servers.iter().map(|server| server.key.as_str());
    let hint = suggest::did_you_mean(key, names);
    Err(
        CliError::usage(format!("there is no tool server `{shown}`"))
            .with_hint(hint.unwrap_or_else(|| "run `lango mcp list`".to_owned())),
    )
}

fn state_name(status: &ServerStatus) -> &'static str {
    match (status.trust, status.changed.is_empty()) {
        (TrustState::Unconfirmed, _) => "unconfirmed",
        (TrustState::LaunchChanged, _) => "settings changed",
        (TrustState::Trusted, false) => "tools changed",
        (TrustState::Trusted, true) => "ready",
    }
}

fn tokens(tools: &[ToolDefinition]) -> usize {
    let one = |tool: &ToolDefinition| {
        token_estimate::estimate(&tool.description)
            + token_estimate::estimate(&tool.input_schema.to_string())
    };
    tools.iter().map(one).sum()
}

fn list(context: &CommandContext) -> CommandOutput {
    let (statuses, problems) = server_statuses(&context.loaded, &context.environment);
    let (mut plain, mut items) = (String::new(), Vec::new());
    for status in &statuses {
        let (server, state) = (&status.server, state_name(status));
        let revision = status.revision.as_deref().unwrap_or("never started");
        let (count, tokens) = (status.trusted.len(), tokens(&status.trusted));
        let line = escape_hidden_chars(&server.settings.command_line());
        let _ = writeln!(
            plain,
            "{}  {state}, {revision}, {count} tools, {tokens} tokens  {}",
            styled(NAME, &server.key),
            styled(DIM, truncated_line(&line, 200))
        );
        items.push(json!({
            "key": server.key.as_str(),
            "state": state,
            "revision": status.revision,
            "tools": count,
            "tokens": tokens,
            "trusted": status.trust == TrustState::Trusted,
            "error": null,
        }));
    }
    if statuses.is_empty() {
        plain
            .push_str("There are no tool servers. Add one with `lango mcp add NAME -- COMMAND`.\n");
    }
    CommandOutput::new(plain, json!({ "items": items })).with_warnings(problems)
}

fn tools(server: &McpServer) -> Result<CommandOutput, CliError> {
    let manifest = server.manifest().ok_or_else(|| {
        CliError::usage(format!(
            "the tool server `{}` was never started",
            server.key
        ))
        .with_hint(format!("run `lango mcp trust {}`", server.key))
    })?;
    let trust = server.files().trust();
    let (mut plain, mut items) = (String::new(), Vec::new());
    for (tool, change) in trust.compare(&server.key, &manifest) {
        let level = level_name(server.settings.level(&tool.name));
        let change = json!(change);
        let state = change.as_str().filter(|state| *state != "same");
        let mark = state.map_or(String::new(), |state| format!(", {state}: not used"));
        let _ = writeln!(
            plain,
            "{}  {} {}",
            styled(NAME, strip_control_chars(&tool.name)),
            truncated_line(&tool.description, 120),
            styled(DIM, format!("({level}{mark})"))
        );
        items.push(json!({
            "name": tool.name, "description": tool.description, "level": level,
            "state": change, "input_schema": tool.input_schema, "fingerprint": tool.fingerprint(),
        }));
    }
    for left in &manifest.left_out {
        let _ = writeln!(plain, "left out: {}: {}", left.name, left.reason);
    }
    let json = json!({ "items": items, "left_out": manifest.left_out });
    Ok(CommandOutput::new(plain, json))
}

fn level_name(level: Safety) -> &'static str {
    match level {
        Safety::Safe => "safe",
        Safety::Moderate => "moderate",
        Safety::Dangerous => "dangerous",
    }
}

fn check(context: &CommandContext, key: Option<&str>) -> Result<CommandOutput, CliError> {
    let (servers, problems) = match key {
        Some(key) => (vec![find(context, key)?], Vec::new()),
        None => open_servers(
            &context.loaded,
            &context.environment,
            &Generation::default(),
        ),
    };
    let refreshed = runtime()?.block_on(async {
        let started = servers.iter().map(|server| server.refresh());
        futures::future::join_all(started).await
    });
    let (mut plain, mut items, mut failed) = (String::new(), Vec::new(), Vec::new());
    for (server, refreshed) in servers.iter().zip(refreshed) {
        match refreshed {
            Ok(manifest) => {
                let (tools, name) = (manifest.tools.len(), styled(NAME, &server.key));
                let (by, revision) = (strip_control_chars(&manifest.server), &manifest.revision);
                let _ = writeln!(plain, "{name}  {by}, {revision}, {tools} tools");
                items.push(json!({ "key": server.key.as_str(), "server": by, "revision": revision, "tools": tools, "error": null }));
            }
            Err(error) => {
                let error = error.to_string();
                items.push(json!({ "key": server.key.as_str(), "error": error }));
                failed.push(error);
            }
        }
    }
    if let (Some(_), Some(error)) = (key, failed.first()) {
        return Err(
            CliError::remote(error.clone()).with_hint("run `lango mcp logs` for its output")
        );
    }
    let warnings = problems.into_iter().chain(failed).collect();
    Ok(CommandOutput::new(plain, json!({ "items": items })).with_warnings(warnings))
}

fn call(
    server: &Arc<McpServer>,
    (tool, arguments): (&str, &str),
    yes: bool,
) -> Result<CommandOutput, CliError> {
    let arguments: Value = serde_json::from_str(arguments)
        .map_err(|error| CliError::usage(format!("the arguments are not JSON: {error}")))?;
    let Value::Object(arguments) = arguments else {
        return Err(CliError::usage("the arguments must be a JSON object"));
    };
    let trusted = trusted_definitions(server);
    let Some(definition) = trusted.iter().find(|known| known.name == tool) else {
        let names = trusted.iter().map(|known| known.name.as_str());
        let hint = suggest::did_you_mean(tool, names);
        let shown = truncated_line(tool, 80);
        let message = format!("`{}` has no confirmed tool `{shown}`", server.key);
        let hint = hint.unwrap_or_else(|| format!("run `lango mcp tools {}`", server.key));
        return Err(CliError::usage(message).with_hint(hint));
    };
    if !yes && server.settings.level(tool) != Safety::Safe {
        let shown = escape_hidden_chars(&format!("{tool} {:#}", Value::Object(arguments.clone())));
        if !can_ask() {
            let message = "the call was not made because there is no terminal to confirm it";
            return Err(CliError::denied(message).with_hint("pass --yes"));
        }
        if !confirm(&shown, "Call it?")? {
            return Err(CliError::denied("cancelled; nothing was called"));
        }
    }
    let (name, fingerprint) = (definition.name.clone(), definition.fingerprint());
    let sink = ToolOutputSink::new(|text| crate::output::print_stderr(text.trim_end()));
    let called = runtime()?.block_on(server.call((&name, &fingerprint), arguments, sink));
    Ok(content_output(called.map_err(failure)?))
}

fn content_output(content: Content) -> CommandOutput {
    let plain = strip_control_chars(&content.to_plain_text());
    let attachments: Vec<Value> = content
        .attachments_in_order()
        .into_iter()
        .map(|file| json!({ "name": file.name, "media_type": file.media_type, "size": file.size }))
        .collect();
    CommandOutput::new(
        plain,
        json!({ "text": content.text, "attachments": attachments }),
    )
}

fn failure(error: McpError) -> CliError {
    CliError::remote(strip_control_chars(&error.to_string()))
}

fn logs(server: &McpServer, lines: usize) -> Result<CommandOutput, CliError> {
    let path = server.files().log(&server.key);
    let text = match lango_app::read_bounded(&path, MAX_LOG_BYTES) {
        Ok(bytes) => strip_control_chars(&String::from_utf8_lossy(&bytes)),
        Err(_) => String::new(),
    };
    let all: Vec<&str> = text.lines().collect();
    let last = &all[all.len().saturating_sub(lines)..];
    let plain = match last.is_empty() {
        true => "The log is empty.\n".to_owned(),
        false => last.join("\n"),
    };
    Ok(CommandOutput::new(
        plain,
        json!({ "file": path, "lines": last }),
    ))
}

/// Returns a valid name of a server.
fn parse_key(key: &str) -> Result<ServerKey, CliError> {
    ServerKey::parse(key).map_err(CliError::usage)
}
