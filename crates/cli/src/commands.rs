//! One module per command. Each turns its arguments into a [`CommandOutput`].

mod a2a;
mod agent;
mod ask;
mod audit;
mod automate;
mod automation;
mod bg;
mod browser;
mod chat;
mod config;
mod cron;
mod graph;
mod inbox;
mod index;
mod inquiry;
mod key;
mod knowledge;
mod maintenance;
mod mcp;
mod memory;
mod model;
mod payment;
mod route;
mod secret;
mod serve;
mod session;
mod skill;
mod token;
mod undo;
mod usage;
mod vault;
mod workflow;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::CommandFactory;
use lango_app::sample_tool_names;
use lango_app::{
    AssembledTeam, CapabilityContext, Environment, LazyStores, LoadedConfig, Toolset,
    assemble_team, capability_tools,
};
use lango_domain::Tool;
use lango_domain::event::SessionId;
use serde_json::json;

use crate::args::{Args, Command, EvalCommand, GlobalArgs, ToolNames};
use crate::hidden_input::{TerminalPrompt, has_terminal};
use crate::output::{CliError, CommandOutput, OutputFormat};

pub fn run(args: Args) -> Result<ExitCode, CliError> {
    let Args { global, command } = args;
    let format = if global.json {
        OutputFormat::Json
    } else {
        OutputFormat::Plain
    };
    let output = match command {
        None => return chat::run(&global, None, false),
        Some(Command::Chat { resume, yes }) => return chat::run(&global, resume.as_deref(), yes),
        Some(Command::Doctor) => return maintenance::doctor(&global, format),
        Some(Command::Serve(args)) => return serve::run(&global, &args, format),
        Some(Command::Token(command)) => token::run(&global, &command),
        Some(Command::Session(command)) => session::run(&global, &command),
        Some(Command::Backup { file }) => maintenance::back_up(&global, &file),
        Some(Command::Restore { file }) => maintenance::restore(&global, &file),
        Some(Command::Ask(args)) => return ask::run(&global, &args),
        Some(Command::Undo(args)) => undo::undo(&global, &args),
        Some(Command::Trash(command)) => undo::trash(&global, &command),
        Some(Command::Skill(command)) => skill::run(&global, &command),
        Some(Command::Index(command)) => index::run(&global, &command),
        Some(Command::Graph(command)) => graph::run(&global, command),
        Some(Command::Memory(command)) => memory::run(&global, &command),
        Some(Command::Eval(EvalCommand::Retrieval { directory })) => {
            index::corpus::evaluate(&global, &directory)
        }
        Some(Command::Knowledge(command)) => knowledge::run(&global, &command),
        Some(Command::Inquiry(command)) => inquiry::run(&global, &command),
        Some(Command::Cron(command)) => cron::run(&global, &command),
        Some(Command::Bg(command)) => return bg::run(&global, &command, format),
        Some(Command::Workflow(command)) => return workflow::run(&global, &command, format),
        Some(Command::Inbox(command)) => inbox::run(&global, &command),
        Some(Command::Automate(command)) => return automate::run(&global, command, format),
        Some(Command::Vault(command)) => vault::run(&global, &command),
        Some(Command::Secret(command)) => secret::run(&global, &command),
        Some(Command::Key(command)) => key::run(&global, &command),
        Some(Command::Payment(command)) => payment::run(&global, &command),
        Some(Command::Browser(command)) => browser::run(&global, &command),
        Some(Command::Mcp(command)) => mcp::run(&global, &command),
        Some(Command::Audit(args)) => audit::run(&global, &args),
        Some(Command::Agent(command)) => agent::run(&global, command),
        Some(Command::A2a(command)) => return a2a::run(&global, &command, format),
        Some(Command::Route { text, tools }) => {
            route::run(&CommandContext::load(&global)?.team(&tools)?, &text)
        }
        Some(Command::Model(command)) => model::run(&global, &command),
        Some(Command::Usage {
            file: Some(file), ..
        }) => usage::report_file(&file),
        Some(Command::Usage {
            file: None,
            session,
        }) => usage::report_store(&global, session),
        Some(Command::Config(command)) => config::run(&global, &command),
        Some(Command::Init(args)) => config::init(&global, &args),
        Some(Command::Completions { shell }) => Ok(completions(shell)),
    };
    output.map(|output| output.print(format))
}

/// Builds a runtime with a worker thread, so that turn hooks run while the user types.
fn multi_thread_runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    built.map_err(|error| CliError::usage(format!("cannot start the async runtime: {error}")))
}

/// Builds a single-threaded runtime, which is enough for a single command. `serve` builds its own.
fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    built.map_err(|error| CliError::usage(format!("cannot start the async runtime: {error}")))
}

/// The maximum length of a session id, in characters.
const MAX_SESSION_NAME: usize = 200;

