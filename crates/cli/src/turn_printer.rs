//! Turns as people and programs see them: who speaks, which tool runs, the answer.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use lango_domain::AgentName;
use lango_domain::event::{ApprovalState, CallId, Event, EventBody};
use lango_domain::failure::{FailureCode, FailureFamily};
use lango_domain::session::StoreError;
use lango_domain::text::{escape_hidden_chars, is_terminal_control, one_line, strip_control_chars};
use serde_json::{Value, json};

use crate::output::{self, DIM, ERROR, NAME, print_stderr, styled};

/// The exit code when something was not allowed.
const DENIED_EXIT_CODE: u8 = 5;

/// Where and how updates are shown.
pub struct TurnPrinter {
    mode: PrintMode,
    /// Whose words are being shown.
    speaker: Option<String>,
    exit: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PrintMode {
    /// Words as they come, with who speaks.
    Terminal,
    /// The answer and nothing else.
    Pipe,
    /// One event a line; with provisional text where it was asked for.
    Json { deltas: bool },
}

impl TurnPrinter {
    pub fn new(json: bool, deltas: bool) -> Self {
        let form = match json {
            true => PrintMode::Json { deltas },
            false if std::io::stdout().is_terminal() => PrintMode::Terminal,
            false => PrintMode::Pipe,
        };
        Self {
            mode: form,
            speaker: None,
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

    /// What a call prints while it runs.
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
            _ => {}
        }
    }

    pub fn print_store_error(&mut self, error: &StoreError) {
        self.print_failure(
            FailureCode::Internal,
            &error.to_string(),
            "Check the disk and the data folder.",
        );
    }

    /// A turn in which something was not allowed did not do what was asked, whatever it answers.
    fn record_decision(&mut self, state: ApprovalState) {
        let is_denied = matches!(
            state,
            ApprovalState::Denied | ApprovalState::TimedOut | ApprovalState::NobodyThere
        );
        if is_denied {
            self.fail_with(DENIED_EXIT_CODE);
        }
        if state == ApprovalState::NobodyThere && !matches!(self.mode, PrintMode::Json { .. }) {
            let how = "a call was denied, because nobody is there to allow it: use a terminal, --yes, or a rule in security.approval.rules";
            output::warn(&[how.to_owned()], output::OutputFormat::Plain);
        }
    }

    /// Something else than the turn went wrong.
    pub fn fail_with(&mut self, exit: u8) {
        self.exit = self.exit.max(exit);
    }

    /// The exit code that the turn deserves.
    pub fn finish(mut self) -> ExitCode {
        ExitCode::from(self.exit_code())
    }

    pub fn exit_code(&mut self) -> u8 {
        self.end_speaker();
        self.exit
    }

    fn print_event_text(&mut self, event: &Event) {
        let who = event.author.to_string();
        match &event.body {
            EventBody::Answer { text } if self.mode == PrintMode::Pipe => {
                print(&format!("{}\n", strip_control_chars(text).trim_end()))
            }
            // Words that were shown as they came are not shown again.
            EventBody::Answer { text } if self.speaker.as_deref() != Some(&who) => {
                self.start_speaker(&who);
                print(&strip_control_chars(text));
            }
            EventBody::Transfer { to, .. } => self.print_note(&format!("{who} → {to}")),
            EventBody::ToolCall { tool, args, .. } => {
                self.print_note(&format!("{who} · {tool} {}", args_line(args)))
            }
            EventBody::ToolResult {
                ok: false, error, ..
            } => {
                self.print_note(&format!(
                    "{who} · {}",
                    one_line(error.as_deref().unwrap_or("it did not work"))
                ));
            }
            EventBody::Rejected { reason } => {
                self.print_note(&format!("{who} handed it back: {}", one_line(reason)))
            }
            EventBody::TurnDone => self.end_speaker(),
            _ => {}
        }
    }

    /// A line about what is going on, on a terminal only.
    fn print_note(&mut self, text: &str) {
        if self.mode == PrintMode::Terminal {
            self.end_speaker();
            let line: String = one_line(text).chars().take(200).collect();
            print(&format!("{}\n", styled(DIM, line)));
        }
    }

    fn start_speaker(&mut self, who: &str) {
        if self.speaker.as_deref() != Some(who) {
            self.end_speaker();
            print(&format!("{} ", styled(NAME, format!("{who}:"))));
            self.speaker = Some(who.to_owned());
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

/// Arguments on one line.
pub fn args_line(args: &Value) -> String {
    let words: Vec<String> = match args {
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
    // First written out, so that nothing is dropped without a sign.
    let line = one_line(&escape_hidden_chars(&words.join(" ")));
    if line.chars().count() <= 80 {
        line
    } else {
        format!("{}…", line.chars().take(79).collect::<String>())
    }
}

/// JSON goes out as it is, apart from characters that a terminal would obey: those are escaped.
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

/// Whoever read may have left; the turn goes on to its end all the same.
fn print(text: &str) {
    let mut stdout = anstream::stdout();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}
