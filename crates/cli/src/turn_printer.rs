//! Prints the updates of a turn: the speaking agent, tool calls and the answer.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use lango_domain::event::{ApprovalState, CallId, Event, EventBody, SessionId};
use lango_domain::failure::{FailureCode, FailureFamily};
use lango_domain::{AgentName, Attachment, Content, StoreError};
use lango_text::sanitize::{
    escape_hidden_chars, is_terminal_control, one_line, strip_control_chars,
};
use serde_json::{Value, json};

use crate::output::{self, DIM, ERROR, NAME, print_stderr, styled};

/// The exit code of a turn in which a tool call was denied.
const DENIED_EXIT_CODE: u8 = 5;
/// The exit code of a turn whose answer says that the request was not done.
const NOT_DONE_EXIT_CODE: u8 = 1;
const OFFLINE_NOTE: &str = "note: answered by the offline model, which is not a language model; `lango model list` says more";

/// Prints the updates of a turn and collects its exit code.
pub struct TurnPrinter {
    mode: PrintMode,
    /// The agent whose text is being printed.
    speaker: Option<String>,
    /// True if the offline model replied.
    is_offline: bool,
    exit: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PrintMode {
    /// Text as it streams, with the name of its author.
    Terminal,
    /// Only the answer.
    Pipe,
    /// One event per line; also text as it streams, with `deltas`.
    Json { deltas: bool },
}

impl TurnPrinter {
    pub fn new(json: bool, deltas: bool) -> Self {
        let mode = match json {
            true => PrintMode::Json { deltas },
            false if std::io::stdout().is_terminal() => PrintMode::Terminal,
            false => PrintMode::Pipe,
        };
        Self {
            mode,
            speaker: None,
            is_offline: false,
            exit: 0,
        }
    }

    pub fn print_warnings(&self, warnings: &[String]) {
        output::warn(warnings, self.warning_format());
    }

    fn warning_format(&self) -> output::OutputFormat {
        if matches!(self.mode, PrintMode::Json { .. }) {
            output::OutputFormat::Json
        } else {
            output::OutputFormat::Plain
        }
    }

    pub fn print_delta(&mut self, author: &AgentName, text: &str) {
        match self.mode {
            PrintMode::Terminal => {
                self.start_speaker(author.as_str());
                print(&strip_control_chars(text));
            }
            PrintMode::Json { deltas: true } => {
                print_json_line(&json!({ "type": "delta", "author": author, "text": text }))
            }
            PrintMode::Json { deltas: false } | PrintMode::Pipe => {}
        }
    }

    /// Prints the output of a running tool call.
    pub fn print_tool_output(&mut self, author: &AgentName, call: &CallId, text: &str) {
        match self.mode {
            PrintMode::Terminal => {
                self.end_speaker();
                print(&styled(DIM, strip_control_chars(text)));
            }
            PrintMode::Json { deltas: true } => print_json_line(
                &json!({ "type": "printed", "author": author, "id": call, "text": text }),
            ),
            PrintMode::Json { deltas: false } | PrintMode::Pipe => {}
        }
    }

    pub fn print_event(&mut self, event: &Event) {
        if let PrintMode::Json { .. } = self.mode {
            print_json_line(&serde_json::to_value(event).unwrap_or_default());
        } else {
            self.print_event_text(event);
        }
        match &event.body {
            EventBody::TurnFailed {
                code,
                message,
                hint,
            } => self.print_failure(*code, message, hint),
            EventBody::Approval { state, .. } => self.record_decision(*state),
            EventBody::Usage(usage) => self.is_offline |= is_offline_model(&usage.model),
            EventBody::TurnDone { reason: Some(_) } => self.fail_with(NOT_DONE_EXIT_CODE),
            EventBody::Answer(content) if !content.attachments.is_empty() => {
                self.print_files(&event.session, &content.attachments);
            }
            _ => {}
        }
    }

    /// Prints which files came with an answer, and how to get them.
    fn print_files(&mut self, session: &SessionId, attachments: &[Attachment]) {
        if matches!(self.mode, PrintMode::Json { .. }) {
            return;
        }
        for attachment in attachments {
            self.print_note(&attachment.placeholder());
        }
        let session = one_line(session.as_str());
        self.print_note(&format!(
            "`lango session files {session} --save DIR` saves them"
        ));
    }

    pub fn print_store_error(&mut self, error: &StoreError) {
        self.print_failure(
            FailureCode::Internal,
            &error.to_string(),
            "Check the disk and the data folder.",
        );
    }

    /// Sets the exit code for a denied call: the request was not done, even if the turn has an
    /// answer.
    fn record_decision(&mut self, state: ApprovalState) {
        let is_denied = matches!(
            state,
            ApprovalState::Denied | ApprovalState::TimedOut | ApprovalState::NobodyThere
        );
        if is_denied {
            self.fail_with(DENIED_EXIT_CODE);
        }
        if state == ApprovalState::NobodyThere && !matches!(self.mode, PrintMode::Json { .. }) {
            let warning = "a tool call was denied because there is no one to approve it; run in a terminal, \
                           pass --yes, or add a rule to security.approval.rules";
            output::warn(&[warning.to_owned()], output::OutputFormat::Plain);
        }
    }