/// Returns the session with this id, or a new one. Rejects control characters in ids.
fn parse_session(name: Option<&str>) -> Result<SessionId, CliError> {
    let Some(name) = name else {
        return Ok(lango_app::new_session());
    };
    let is_odd = |c: char| c.is_control() || lango_text::sanitize::is_terminal_control(c);
    if name.trim().is_empty() || name.chars().count() > MAX_SESSION_NAME || name.chars().any(is_odd)
    {
        let message =
            format!("invalid session id; expected 1 to {MAX_SESSION_NAME} printable characters");
        return Err(CliError::usage(message));
    }
    Ok(SessionId::new(name))
}

/// Applies `store.retentionDays`. Runs after the command, so that a session used now is not
/// deleted.
async fn apply_retention(context: &CommandContext, assistant: &lango_app::Assistant) {
    let (now, store) = (jiff::Timestamp::now(), &assistant.stores);
    let result =
        lango_app::apply_retention(&context.loaded, &context.environment, store, now).await;
    if let Err(error) = result {
        crate::output::warn(
            &[format!("old sessions could not be deleted: {error}")],
            OutputFormat::Plain,
        );
    }
}

/// The maximum time to wait for turn hooks before the program exits.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Waits for turn hooks to finish after the answer was printed.
///
/// Ctrl-C skips the wait; unfinished work is done after the next turn.
async fn wait_for_hooks(assistant: &lango_app::Assistant) {
    tokio::select! {
        () = assistant.runtime.wait_for_hooks() => {}
        () = tokio::time::sleep(MAX_WAIT) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// The environment, configuration and store of a command.
struct CommandContext {
    environment: Environment,
    loaded: LoadedConfig,
    stores: LazyStores,
}

impl CommandContext {
    fn load(global: &GlobalArgs) -> Result<Self, CliError> {
        Self::load_with(global, Vec::new())
    }

    /// Loads the context with `extra` settings (`key=value`) from the command's own arguments.
    fn load_with(global: &GlobalArgs, extra: Vec<String>) -> Result<Self, CliError> {
        let environment = environment()?;
        let mut overrides = global.overrides();
        overrides.set.extend(extra);
        let mut loaded = LoadedConfig::load(&environment, &overrides)?;
        let stores = LazyStores::new(&loaded, &environment);
        if loaded.has_vault_settings() {
            let source = lango_app::secret_source(&loaded, &environment, &stores);
            let resolving = lango_app::resolve_vault_settings(&mut loaded, source.as_deref());
            runtime()?.block_on(resolving);
        }
        Ok(Self {
            environment,
            loaded,
            stores,
        })
    }

    /// Returns stubs for the named tools, or the real tools if none are named.
    fn tools(&self, tools: &ToolNames) -> Result<Vec<Tool>, CliError> {
        match tools.tools.as_deref() {
            None => self.toolset_tools(&self.terminal_toolset()?),
            Some(names) => Ok(stub_tools(names.split(',').flat_map(
                |name| match name.trim() {
                    "all" => sample_tool_names(),
                    name => vec![name.to_owned()],
                },
            ))),
        }
    }

    /// Returns the tools of all capabilities.
    fn toolset_tools(&self, toolset: &Toolset) -> Result<Vec<Tool>, CliError> {
        Ok(capability_tools(&CapabilityContext::new(
            &self.loaded,
            &self.environment,
            toolset,
            &self.stores,
        ))?)
    }

    pub(crate) fn toolset(&self) -> Result<Toolset, CliError> {
        Ok(Toolset::new(&self.loaded, &self.environment)?)
    }

    /// Returns the toolset of a command with one user, who can type secrets at the terminal.
    fn terminal_toolset(&self) -> Result<Toolset, CliError> {
        let toolset = self.toolset()?;
        if has_terminal() {
            toolset.secret_prompt().set(Arc::new(TerminalPrompt));
        }
        Ok(toolset)
    }

    fn team(&self, tools: &ToolNames) -> Result<AssembledTeam, CliError> {
        Ok(assemble_team(
            &self.loaded,
            &self.environment,
            self.tools(tools)?,
        )?)
    }
}

/// Adds a warning for every damaged row that was skipped.
fn with_damage_warnings(mut output: CommandOutput, stores: &lango_domain::Stores) -> CommandOutput {
    output.warnings.extend(damage_warnings(stores));
    output
}

fn damage_warnings(stores: &lango_domain::Stores) -> Vec<String> {
    let rows = stores.maintenance.damaged_rows();
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| format!("{row}; it was skipped"))
        .collect();
    if !rows.is_empty() {
        lines.push("run `lango doctor` for ways to repair the store".to_owned());
    }
    lines
}

fn environment() -> Result<Environment, CliError> {
    Environment::from_process()
        .map_err(|error| CliError::usage(format!("cannot read the environment: {error}")))
}

/// Returns one stub tool for each distinct name.
fn stub_tools(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<Tool> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names.into_iter().map(Into::into) {
        if !name.trim().is_empty() && !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct.into_iter().map(Tool::stub).collect()
}

fn completions(shell: clap_complete::Shell) -> CommandOutput {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "lango", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let json = json!({ "shell": shell.to_string(), "script": script });
    CommandOutput::new(script, json)
}
