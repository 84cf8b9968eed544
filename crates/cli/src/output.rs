//! Results and failures, in the form that was asked for: stdout holds only the result.

use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use lango_app::{ConfigError, StartError};
use lango_models::SelectionError;
use lango_store::SqliteStoreError;
use serde_json::{Value, json};

/// For people, or for programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Plain,
    Json,
}

pub const NAME: Style = AnsiColor::Cyan.on_default().bold();
pub const DIM: Style = Style::new().dimmed();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub const ERROR: Style = AnsiColor::Red.on_default().bold();

/// `text` in a style; the terminal decides whether it is seen.
pub fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// What a command found.
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

    pub fn print(self, form: OutputFormat) -> ExitCode {
        warn(&self.warnings, form);
        let text = match form {
            OutputFormat::Plain => self.plain,
            OutputFormat::Json => format!("{:#}", self.json),
        };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        match write!(anstream::stdout(), "{text}{end}").and_then(|()| anstream::stdout().flush()) {
            Ok(()) => ExitCode::SUCCESS,
            // Whoever reads has seen enough (`lango … | head -1`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                print_stderr(&format!("cannot write the result: {error}"));
                ExitCode::FAILURE
            }
        }
    }
}

/// Why a command did not work, for whoever can mend it.
#[derive(Debug)]
pub struct CliError {
    exit: u8,
    code: &'static str,
    message: String,
    hint: Option<String>,
}

impl CliError {
    /// Something typed or configured is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: 2,
            code: "usage",
            message: message.into(),
            hint: None,
        }
    }

    /// No model can be asked.
    pub fn model(message: impl Into<String>) -> Self {
        Self {
            exit: 3,
            code: "model",
            message: message.into(),
            hint: None,
        }
    }

    /// Somebody or nobody said no.
    pub fn denied(message: impl Into<String>) -> Self {
        Self {
            exit: 5,
            code: "denied",
            message: message.into(),
            hint: None,
        }
    }

    /// An agent elsewhere cannot be reached or understood.
    pub fn remote(message: impl Into<String>) -> Self {
        Self {
            exit: 1,
            code: "remote",
            message: message.into(),
            hint: None,
        }
    }

    /// What is kept cannot be read or written.
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

    pub fn print(&self, form: OutputFormat) -> ExitCode {
        match form {
            OutputFormat::Json => print_stderr(
                &json!({ "error": { "code": self.code, "message": self.message, "hint": self.hint } })
                    .to_string(),
            ),
            OutputFormat::Plain => {
                print_stderr(&format!("{} {}", styled(ERROR, "error:"), self.message));
                // A message that already ends in the suggestion needs no second one.
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
            SelectionError::NoProvider(_) => lango_models::offline::CONNECT_HINT,
            SelectionError::UnknownProvider { .. } => {
                "`lango config show` prints what is configured"
            }
            SelectionError::UnknownKind(_) => {
                "it is one of openai, anthropic, gemini, ollama, offline"
            }
            SelectionError::InvalidBaseUrl(_) => "for example http://127.0.0.1:8080/v1",
            SelectionError::InvalidHeader { .. } => {
                "a name of letters, digits and `-`, and a value on one line"
            }
            SelectionError::MissingModel(_) => "for example --model gpt-5-mini",
        };
        let failure = match &error {
            SelectionError::NoProvider(_) => Self::model(error.to_string()),
            _ => Self::usage(error.to_string()),
        };
        failure.with_hint(hint)
    }
}

impl From<SqliteStoreError> for CliError {
    fn from(trouble: SqliteStoreError) -> Self {
        let is_typed = matches!(
            trouble,
            SqliteStoreError::SessionNotFound(_)
                | SqliteStoreError::SessionExists(_)
                | SqliteStoreError::FileExists(_)
                | SqliteStoreError::InvalidBackup { .. }
                | SqliteStoreError::NoCompleteTurn(_)
                | SqliteStoreError::TokenNotFound(_)
                | SqliteStoreError::TokenExists(_)
        );
        let failure = if is_typed {
            Self::usage(trouble.to_string())
        } else {
            Self::store(trouble.to_string())
        };
        failure.with_hint(trouble.hint())
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(error) => error.into(),
            StartError::Selection(error) => error.into(),
            StartError::Model(error) => Self::model(error.to_string()),
            StartError::Store(trouble) => trouble.into(),
        }
    }
}

/// Help and version are results; everything else that clap has to say is a mistake in the arguments.
pub fn print_usage_error(error: &clap::Error, form: OutputFormat) -> ExitCode {
    if !error.use_stderr() || form == OutputFormat::Plain {
        let _ = error.print();
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    }
    CliError::from(error).print(form)
}

/// What does not keep a command from working.
pub fn warn(warnings: &[String], form: OutputFormat) {
    for warning in warnings {
        print_stderr(&match form {
            OutputFormat::Plain => format!("{} {warning}", styled(WARNING, "warning:")),
            OutputFormat::Json => json!({ "warning": { "message": warning } }).to_string(),
        });
    }
}

/// Nothing can be done when stderr is gone.
pub fn print_stderr(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}