    /// Raises the exit code for a failure outside the turn.
    pub fn fail_with(&mut self, exit: u8) {
        self.exit = self.exit.max(exit);
    }

    /// Tells a user at a terminal that no language model answered. Not part of the answer, which others may read.
    pub fn print_offline_note(&mut self) {
        if self.is_offline
            && std::io::stderr().is_terminal()
            && !matches!(self.mode, PrintMode::Json { .. })
        {
            self.end_speaker();
            print_stderr(&styled(DIM, OFFLINE_NOTE));
        }
    }

    /// Ends the output and returns the exit code.
    pub fn finish(mut self) -> ExitCode {
        ExitCode::from(self.exit_code())
    }

    pub fn exit_code(&mut self) -> u8 {
        self.end_speaker();
        self.exit
    }

    fn print_event_text(&mut self, event: &Event) {
        let author = event.author.to_string();
        match &event.body {
            EventBody::Answer(Content { text, .. }) if self.mode == PrintMode::Pipe => {
                print(&format!("{}\n", strip_control_chars(text).trim_end()))
            }
            // An answer that was streamed is not printed again.
            EventBody::Answer(Content { text, .. }) if self.speaker.as_deref() != Some(&author) => {
                self.start_speaker(&author);
                print(&strip_control_chars(text));
            }
            EventBody::Transfer { to, .. } => self.print_note(&format!("{author} → {to}")),
            EventBody::ToolCall { tool, args, .. } => {
                self.print_note(&format!("{author} · {tool} {}", args_line(args)))
            }
            EventBody::ToolResult {
                ok: false, error, ..
            } => {
                self.print_note(&format!(
                    "{author} · {}",
                    one_line(error.as_deref().unwrap_or("the call failed"))
                ));
            }
            EventBody::Rejected { reason } => {
                self.print_note(&format!("{author} rejected the task: {}", one_line(reason)))
            }
            EventBody::TurnDone { .. } => self.end_speaker(),
            _ => {}
        }
    }

    /// Prints a progress line, on a terminal only.
    fn print_note(&mut self, text: &str) {
        if self.mode == PrintMode::Terminal {
            self.end_speaker();
            let line: String = one_line(text).chars().take(200).collect();
            print(&format!("{}\n", styled(DIM, line)));
        }
    }

    fn start_speaker(&mut self, author: &str) {
        if self.speaker.as_deref() != Some(author) {
            self.end_speaker();
            print(&format!("{} ", styled(NAME, format!("{author}:"))));
            self.speaker = Some(author.to_owned());
        }
    }

    fn end_speaker(&mut self) {
        if self.speaker.take().is_some() {
            print("\n");
        }
    }

    fn print_failure(&mut self, code: FailureCode, message: &str, hint: &str) {
        self.end_speaker();
        self.exit = match code.family() {
            FailureFamily::Interrupted => {
                return output::warn(&[message.to_owned()], self.warning_format());
            }
            FailureFamily::Turn => 1,
            FailureFamily::Model => 3,
            FailureFamily::Limit => 4,
            FailureFamily::Cancelled => 130,
        };
        print_stderr(&match self.mode {
            PrintMode::Json { .. } => {
                json!({ "error": { "code": code, "message": message, "hint": hint } }).to_string()
            }
            _ => {
                let message = strip_control_chars(message);
                format!(
                    "{} {message} {}\n{} {hint}",
                    styled(ERROR, "error:"),
                    styled(DIM, format!("[{code}]")),
                    styled(DIM, "hint:")
                )
            }
        });
    }
}

/// Returns the arguments of a call on one short line.
pub fn args_line(args: &Value) -> String {
    let values: Vec<String> = match args {
        Value::Object(map) => map
            .values()
            .map(|value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            })
            .collect(),
        other => vec![other.to_string()],
    };
    // Escape hidden characters before `one_line` drops them.
    let line = one_line(&escape_hidden_chars(&values.join(" ")));
    if line.chars().count() <= 80 {
        line
    } else {
        format!("{}…", line.chars().take(79).collect::<String>())
    }
}

/// Prints a JSON value on one line, with terminal control characters escaped.
fn is_offline_model(model: &str) -> bool {
    model.split('/').next() == Some(lango_app::offline::PROVIDER)
}

fn print_json_line(value: &Value) {
    let mut line = String::new();
    for c in value.to_string().chars() {
        if is_terminal_control(c) {
            line.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            line.push(c);
        }
    }
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Prints to stdout. A closed pipe does not stop the turn.
fn print(text: &str) {
    let mut stdout = anstream::stdout();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}
