//! What can be typed.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use lango_app::Overrides;

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
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(clap::Args)]
pub struct Global {
    /// Read this configuration file and no other.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change one setting, as in agent.multiAgent=false; the value may be JSON.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print one JSON value instead of text.
    #[arg(long, global = true)]
    pub json: bool,
}

impl Global {
    pub fn overrides(&self) -> Overrides {
        Overrides { config: self.config.clone(), set: self.set.clone() }
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Look at the team: who is in it, who holds what, what each one reads.
    #[command(subcommand)]
    Agent(AgentCommand),
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
    Init(Init),
    /// Print the completion script for a shell.
    Completions {
        /// The shell to complete for.
        shell: Shell,
    },
}

#[derive(clap::Args)]
pub struct Init {
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
}
