//! One module per command; each turns arguments into an [`Output`].

mod agent;
mod config;
mod route;

use clap::CommandFactory;
use lango_app::{Environment, Loaded, Team, assemble_team, built_in_tools};
use lango_domain::{Prefix, Tool};
use lango_team::Roster;
use serde_json::json;

use crate::args::{Args, Command, Global, ToolNames};
use crate::output::{Failure, Output};

pub fn run(args: Args) -> Result<Output, Failure> {
    let Args { global, command } = args;
    let Some(command) = command else { return Ok(help()) };
    match command {
        Command::Agent(command) => agent::run(&global, command),
        Command::Route { text, tools } => route::run(&Setting::read(&global)?.team(&tools)?, &text),
        Command::Config(command) => config::run(&global, &command),
        Command::Init(wish) => config::init(&global, &wish),
        Command::Completions { shell } => Ok(completions(shell)),
    }
}

/// Where a command runs: environment and configuration.
struct Setting {
    environment: Environment,
    loaded: Loaded,
}

impl Setting {
    fn read(global: &Global) -> Result<Self, Failure> {
        let environment = environment()?;
        let loaded = Loaded::read(&environment, &global.overrides())?;
        Ok(Self { environment, loaded })
    }

    /// The team with the tools that are named, or with those that exist.
    fn team(&self, tools: &ToolNames) -> Result<Team, Failure> {
        let tools = match tools.tools.as_deref() {
            None => built_in_tools(&self.loaded.settings),
            Some(names) => stand_ins(names.split(',').flat_map(|name| match name.trim() {
                "all" => one_of_each_kind(),
                name => vec![name.to_owned()],
            })),
        };
        Ok(assemble_team(&self.loaded, &self.environment, tools)?)
    }
}

fn environment() -> Result<Environment, Failure> {
    Environment::of_this_process()
        .map_err(|error| Failure::usage(format!("cannot find the working folder: {error}")))
}

/// A name for each prefix of the built-in roles.
fn one_of_each_kind() -> Vec<String> {
    let specs = Roster::built_in().specs;
    let prefixes = specs.iter().flat_map(|spec| &spec.prefixes).filter(|prefix| prefix.text != Prefix::ANY);
    prefixes.map(|prefix| format!("{}_any", prefix.text.trim_end_matches('_'))).collect()
}

/// Stand-ins for names as they were typed; one for each name.
fn stand_ins(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<Tool> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names.into_iter().map(Into::into) {
        if !name.trim().is_empty() && !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct.into_iter().map(Tool::stand_in).collect()
}

fn help() -> Output {
    let help = Args::command().render_long_help();
    Output::new(help.ansi().to_string(), json!({ "help": help.to_string() }))
}

fn completions(shell: clap_complete::Shell) -> Output {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "lango", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let json = json!({ "shell": shell.to_string(), "script": script });
    Output::new(script, json)
}
