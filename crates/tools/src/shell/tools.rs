//! The command tools: run a command, or start one in the background and control it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use lango_domain::flow::ANY_ADDRESS;
use lango_domain::{Destination, Intent, OutgoingData, Safety, SecretField, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::command::{CommandRequest, Program};
use super::command_kind::{CommandKind, classify};
use super::jobs::ShellJob;
use super::process::RunningCommand;
use super::{Shell, environment, report};

/// Number of lines returned by one read of an output.
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
    #[schemars(description = "What the command reads from standard input.")]
    stdin: Option<String>,
    /// Variables for the command, used in it as "$NAME". Values that are not yours belong here, not into the line;
    /// a secret as `{{secret:NAME}}`.
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Deserialize, JsonSchema)]
struct ExecStartArgs {
    /// A line for bash, as one would type it.
    command: String,
    /// The folder to run it in, relative to the workspace; the workspace itself by default.
    cwd: Option<String>,
    /// Variables for the command, used in it as "$NAME"; a secret as `{{secret:NAME}}`.
    #[serde(default)]
    env: BTreeMap<String, String>,
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
    #[schemars(description = "How many lines to read.")]
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

/// Marks the tool as outgoing if commands have network access: they may send anything to any
/// address (B103).
fn with_network(shell: &Shell, tool: Tool) -> Tool {
    match shell.inner.parts.settings.network {
        true => tool.with_outgoing(|args: Value| OutgoingData {
            to: Destination::Host(ANY_ADDRESS.to_owned()),
            data: args["command"].as_str().unwrap_or_default().to_owned(),
        }),
        false => tool,
    }
}

fn exec_shell(shell: Shell) -> Tool {
    let description = "Runs a command in the workspace and gives its exit code and what it printed. It runs in a sandbox: only the \
        workspace can be changed, and everything that it starts ends with it.";
    let (intent_shell, read_only_shell) = (shell.clone(), shell.clone());
    Tool::new("exec_shell", description, Safety::Dangerous, move |context, args: ExecShellArgs| {
        let shell = shell.clone();
        async move {
            let timeout = args.timeout.map(Duration::from_secs);
            let stdin = args.stdin.unwrap_or_default();
            let request = shell.command_request(args.command, args.cwd.as_deref(), stdin, timeout)?;
            let env = environment::check_variables(args.env)?;
            shell.run(&context, CommandRequest { env, ..request }).await
        }
    })
    .with_intent(move |_, args: ExecShellArgs| {
        let shell = intent_shell.clone();
        async move {
            let intent = shell.intent(&args.command, args.cwd.as_deref(), args.stdin.as_deref())?;
            Ok(environment::with_variables(intent, &environment::check_variables(args.env)?))
        }
    })
    .with_read_only_calls(move |args| read_only_shell.is_read_only(args))
    .with_plain_result(report::printed_output)
    .with_secret_fields([SecretField::Values("env")])
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
    let description = "Starts a command that runs for long, such as a server, and gives its id at once. It ends when it is stopped or \
        when Lango ends.";
    let intent_shell = shell.clone();
    Tool::new("exec_start", description, Safety::Dangerous, move |context, args: ExecStartArgs| {
        let shell = shell.clone();
        async move {
            shell.inner.jobs.check_capacity()?;
            let request = shell.command_request(args.command.clone(), args.cwd.as_deref(), String::new(), None)?;
            let request = CommandRequest { env: environment::check_variables(args.env)?, ..request };
            let folder = request.folder.clone();
            let output = shell.inner.outputs.create(&context);
            let (parts, public) = (&shell.inner.parts, shell.readable_etc_paths());
            let running = RunningCommand::start(parts, public, request, output, &context.redactor).await?;
            shell.record_command(&context, folder, args.command.clone());
            let id = shell.inner.jobs.adopt(&shell, &context, args.command, running);
            Ok(format!(
                "started, id {id}. It runs until exec_stop, or until Lango ends. exec_status returns its state, exec_output \
                 its output."
            ))
        }
    })
    .with_intent(move |_, args: ExecStartArgs| {
        let shell = intent_shell.clone();
        async move {
            let intent = shell.intent(&args.command, args.cwd.as_deref(), None)?;
            Ok(environment::with_variables(intent, &environment::check_variables(args.env)?))
        }
    })
    .with_secret_fields([SecretField::Values("env")])
    .with_phrases(["start [the] [server|command] {command}", "(run|start) {command} and keep it running"])
}

fn exec_status(shell: Shell) -> Tool {
    let description = "Tells whether commands that exec_start started still run, and how those ended that do not.";
    Tool::new(
        "exec_status",
        description,
        Safety::Safe,
        move |context, args: ExecStatusArgs| {
            let shell = shell.clone();
            async move {
                let jobs = match &args.id {
                    Some(id) => vec![(id.clone(), shell.inner.jobs.find(&context, id)?)],
                    None => shell.inner.jobs.list(&context),
                };
                let lines: Vec<String> =
                    jobs.iter().map(|(id, job)| status_line(id, job)).collect();
                Ok(if lines.is_empty() {
                    "No command was started.".to_owned()
                } else {
                    lines.join("\n")
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

fn status_line(id: &str, job: &ShellJob) -> String {
    let command = &job.command;
    match (&*job.result.borrow(), job.is_running()) {
        (Some(Ok(result) | Err(result)), _) => format!("{id}: {command} ended: {result}"),
        (None, true) => format!(
            "{id}: {command} has been running for {} s",
            job.age().as_secs()
        ),
        (None, false) => format!("{id}: {command} was stopped"),
    }
}

fn exec_output(shell: Shell) -> Tool {
    let description = "Reads what a command printed, or prints so far: a range of lines, or those that a pattern fits.";
    Tool::new(
        "exec_output",
        description,
        Safety::Safe,
        move |context, args: ExecOutputArgs| {
            let shell = shell.clone();
            async move {
                let file = shell.inner.outputs.find(&context, &args.id);
                let file =
                    file.ok_or_else(|| ToolError(format!("no output with the id {}", args.id)))?;
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
    let description = "Stops a command that exec_start started, with everything that it started.";
    Tool::new(
        "exec_stop",
        description,
        Safety::Moderate,
        move |context, args: ExecStopArgs| {
            let shell = shell.clone();
            async move {
                let job = shell.inner.jobs.find(&context, &args.id)?;
                if !job.is_running() {
                    return Ok(format!("{} has already ended", args.id));
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
        timeout: Option<Duration>,
    ) -> Result<CommandRequest, ToolError> {
        if line.trim().is_empty() || line.contains('\0') {
            return Err(ToolError(
                "`command` must be a non-empty shell command without NUL characters".to_owned(),
            ));
        }
        let limit = self.inner.parts.max_duration;
        if timeout.is_some_and(|timeout| timeout > limit || timeout.is_zero()) {
            let seconds = limit.as_secs();
            return Err(ToolError(format!(
                "`timeout` must be from 1 to {seconds} seconds; use exec_start for longer commands"
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
            timeout,
            env: Vec::new(),
            extra_read_paths: Vec::new(),
        })
    }

    /// Returns true for read-only commands: they start no other program, change nothing and have no
    /// network.
    fn is_read_only(&self, args: &Value) -> bool {
        let text = |name: &str| args[name].as_str().unwrap_or_default();
        let folder = self
            .inner
            .parts
            .workspace
            .resolve_folder(args["cwd"].as_str().unwrap_or("."));
        let is_read_only = |folder: &Path| {
            matches!(
                classify(text("command"), folder),
                Some(CommandKind::ReadOnly(_))
            )
        };
        !self.inner.parts.settings.network
            && text("stdin").is_empty()
            && args["env"].as_object().is_none_or(Map::is_empty)
            && folder.is_ok_and(|folder| is_read_only(&folder))
    }

    fn intent(
        &self,
        line: &str,
        cwd: Option<&str>,
        stdin: Option<&str>,
    ) -> Result<Intent, ToolError> {
        let request = self.command_request(line.to_owned(), cwd, String::new(), None)?;
        let shows = format!("$ {line}\nin {}", request.folder.display());
        let Some(stdin) = stdin.filter(|stdin| !stdin.is_empty()) else {
            let pattern = classify(line, &request.folder).map(CommandKind::into_pattern);
            let subject = line.to_owned();
            return Ok(Intent {
                level: Safety::Dangerous,
                shows,
                subject,
                pattern,
            });
        };
        // The input is part of what runs, so an approval for the line alone does not cover it.
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

fn read_lines(file: &Path, args: &ExecOutputArgs) -> Result<String, ToolError> {
    let failed =
        |error: &dyn std::fmt::Display| ToolError(format!("cannot read the output: {error}"));
    let matcher = args
        .pattern
        .as_ref()
        .map(|pattern| RegexMatcher::new(pattern))
        .transpose();
    let matcher = matcher.map_err(|error| ToolError(format!("`pattern`: {error}")))?;
    let limit = args.lines.unwrap_or(DEFAULT_LINES).clamp(1, MAX_LINES);
    let first = args.start_line.unwrap_or(1).max(1);
    let mut reader = BufReader::new(std::fs::File::open(file).map_err(|error| failed(&error))?);
    let mut found: std::collections::VecDeque<(usize, String)> = std::collections::VecDeque::new();
    let (mut number, mut line, mut more) = (0, Vec::new(), 0);
    while reader
        .read_until(b'\n', &mut line)
        .map_err(|error| failed(&error))?
        > 0
    {
        number += 1;
        let content = line.trim_ascii_end();
        let is_match = matcher
            .as_ref()
            .is_none_or(|matcher| matcher.is_match(content).unwrap_or(false));
        if number >= first && is_match {
            let text: String = String::from_utf8_lossy(content)
                .chars()
                .take(MAX_LINE_CHARS)
                .collect();
            found.push_back((number, text));
            if found.len() > limit {
                more += 1;
                // Keep the first lines after `start_line`, or the last ones without it.
                if args.start_line.is_some() {
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
            if args.start_line.is_some() {
                "after them"
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
    fn reads_outputs_in_parts() {
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
            "2 of 1001 lines, 990 more after them\n10: line 10\n11: line 11"
        );
        assert!(read(None, Some(1), None).ends_with("1001: \u{fffd} end"));
        assert_eq!(read(None, None, Some("^line 9.9$")).lines().count(), 11);
    }
}
