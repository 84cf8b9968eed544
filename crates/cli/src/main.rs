//! The `lango` binary: reads arguments, runs one command, prints its result.

mod args;
mod commands;
mod output;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use args::Args;
use output::{Failure, Form};

fn main() -> ExitCode {
    let raw: Vec<OsString> = std::env::args_os().collect();
    let args = match Args::try_parse_from(&raw) {
        Ok(args) => args,
        Err(error) => return output::refuse_usage(&error, usage_form(&raw)),
    };
    let form = if args.global.json { Form::Json } else { Form::Plain };
    match commands::run(args) {
        Ok(output) => output.print(form),
        Err(failure) => failure.print(form),
    }
}

/// Arguments that could not be read still say which form an error should have.
fn usage_form(raw: &[OsString]) -> Form {
    if raw.iter().skip(1).any(|argument| argument == "--json") { Form::Json } else { Form::Plain }
}

impl From<&clap::Error> for Failure {
    fn from(error: &clap::Error) -> Self {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: ")).map(str::to_owned);
        let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        let message = if is_help { "a command is missing".to_owned() } else { message };
        Self::usage(message).with_hint(tip.unwrap_or_else(|| "`lango --help` shows what there is".to_owned()))
    }
}
