//! `lango mcp trust`: shows what a server is and does, then confirms exactly that.

use std::fmt::Write as _;

use lango_app::capability::mcp::{Manifest, McpServer, ServerAddress, TrustChange, TrustState};
use lango_text::sanitize::{escape_hidden_chars, one_line};
use serde_json::{Value, json};

use super::{failure, level_name};
use crate::commands::runtime;
use crate::confirmation::{can_ask, confirm};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// Starts a server and confirms it with its tools. The command line is confirmed before the program runs.
pub fn run(server: &McpServer, yes: bool) -> Result<CommandOutput, CliError> {
    let trust = server.files().trust();
    let is_known = trust.state(&server.key, &server.launch()) == TrustState::Trusted;
    let start = start_preview(server);
    if !is_known {
        ask(&start, "Start it to list its tools?", yes)?;
    }
    let manifest = runtime()?.block_on(server.refresh()).map_err(|error| {
        failure(error).with_hint(format!("run `lango mcp logs {}`", server.key))
    })?;
    let (preview, changes) = tools_preview(server, &manifest);
    let is_same = is_known
        && changes
            .iter()
            .all(|(_, change)| *change == TrustChange::Same);
    if !is_same {
        ask(
            &preview,
            "Confirm these tools? Their descriptions are read by models.",
            yes,
        )?;
        trust
            .confirm(&server.key, &manifest)
            .map_err(|error| CliError::store(error.to_string()))?;
    }
    let count = manifest.tools.len();
    let done = match is_same {
        true => format!("Nothing changed: {count} tools are confirmed.\n"),
        false => format!("Confirmed: {count} tools can be used until one of them changes.\n"),
    };
    let plain = match yes && !is_same {
        true => format!("{start}{preview}{done}"),
        false => done,
    };
    let tools: Vec<Value> = changes
        .iter()
        .map(|(name, change)| json!({ "name": name, "change": change }))
        .collect();
    let json = json!({ "key": server.key.as_str(), "command": server.settings.command_line(), "tools": tools });
    Ok(CommandOutput::new(plain, json))
}

fn ask(details: &str, question: &str, yes: bool) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    if !can_ask() {
        let message = "the tool server was not confirmed because there is no terminal";
        return Err(CliError::denied(message).with_hint("review it, then pass --yes"));
    }
    match confirm(details, question)? {
        true => Ok(()),
        false => Err(CliError::denied("cancelled; nothing was confirmed")),
    }
}

/// Returns the whole command line and the access of a program.
fn start_preview(server: &McpServer) -> String {
    let settings = &server.settings;
    let line = one_line(&escape_hidden_chars(&settings.command_line()));
    let mut text = format!("{}  {line}\n", styled(NAME, &server.key));
    let mut add = |name: &str, value: String| _ = writeln!(text, "  {name}: {value}");
    match server.address() {
        ServerAddress::Program(_) => {
            let network = match settings.network {
                true => "allowed",
                false => "none",
            };
            add("network", network.to_owned());
            for (name, paths) in [("read", &settings.read), ("write", &settings.write)] {
                if !paths.is_empty() {
                    let paths = paths.iter().map(|path| path.display().to_string());
                    add(name, one_line(&paths.collect::<Vec<_>>().join(", ")));
                }
            }
            if !settings.env.is_empty() {
                let names: Vec<&str> = settings.env.keys().map(String::as_str).collect();
                add("variables", one_line(&names.join(", ")));
            }
        }
        ServerAddress::Url { url, .. } => {
            add("host", url.host_str().unwrap_or_default().to_owned());
        }
    }
    text
}

/// Returns the tools with their whole descriptions, and how they differ from the confirmed ones.
fn tools_preview(server: &McpServer, manifest: &Manifest) -> (String, Vec<(String, TrustChange)>) {
    let trust = server.files().trust();
    let (mut text, mut changes) = (String::new(), Vec::new());
    for (tool, change) in trust.compare(&server.key, manifest) {
        let mark = match change {
            TrustChange::Same => "confirmed",
            TrustChange::New => "new",
            TrustChange::Changed => "changed",
        };
        let level = level_name(server.settings.level(&tool.name));
        let name = one_line(&escape_hidden_chars(&tool.name));
        let note = styled(DIM, format!("({mark}, {level})"));
        let _ = writeln!(text, "- {} {note}", styled(NAME, name));
        if change != TrustChange::Same {
            let description = escape_hidden_chars(&tool.description);
            let _ = writeln!(text, "{description}");
        }
        changes.push((tool.name.clone(), change));
    }
    for left in &manifest.left_out {
        let _ = writeln!(text, "left out: {}: {}", left.name, left.reason);
    }
    (text, changes)
}
