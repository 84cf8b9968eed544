//! What can be typed.

mod a2a;
mod graph;
mod index;
mod knowledge;
mod memory;
mod operator;
mod serve;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use lango_app::Overrides;

pub use a2a::A2aCommand;
pub use graph::{DiagramFormat, FactFormat, GraphCommand, GraphDirection, TripleArgs};
pub use index::{CorpusFormat, EvalCommand, IndexCommand};
pub use knowledge::{InquiryCommand, KnowledgeCommand};
pub use memory::{MemoryCommand, MemoryListArgs};
pub use operator::{SkillCommand, TrashCommand, UndoArgs};
pub use serve::{ServeArgs, TokenCommand, TokenCreateArgs};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// An assistant that is a team: an orchestrator that only delegates, and specialists that each hold one kind of tool.
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
    /// Read this configuration file and no other.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change one setting, as in agent.multiAgent=false; the value may be JSON.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Ask this provider (agent.provider).
    #[arg(long, global = true, value_name = "ID")]
    pub provider: Option<String>,
    /// Ask for this model (agent.model).
    #[arg(long, global = true, value_name = "NAME")]
    pub model: Option<String>,
    /// Work in this folder (tools.workspace); the current one by default.
    #[arg(long, global = true, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Say more about what is going on, on stderr.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print one JSON value instead of text.
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
    /// Make one request and show the answer.
    Ask(AskArgs),
    /// Talk with the team (what `lango` alone does).
    Chat {
        /// Go on with a session, the last one when none is named; an interrupted turn is picked up where it stopped.
        #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "")]
        resume: Option<String>,
        /// Allow every call that would be asked about.
        #[arg(long)]
        yes: bool,
    },
    /// Answer over HTTP: turns, sessions, and an API that OpenAI's clients understand.
    Serve(ServeArgs),
    /// Say who may come in over HTTP: create, list, revoke.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Look at sessions: list, show, export, import, delete, fork, search.
    #[command(subcommand)]
    Session(SessionCommand),
    /// Copy everything that is kept into one file.
    Backup {
        /// The file to write; it must not exist.
        file: PathBuf,
    },
    /// Replace everything that is kept by a backup; what was there is kept beside it.
    Restore {
        /// A file that `lango backup` wrote.
        file: PathBuf,
    },
    /// Look at everything that Lango needs, and say what to do about what is wrong.
    Doctor,
    /// Take back what the last turn did to files, and say what cannot be taken back.
    Undo(UndoArgs),
    /// Look at what was deleted: list, restore, empty.
    #[command(subcommand)]
    Trash(TrashCommand),
    /// Look at skills: list, show, check, add.
    #[command(subcommand)]
    Skill(SkillCommand),
    /// Documents that the librarian finds passages in: add, list, remove, refresh, search.
    #[command(subcommand)]
    Index(IndexCommand),
    /// Facts and how they hang together: import, export, query, traverse, path, add, retire, forget, stats, show.
    #[command(subcommand)]
    Graph(GraphCommand),
    /// What is remembered of conversations: status, observations, reflections, why, forget.
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Facts that the librarian keeps: list, show, history, delete.
    #[command(subcommand)]
    Knowledge(KnowledgeCommand),
    /// Questions that wait for an answer of yours: list, dismiss.
    #[command(subcommand)]
    Inquiry(InquiryCommand),
    /// Measure how well something works.
    #[command(subcommand)]
    Eval(EvalCommand),
    /// List what tools did: who asked for it, what exactly, who allowed it, what came of it.
    Audit(AuditArgs),
    /// Look at the models.
    #[command(subcommand)]
    Model(ModelCommand),
    /// Add up what conversations took.
    Usage {
        /// Events as `lango ask --json` prints them, - for standard input; what is kept when no file is named.
        file: Option<PathBuf>,
        /// Of this session only.
        #[arg(long, value_name = "ID", conflicts_with = "file")]
        session: Option<String>,
    },
    /// Look at the team: who is in it, who holds what, what each one reads.
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Look at agents in other processes.
    #[command(subcommand)]
    A2a(A2aCommand),
    /// Show which agent a request's words point to, and why.
    Route {
        /// The request.
        text: String,
        #[command(flatten)]
        tools: ToolNames,
    },
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Write a commented lango.toml into this folder.
    Init(InitArgs),
    /// Print the completion script for a shell.
    Completions {
        /// The shell to complete for.
        shell: Shell,
    },
}

