//! The `lango` binary: parses the arguments, runs one command and prints its result.

mod approver;
mod args;
mod attachments;
mod commands;
mod confirmation;
mod hidden_input;
mod output;
mod turn_printer;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ContextKind;

use args::Args;
use output::{CliError, OutputFormat};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(exit_code) = lango_app::capability::tools::sandbox::run_if_sandbox_process() {
        return exit_code;
    }
    let raw: Vec<OsString> = std::env::args_os().collect();
    let mut args = match Args::try_parse_from(&raw) {
        Ok(args) => args,
        Err(error) => return output::print_usage_error(&error, usage_error_format(&raw)),
    };
    args.global.set = collect_set_values(&raw);
    let format = if args.global.json {
        OutputFormat::Json
    } else {
        OutputFormat::Plain
    };
    init_tracing(args.global.verbose);
    commands::run(args).unwrap_or_else(|error| error.print(format))
}

/// Returns the values of every `--set`.
///
/// clap drops the ones before a subcommand when there are others after it.
fn collect_set_values(raw: &[OsString]) -> Vec<String> {
    let mut arguments = raw
        .iter()
        .map(|argument| argument.to_string_lossy())
        .take_while(|argument| argument != "--");
    let mut values = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--set=") {
            Some(value) => values.push(value.to_owned()),
            None if argument == "--set" => {
                values.extend(arguments.next().map(|value| value.into_owned()))
            }
            None => {}
        }
    }
    values
}

/// Logs to stderr, only with `--verbose`.
fn init_tracing(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => "info",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::new(format!(
        "warn,lango={level},lango_engine={level},lango_gateway={level},lango_models={level}"
    ));
    let use_color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(use_color)
        .without_time()
        .init();
}

/// Returns the format for errors in the arguments, which clap could not parse.
fn usage_error_format(raw: &[OsString]) -> OutputFormat {
    if raw.iter().skip(1).any(|argument| argument == "--json") {
        OutputFormat::Json
    } else {
        OutputFormat::Plain
    }
}

impl From<&clap::Error> for CliError {
    fn from(error: &clap::Error) -> Self {
        let text = error.to_string();
        let first = text
            .split("\n\n")
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        let message = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let suggested = [
            ContextKind::SuggestedSubcommand,
            ContextKind::SuggestedArg,
            ContextKind::SuggestedValue,
        ];
        let hint = suggested
            .into_iter()
            .find_map(|kind| error.get(kind))
            .map(|near| format!("did you mean {near}?"));
        Self::usage(message)
            .with_hint(hint.unwrap_or_else(|| "`lango --help` lists the commands".to_owned()))
    }
}
