//! Agents in other processes.

use clap::Subcommand;

#[derive(Subcommand)]
pub enum A2aCommand {
    /// Fetch an agent's card and explain it: what it offers, what is odd about it, what would be used.
    Check {
        /// Where the card or the agent is, or the name of a configured remote agent.
        #[arg(value_name = "URL")]
        url: String,
    },
}
