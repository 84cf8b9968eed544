//! Arguments of `lango mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum McpCommand {
    /// Add a tool server, start it, and confirm its tools.
    Add(McpAddArgs),
    /// List the tool servers with their state, without starting them.
    List,
    /// Show the tools of a server, and which of them agents can use.
    Tools {
        /// The name of the server.
        key: String,
    },
    /// Start servers and report what they answer.
    Check {
        /// The name of the server [default: all].
        key: Option<String>,
    },
    /// Call a tool and print its result.
    Call {
        /// The name of the server.
        key: String,
        /// The name of the tool, as the server uses it.
        tool: String,
        /// The arguments as a JSON object.
        #[arg(default_value = "{}")]
        arguments: String,
        /// Call it without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Start a server, show its command line and its new or changed tools, and confirm them.
    Trust {
        /// The name of the server.
        key: String,
        /// Confirm without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Print what the program of a server wrote to its standard error.
    Logs {
        /// The name of the server.
        key: String,
        /// The number of lines from the end.
        #[arg(short = 'n', long, default_value_t = 100)]
        lines: usize,
    },
    /// Add the servers of another program's file (`mcpServers`, `servers` or `extensions`).
    Import {
        /// The file, in JSON or YAML.
        file: PathBuf,
    },
    /// Remove a server that was added with `add` or `import`, and everything known about it.
    Remove {
        /// The name of the server.
        key: String,
    },
}

#[derive(Args)]
pub struct McpAddArgs {
    /// The name of the server; its tools are called `mcp_<name>_<tool>`.
    pub key: String,
    /// The program of the server and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// The URL of a running server, in place of a command.
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// A variable for the program, as NAME=VALUE; the value may be vault:NAME or ${NAME}.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// A header for the URL, as NAME=VALUE; the value may be vault:NAME or ${NAME}.
    #[arg(long, value_name = "NAME=VALUE")]
    pub header: Vec<String>,
    /// Let the program access the network.
    #[arg(long)]
    pub network: bool,
    /// Let the program read this folder or file.
    #[arg(long, value_name = "PATH")]
    pub read: Vec<PathBuf>,
    /// Let the program change this folder.
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// The folder in which the program runs.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The purpose of the server, in one sentence.
    #[arg(long)]
    pub description: Option<String>,
    /// Confirm the server and its tools without asking.
    #[arg(long)]
    pub yes: bool,
}
