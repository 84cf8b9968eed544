//! The tools: run a command, or start one and look after it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use lango_domain::{Destination, Intent, OutgoingData, Safety, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Shell;
use super::command::{CommandRequest, Program};
use super::command_kind::{CommandKind, classify};
use super::process::RunningCommand;

/// Of an output, so many lines are read at one time.
const DEFAULT_LINES: usize = 200;
const MAX_LINES: usize = 2_000;
const MAX_LINE_CHARS: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
struct ExecShellArgs {
    /// A line for bash, as one would type it.
    command: String,
    /// The folder to run it in, relative to the workspace; the workspace itself by default.
    cwd: Option<String>,
    /// Seconds that it may take.
    timeout: Option<u64>,
    /// What the command reads from standard input.
    stdin: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ExecStartArgs {
    /// A line for bash, as one would type it.
    command: String,
    /// The folder to run it in, relative to the workspace; the workspace itself by default.
    cwd: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ExecStatusArgs {
    /// The id that exec_start gave; of all commands that were started when it is left out.
    id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ExecStopArgs {
    /// The id that exec_start gave.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
struct ExecOutputArgs {
    /// The id that exec_shell or exec_start gave.
    id: String,
    /// The first line to read, from 1; without it the last lines are read.
    start_line: Option<usize>,
    /// How many lines to read.
    lines: Option<usize>,
    /// Only lines that this regular expression fits.
    pattern: Option<String>,
}

pub fn tools(shell: &Shell) -> Vec<Tool> {
    vec![
        with_network(shell, exec_shell(shell.clone())),
        with_network(shell, exec_start(shell.clone())),
        exec_status(shell.clone()),
        exec_output(shell.clone()),
        exec_stop(shell.clone()),
    ]
}

/// A command that has a network may send anything anywhere (B103).
fn with_network(shell: &Shell, tool: Tool) -> Tool {
    match shell.inner.parts.settings.network {
        true => tool.with_outgoing(|args: Value| {
            let data = args["command"].as_str().unwrap_or_default().to_owned();
            OutgoingData {
                to: Destination::Host("any address".to_owned()),
                data,
            }
        }),
        false => tool,
    }
}

fn exec_shell(shell: Shell) -> Tool {
    let described = "Runs a command in the workspace and gives its exit code and what it printed. It runs in a sandbox: only the \
        workspace can be changed, and everything that it starts ends with it.";
    let (told, reading) = (shell.clone(), shell.clone());
    Tool::new("exec_shell", described, Safety::Dangerous, move |context, args: ExecShellArgs| {
        let shell = shell.clone();
        async move {
            let time = args.timeout.map(Duration::from_secs);
            let stdin = args.stdin.unwrap_or_default();
            let errand = shell.command_request(args.command, args.cwd.as_deref(), stdin, time)?;
            shell.run(&context, errand).await
        }
    })
    .with_intent(move |_, args: ExecShellArgs| {
        let told = told.clone();
        async move { told.intent(&args.command, args.cwd.as_deref(), args.stdin.as_deref()) }
    })
    .with_read_only_calls(move |args| reading.is_read_only(args))
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "(run|execute) [the] [shell] [command] {command}",
        "run {command} in [the] [folder] {cwd:word}",
        "(run|execute) [the] [shell] [command] {command} with [a] timeout [of] {timeout:word} [seconds]",
        "what does {command} (print|output|say)",
    ])
}

fn exec_start(shell: Shell) -> Tool {
    let described = "Starts a command that runs for long, such as a server, and gives its id at once. It ends when it is stopped or \
        when Lango ends.";
    let told = shell.clone();
    Tool::new("exec_start", described, Safety::Dangerous, move |context, args: ExecStartArgs| {
        let shell = shell.clone();
        async move {
            shell.inner.jobs.check_capacity()?;
            let errand = shell.command_request(args.command.clone(), args.cwd.as_deref(), String::new(), None)?;
            let folder = errand.folder.clone();
            let output = shell.inner.outputs.create(&context);
            let running = RunningCommand::start(&shell.inner.parts, shell.readable_etc_paths(), errand, output).await?;
            shell.record_command(&context, folder, args.command.clone());
            let id = shell.inner.jobs.adopt(&shell, &context, args.command, running);
            Ok(format!(
                "started, id {id}. It runs until exec_stop, or until Lango ends. exec_status tells how it goes, exec_output \
                 what it prints."
            ))
        }
    })
    .with_intent(move |_, args: ExecStartArgs| {
        let told = told.clone();
        async move { told.intent(&args.command, args.cwd.as_deref(), None) }
    })
    .with_phrases(["start [the] [server|command] {command}", "(run|start) {command} and keep it running"])
}

fn exec_status(shell: Shell) -> Tool {
    let described = "Tells whether commands that exec_start started still run, and how those ended that do not.";
    Tool::new(
        "exec_status",
        described,
        Safety::Safe,
        move |context, args: ExecStatusArgs| {
            let shell = shell.clone();
            async move {
                let jobs = match &args.id {
                    Some(id) => vec![(id.clone(), shell.inner.jobs.find(&context, id)?)],
                    None => shell.inner.jobs.list(&context),
                };
                let told = jobs.iter().map(|(id, job)| {
                    let age = job.age().as_secs();
                    match (&*job.result.borrow(), job.is_running()) {
                        (Some(Ok(end) | Err(end)), _) => {
                            format!("{id}: {} ended: {end}", job.command)
                        }
                        (None, true) => format!("{id}: {} runs since {age} s", job.command),
                        (None, false) => format!("{id}: {} was stopped", job.command),
                    }
                });
                let told: Vec<String> = told.collect();
                Ok(if told.is_empty() {
                    "No command was started.".to_owned()
                } else {
                    told.join("\n")
                })
            }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases([
        "(status|state) of [the] [command] {id:word}",
        "(show|list) [the] (running|started) commands",
        "(is|are) [the] [command] {id:word} still running",
    ])
}

fn exec_output(shell: Shell) -> Tool {
    let described = "Reads what a command printed, or prints so far: a range of lines, or those that a pattern fits.";
    Tool::new(
        "exec_output",
        described,
        Safety::Safe,
        move |context, args: ExecOutputArgs| {
            let shell = shell.clone();
            async move {
                let file = shell.inner.outputs.find(&context, &args.id);
                let file = file.ok_or_else(|| {
                    ToolError(format!("there is no output with the id {}", args.id))
                })?;
                let read = tokio::task::spawn_blocking(move || read_lines(&file, &args));
                read.await.map_err(|error| ToolError(error.to_string()))?
            }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases(["(show|read) [me] [the] output of [the] [command] {id:word}"])
}

fn exec_stop(shell: Shell) -> Tool {
    let described = "Stops a command that exec_start started, with everything that it started.";
    Tool::new(
        "exec_stop",
        described,
        Safety::Moderate,
        move |context, args: ExecStopArgs| {
            let shell = shell.clone();
            async move {
                let job = shell.inner.jobs.find(&context, &args.id)?;
                if !job.is_running() {
                    return Ok(format!("{} had ended already", args.id));
                }
                job.stop();
                Ok(format!("{} is stopped", args.id))
            }
        },
    )
    .with_phrases(["stop [the] [command] {id:word}"])
}

impl Shell {
    fn command_request(
        &self,
        line: String,
        cwd: Option<&str>,
        stdin: String,
        time: Option<Duration>,
    ) -> Result<CommandRequest, ToolError> {
        if line.trim().is_empty() || line.contains('\0') {
            return Err(ToolError(
                "`command` must be a line for the shell".to_owned(),
            ));
        }
        let longest = self.inner.parts.max_duration;
        if time.is_some_and(|time| time > longest || time.is_zero()) {
            let most = longest.as_secs();
            return Err(ToolError(format!(
                "`timeout` is a number of seconds from 1 to {most}; for what takes longer there is exec_start"
            )));
        }
        let folder = self
            .inner
            .parts
            .workspace
            .resolve_folder(cwd.unwrap_or("."))?;
        Ok(CommandRequest {
            program: Program::Line(line),
            folder,
            stdin,
            timeout: time,
            extra_read_paths: Vec::new(),
        })
    }

    /// Whether a command is of the reading kind: it starts no other program, changes nothing and has no network.
    fn is_read_only(&self, args: &Value) -> bool {
        let text = |name: &str| args[name].as_str().unwrap_or_default();
        let folder = self
            .inner
            .parts
            .workspace
            .resolve_folder(args["cwd"].as_str().unwrap_or("."));
        let is_reading = |folder: &Path| {
            matches!(
                classify(text("command"), folder),
                Some(CommandKind::ReadOnly(_))
            )
        };
        !self.inner.parts.settings.network
            && text("stdin").is_empty()
            && folder.is_ok_and(|folder| is_reading(&folder))
    }

    fn intent(
        &self,
        line: &str,
        cwd: Option<&str>,
        stdin: Option<&str>,
    ) -> Result<Intent, ToolError> {
        let errand = self.command_request(line.to_owned(), cwd, String::new(), None)?;
        let shows = format!("$ {line}\nin {}", errand.folder.display());
        let Some(stdin) = stdin.filter(|stdin| !stdin.is_empty()) else {
            let pattern = classify(line, &errand.folder).map(CommandKind::into_pattern);
            let subject = line.to_owned();
            return Ok(Intent {
                level: Safety::Dangerous,
                shows,
                subject,
                pattern,
            });
        };
        // Input is part of what runs: no permission for the line alone covers it.
        let (shows, subject) = (
            format!("{shows}\nwith this input:\n{stdin}"),
            format!("{line}\n{stdin}"),
        );
        Ok(Intent {
            level: Safety::Dangerous,
            shows,
            subject,
            pattern: None,
        })
    }
}

fn read_lines(file: &Path, wish: &ExecOutputArgs) -> Result<String, ToolError> {
    let failed =
        |error: &dyn std::fmt::Display| ToolError(format!("the output cannot be read: {error}"));
    let matcher = wish
        .pattern
        .as_ref()
        .map(|pattern| RegexMatcher::new(pattern))
        .transpose();
    let matcher = matcher.map_err(|error| ToolError(format!("`pattern`: {error}")))?;
    let most = wish.lines.unwrap_or(DEFAULT_LINES).clamp(1, MAX_LINES);
    let first = wish.start_line.unwrap_or(1).max(1);
    let mut reader = BufReader::new(std::fs::File::open(file).map_err(|error| failed(&error))?);
    let mut found: std::collections::VecDeque<(usize, String)> = std::collections::VecDeque::new();
    let (mut number, mut line, mut more) = (0, Vec::new(), 0);
    while reader
        .read_until(b'\n', &mut line)
        .map_err(|error| failed(&error))?
        > 0
    {
        number += 1;
        let words = line.trim_ascii_end();
        let fits = matcher
            .as_ref()
            .is_none_or(|matcher| matcher.is_match(words).unwrap_or(false));
        if number >= first && fits {
            let text: String = String::from_utf8_lossy(words)
                .chars()
                .take(MAX_LINE_CHARS)
                .collect();
            found.push_back((number, text));
            if found.len() > most {
                more += 1;
                // From a given line on the first ones are wanted, else the last.
                if wish.start_line.is_some() {
                    found.pop_back()
                } else {
                    found.pop_front()
                };
            }
        }
        line.clear();
    }
    let mut text = format!("{} of {number} lines", found.len());
    if more > 0 {
        text.push_str(&format!(
            ", {more} more {}",
            if wish.start_line.is_some() {
                "behind them"
            } else {
                "before them"
            }
        ));
    }
    for (number, line) in found {
        text.push_str(&format!("\n{number}: {line}"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out");
        let text: String = (1..=1_000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&file, [text.as_bytes(), b"\xff end"].concat()).unwrap();
        let read = |start_line, count, pattern: Option<&str>| {
            let pattern = pattern.map(str::to_owned);
            read_lines(
                &file,
                &ExecOutputArgs {
                    id: String::new(),
                    start_line,
                    lines: count,
                    pattern,
                },
            )
            .unwrap()
        };
        assert_eq!(
            read(Some(10), Some(2), None),
            "2 of 1001 lines, 990 more behind them\n10: line 10\n11: line 11"
        );
        assert!(read(None, Some(1), None).ends_with("1001: \u{fffd} end"));
        assert_eq!(read(None, None, Some("^line 9.9$")).lines().count(), 11);
    }
}
