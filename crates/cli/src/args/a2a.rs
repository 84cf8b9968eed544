//! Arguments of `lango a2a`.

use clap::Subcommand;

#[derive(Subcommand)]
pub enum A2aCommand {
    /// Fetch an agent card and show its interfaces, skills, problems and the interface Lango would
    /// use.
    Check {
        /// The URL of the agent or its card, or the name of a configured remote agent.
        #[arg(value_name = "URL")]
        url: String,
    },
}