#[derive(clap::Args)]
pub struct AuditArgs {
    /// Of this session only.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// So many calls, the newest first.
    #[arg(long, value_name = "N", default_value = "100")]
    pub limit: std::num::NonZeroUsize,
}

#[derive(clap::Args)]
pub struct AskArgs {
    /// The request; - stands for what is piped in.
    #[arg(required_unless_present_any = ["replay", "continue"], value_name = "TEXT")]
    pub text: Vec<String>,
    /// The session that it belongs to; a new one by default.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Go on with the turn of the session that was interrupted, where it stopped.
    #[arg(long, requires = "session", conflicts_with_all = ["text", "record", "replay"])]
    pub r#continue: bool,
    /// Keep every exchange with models and tools in this file, without keys.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Run the recorded turn again, without network and without running tools.
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Warn where a request differs from the recording, instead of failing.
    #[arg(long, requires = "replay")]
    pub replay_loose: bool,
    /// Allow every call that would be asked about.
    #[arg(long)]
    pub yes: bool,
    /// With --json, print text as it comes, too.
    #[arg(long)]
    pub deltas: bool,
    #[command(flatten)]
    pub tools: ToolNames,
}

#[derive(Subcommand)]
pub enum ModelCommand {
    /// Show the model that is in force, why, and what else is configured.
    List,
    /// Make one tiny request and say what is wrong if it fails.
    Check,
}

#[derive(clap::Args)]
pub struct InitArgs {
    /// Write it into your own configuration folder instead.
    #[arg(long)]
    pub user: bool,
    /// Replace a lango.toml that is there.
    #[arg(long)]
    pub force: bool,
}

#[derive(Subcommand)]
pub enum AgentCommand {
    /// List the agents of the team, who was left out, and why.
    List {
        #[command(flatten)]
        tools: ToolNames,
    },
    /// Draw the team with its tools.
    Tree {
        #[command(flatten)]
        tools: ToolNames,
    },
    /// Show which agent each tool name belongs to.
    Partition {
        /// Names of tools.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Say in words what a set of tools can do.
    Describe {
        /// Names of tools.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print the prompt that an agent reads (the root agent's by default).
    Prompt {
        /// The agent's exact name.
        agent: Option<String>,
        #[command(flatten)]
        tools: ToolNames,
    },
}

#[derive(clap::Args)]
pub struct ToolNames {
    /// Pretend that exactly these tools exist: names with commas between them, or `all` for one of each kind.
    #[arg(long, value_name = "A,B|all")]
    pub tools: Option<String>,
}

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Print every setting that is in force, and where it was set.
    Show,
    /// Check the configuration and the files that it names.
    Check,
    /// Print the JSON Schema of a configuration file.
    Schema,
    /// Show what this folder's own file, prompts, agents and skills ask for, and confirm it; until then it is not used.
    Trust {
        /// Confirm without being asked. Without a terminal nobody is asked either.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Subcommand)]
pub enum SessionCommand {
    /// List them, the one used last first.
    List,
    /// Show what was said and done.
    Show {
        /// The session's id.
        session: String,
    },
    /// Print a session to be kept elsewhere.
    Export {
        /// The session's id.
        session: String,
        /// As events, one a line, or to be read.
        #[arg(long, default_value = "jsonl")]
        format: ExportFormat,
    },
    /// Make a session of exported events, or of older messages (role, content, author), one a line.
    Import {
        /// The file with one JSON object a line.
        file: PathBuf,
        /// The id that it gets; a new one by default.
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Delete sessions for good: their words are in no file afterwards.
    Delete {
        /// The sessions' ids.
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
    },
    /// Begin a new session with the whole turns of another.
    Fork {
        /// The session's id.
        session: String,
        /// Only up to this event's number.
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        /// The new session's id; made up by default.
        #[arg(long = "as", value_name = "ID")]
        into: Option<String>,
    },
    /// Find requests and answers that hold all these words.
    Search {
        /// The words.
        text: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    Jsonl,
    Markdown,
}

impl std::fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Jsonl => "jsonl",
            Self::Markdown => "markdown",
        })
    }
}
