//! Prints results and errors as text or JSON. Stdout holds only the result.

use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use lango_app::SelectionError;
use lango_app::{ConfigError, StartError};
use lango_domain::StoreError;
use serde_json::{Value, json};

/// The output format of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Plain,
    Json,
}

pub const NAME: Style = AnsiColor::Cyan.on_default().bold();
pub const DIM: Style = Style::new().dimmed();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Returns `text` with ANSI style codes. The output stream strips them if colors are off.
pub fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The result of a command.
pub struct CommandOutput {
    pub plain: String,
    pub json: Value,
    pub warnings: Vec<String>,
}

impl CommandOutput {
    pub fn new(plain: impl Into<String>, json: Value) -> Self {
        Self {
            plain: plain.into(),
            json,
            warnings: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    pub fn print(self, format: OutputFormat) -> ExitCode {
        warn(&self.warnings, format);
        let text = match format {
            OutputFormat::Plain => self.plain,
            OutputFormat::Json => format!("{:#}", self.json),
        };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        match write!(anstream::stdout(), "{text}{end}").and_then(|()| anstream::stdout().flush()) {
            Ok(()) => ExitCode::SUCCESS,
            // The reader closed the pipe (`lango … | head -1`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                print_stderr(&format!("cannot write the result: {error}"));
                ExitCode::FAILURE
            }
        }
    }
}

/// A failed command, with its exit code.
#[derive(Debug)]
pub struct CliError {
    exit: u8,
    code: &'static str,
    message: String,
    hint: Option<String>,
}

impl CliError {
    /// An error in the arguments or the configuration.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: 2,
            code: "usage",
            message: message.into(),
            hint: None,
        }
    }

    /// A model that is missing or cannot be used.
    pub fn model(message: impl Into<String>) -> Self {
        Self {
            exit: 3,
            code: "model",
            message: message.into(),
            hint: None,
        }
    }

    /// An action that was not approved.
    pub fn denied(message: impl Into<String>) -> Self {
        Self {
            exit: 5,
            code: "denied",
            message: message.into(),
            hint: None,
        }
    }

    /// A limit that would be exceeded.
    pub fn limit(message: impl Into<String>) -> Self {
        Self {
            exit: 4,
            code: "limit",
            message: message.into(),
            hint: None,
        }
    }

    /// A remote agent that cannot be reached or sent an invalid response.
    pub fn remote(message: impl Into<String>) -> Self {
        Self {
            exit: 1,
            code: "remote",
            message: message.into(),
            hint: None,
        }
    }

    /// A run of automation that did not end well.
    pub fn run_failed(message: impl Into<String>) -> Self {
        Self {
            exit: 1,
            code: "failed",
            message: message.into(),
            hint: None,
        }
    }

    /// Work that was cancelled.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self {
            exit: 130,
            code: "cancelled",
            message: message.into(),
            hint: None,
        }
    }

    /// A failure to read or write stored data.
    pub fn store(message: impl Into<String>) -> Self {
        Self {
            exit: 1,
            code: "store",
            message: message.into(),
            hint: None,
        }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn print(&self, format: OutputFormat) -> ExitCode {
        match format {
            OutputFormat::Json => print_stderr(
                &json!({ "error": { "code": self.code, "message": self.message, "hint": self.hint } })
                    .to_string(),
            ),
            OutputFormat::Plain => {
                print_stderr(&format!("{} {}", styled(ERROR, "error:"), self.message));
                // Some messages already contain the suggestion.
                if let Some(hint) = self.hint.as_ref().filter(|hint| !self.message.contains(hint.as_str())) {
                    print_stderr(&format!("{} {hint}", styled(DIM, "hint:")));
                }
            }
        }
        ExitCode::from(self.exit)
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self {
            exit: 2,
            code: "config",
            message: error.message,
            hint: error.hint,
        }
    }
}

impl From<SelectionError> for CliError {
    fn from(error: SelectionError) -> Self {
        let hint = match &error {
            SelectionError::NoProvider(_) => lango_app::offline::CONNECT_HINT,
            SelectionError::UnknownProvider { .. } => {
                "`lango config show` prints the configured providers"
            }
            SelectionError::UnknownKind(_) => {
                "expected openai, anthropic, gemini, ollama or offline"
            }
            SelectionError::InvalidBaseUrl(_) => "for example http://127.0.0.1:8080/v1",
            SelectionError::InvalidHeader { .. } => {
                "a header has a name of letters, digits and `-`, and a value on one line"
            }
            SelectionError::MissingModel(_) => {
                "pass --model NAME, with a name that the server knows"
            }
        };
        let failure = match &error {
            SelectionError::NoProvider(_) => Self::model(error.to_string()),
            _ => Self::usage(error.to_string()),
        };
        failure.with_hint(hint)
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let is_usage_error = matches!(
            error,
            StoreError::SessionNotFound(_)
                | StoreError::SessionExists(_)
                | StoreError::FileExists(_)
                | StoreError::InvalidBackup { .. }
                | StoreError::NoCompleteTurn(_)
                | StoreError::TokenNotFound(_)
                | StoreError::TokenExists(_)
                | StoreError::JobNotFound(_)
                | StoreError::JobExists(_)
                | StoreError::TooManyJobs(_)
        );
        let failure = if is_usage_error {
            Self::usage(error.to_string())
        } else {
            Self::store(error.to_string())
        };
        failure.with_hint(error.hint())
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(error) => error.into(),
            StartError::Selection(error) => error.into(),
            StartError::Model(error) => Self::model(error.to_string()),
            StartError::Store(error) => error.into(),
        }
    }
}

/// Prints what clap reports. Help and version go to stdout; everything else is a usage error.
pub fn print_usage_error(error: &clap::Error, format: OutputFormat) -> ExitCode {
    if !error.use_stderr() || format == OutputFormat::Plain {
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    CliError::from(error).print(format)
}

/// Prints warnings to stderr.
pub fn warn(warnings: &[String], format: OutputFormat) {
    for warning in warnings {
        print_stderr(&match format {
            OutputFormat::Plain => format!("{} {warning}", styled(WARNING, "warning:")),
            OutputFormat::Json => json!({ "warning": { "message": warning } }).to_string(),
        });
    }
}

/// Prints a line to stderr. Write errors are ignored, since there is nowhere to report them.
pub fn print_stderr(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}
