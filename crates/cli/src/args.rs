//! Command-line arguments.

mod a2a;
mod automation;
mod browser;
mod graph;
mod index;
mod knowledge;
mod mcp;
mod memory;
mod operator;
mod payment;
mod serve;
mod session;
mod vault;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use lango_app::Overrides;

pub use a2a::A2aCommand;
pub use automation::{
    AutomateCommand, BackgroundCommand, CatchUpChoice, CronAddArgs, CronCommand, DeliveryArgs,
    InboxCommand, OverlapChoice, SessionChoice, WorkflowCommand,
};
pub use browser::{BrowserCommand, BrowserProfileCommand};
pub use graph::{
    DiagramFormat, FactFormat, FactQueryArgs, GraphCommand, GraphDirection, GraphShowArgs,
    PathArgs, TraverseArgs, TripleArgs,
};
pub use index::{CorpusFormat, EvalCommand, IndexCommand};
pub use knowledge::{InquiryCommand, KnowledgeCommand};
pub use mcp::{McpAddArgs, McpCommand};
pub use memory::{MemoryCommand, MemoryListArgs};
pub use operator::{SkillCommand, TrashCommand, UndoArgs};
pub use payment::{
    PayeesCommand, PaymentCommand, PaymentFetchArgs, PaymentSendArgs, WalletCommand,
};
pub use serve::{ServeArgs, TokenCommand, TokenCreateArgs};
pub use session::{ExportFormat, SessionCommand};
pub use vault::{
    KeyCommand, PublicKeyForm, PurposeChoice, SecretBindArgs, SecretCommand, SecretSetArgs,
    VaultCommand,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// A multi-agent assistant: an orchestrator routes each request to a specialist agent with its own
/// tools.
#[derive(Parser)]
#[command(name = "lango", version, styles = STYLES, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(clap::Args)]
pub struct GlobalArgs {
    /// Read only this configuration file.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Override one setting, for example agent.multiAgent=false; the value may be JSON.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Use this provider (agent.provider).
    #[arg(long, global = true, value_name = "ID")]
    pub provider: Option<String>,
    /// Use this model (agent.model).
    #[arg(long, global = true, value_name = "NAME")]
    pub model: Option<String>,
    /// Work in this folder (tools.workspace) [default: the current folder].
    #[arg(long, global = true, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Log to stderr; -vv logs more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print JSON instead of text: one value, or one per line while a turn runs.
    #[arg(long, global = true)]
    pub json: bool,
}

impl GlobalArgs {
    pub fn overrides(&self) -> Overrides {
        let provider = self
            .provider
            .iter()
            .map(|id| format!("agent.provider={id}"));
        let model = self.model.iter().map(|name| format!("agent.model={name}"));
        let workspace = self
            .workspace
            .iter()
            .map(|folder| format!("tools.workspace={}", folder.display()));
        Overrides {
            config: self.config.clone(),
            set: self
                .set
                .iter()
                .cloned()
                .chain(provider)
                .chain(model)
                .chain(workspace)
                .collect(),
        }
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Send one request and print the answer.
    Ask(AskArgs),
    /// Chat with the team (also `lango` without a command).
    Chat {
        /// Resume a session, by default the last one; an interrupted turn continues where it
        /// stopped.
        #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "")]
        resume: Option<String>,
        /// Approve every tool call without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Run the HTTP server: turns, sessions, an OpenAI-compatible API and A2A.
    Serve(ServeArgs),
    /// Manage access tokens for the HTTP server: create, list, revoke.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Manage sessions: list, show, files, export, import, delete, fork, rename, search.
    #[command(subcommand)]
    Session(SessionCommand),
    /// Back up the store to one file.
    Backup {
        /// The file to write; it must not exist yet.
        file: PathBuf,
    },
    /// Replace the store with a backup; the old store is saved next to it.
    Restore {
        /// A file written by `lango backup`.
        file: PathBuf,
    },
    /// Check the configuration, model, sandbox and store, and suggest fixes.
    Doctor,
    /// Undo the file changes of the last turn, and list what cannot be undone.
    Undo(UndoArgs),
    /// Manage deleted files: list, restore, empty.
    #[command(subcommand)]
    Trash(TrashCommand),
    /// Manage skills: list, show, check, add.
    #[command(subcommand)]
    Skill(SkillCommand),
    /// Manage the document index: add, list, remove, refresh, search.
    #[command(subcommand)]
    Index(IndexCommand),
    /// Manage the knowledge graph: import, export, query, traverse, path, add, retire, forget,
    /// stats, show.
    #[command(subcommand)]
    Graph(GraphCommand),
    /// Manage conversation memory: status, observations, reflections, why, forget.
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Manage the knowledge base: list, show, history, delete.
    #[command(subcommand)]
    Knowledge(KnowledgeCommand),
    /// Manage questions that wait for your answer: list, dismiss.
    #[command(subcommand)]
    Inquiry(InquiryCommand),
    /// Manage jobs with schedules: add, list, show, history, run, pause, resume, remove.
    #[command(subcommand)]
    Cron(CronCommand),
    /// Manage background tasks: submit, list, status, result, cancel.
    #[command(subcommand)]
    Bg(BackgroundCommand),
    /// Manage workflows: run, validate, list, status, graph, cancel, retry, approve, deny, save.
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Manage messages from jobs, tasks and workflows: list, read, clear.
    #[command(subcommand)]
    Inbox(InboxCommand),
    /// Manage the scheduler: status, run, install.
    #[command(subcommand)]
    Automate(AutomateCommand),
    /// Manage the vault: status, unlock, lock, passphrase, key-file, export, import.
    #[command(subcommand)]
    Vault(VaultCommand),
    /// Manage secrets: set, list, remove, bind.
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Manage keys for signatures and encryption: create, list, rotate, export-public.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Pay in USDC: send, balance, history, show, limits, info, wallet, payees, fetch.
    #[command(subcommand)]
    Payment(PaymentCommand),
    /// Open pages in the browser: open, screenshot, profile.
    #[command(subcommand)]
    Browser(BrowserCommand),
    /// Manage tool servers (MCP): add, list, tools, check, call, trust, logs, import, remove.
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Run evaluations.
    #[command(subcommand)]
    Eval(EvalCommand),
    /// List tool calls with their agent, arguments, approval and outcome.
    Audit(AuditArgs),
    /// Inspect models: list, check.
    #[command(subcommand)]
    Model(ModelCommand),
    /// Show token usage and cost.
    Usage {
        /// A file of events printed by `lango ask --json`, - for standard input [default: the
        /// store].
        file: Option<PathBuf>,
        /// Only this session.
        #[arg(long, value_name = "ID", conflicts_with = "file")]
        session: Option<String>,
    },
    /// Inspect the team: agents, their tools and prompts.
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Inspect remote agents (A2A).
    #[command(subcommand)]
    A2a(A2aCommand),
    /// Show which agent the offline router picks for a request, and why.
    Route {
        /// The request.
        text: String,
        #[command(flatten)]
        tools: ToolNames,
    },
    /// Inspect the configuration: show, check, schema, trust.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Write a commented lango.toml to the current folder.
    Init(InitArgs),
    /// Print the completion script for a shell.
    Completions {
        /// The shell to complete for.
        shell: Shell,
    },
}

#[derive(clap::Args)]
pub struct AuditArgs {
    /// Only this session.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The maximum number of calls, newest first.
    #[arg(long, value_name = "N", default_value = "100")]
    pub limit: std::num::NonZeroUsize,
}

#[derive(clap::Args)]
pub struct AskArgs {
    /// The request; - reads standard input.
    #[arg(required_unless_present_any = ["replay", "continue"], value_name = "TEXT")]
    pub text: Vec<String>,
    /// Attach an image, a PDF, a text or another file; repeat --attach for more files.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["continue", "replay"])]
    pub attach: Vec<PathBuf>,
    /// The session to use [default: a new one].
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Continue the interrupted turn of the session where it stopped.
    #[arg(long, requires = "session", conflicts_with_all = ["text", "record", "replay"])]
    pub r#continue: bool,
    /// Record every exchange with models and tools to this file, without secrets.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Replay a recorded turn without network access and without running tools.
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Warn instead of failing where a request differs from the recording.
    #[arg(long, requires = "replay")]
    pub replay_loose: bool,
    /// Approve every tool call without asking.
    #[arg(long)]
    pub yes: bool,
    /// With --json, also print text as it streams.
    #[arg(long)]
    pub deltas: bool,
    #[command(flatten)]
    pub tools: ToolNames,
}

#[derive(Subcommand)]
pub enum ModelCommand {
    /// Show the selected model, the reason for it, and other configured providers.
    List,
    /// Send one tiny request to each model, and explain a failure.
    Check,
}

#[derive(clap::Args)]
pub struct InitArgs {
    /// Write to your user configuration folder instead.
    #[arg(long)]
    pub user: bool,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
}

#[derive(Subcommand)]
pub enum AgentCommand {
    /// List the agents of the team, and the skipped ones with the reason.
    List {
        #[command(flatten)]
        tools: ToolNames,
    },
    /// Print the team and its tools as a tree.
    Tree {
        #[command(flatten)]
        tools: ToolNames,
    },
    /// Show which agent each tool belongs to.
    Partition {
        /// Tool names.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Describe what a set of tools can do.
    Describe {
        /// Tool names.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print the prompt of an agent [default: the root agent].
    Prompt {
        /// The agent's exact name.
        agent: Option<String>,
        #[command(flatten)]
        tools: ToolNames,
    },
}

#[derive(clap::Args)]
pub struct ToolNames {
    /// Assume exactly these tools: comma-separated names, or `all` for one of each kind.
    #[arg(long, value_name = "A,B|all")]
    pub tools: Option<String>,
}

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Print every setting with its value and origin.
    Show,
    /// Check the configuration and the files it refers to.
    Check,
    /// Print the JSON Schema of the configuration file.
    Schema,
    /// Show the settings, prompts, agents and skills of this folder and trust them; until then they
    /// are not used.
    Trust {
        /// Confirm without a question; without a terminal there is no question either.
        #[arg(long)]
        yes: bool,
    },
}
