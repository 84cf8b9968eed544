//! What can be typed about serving.

use std::net::IpAddr;

use clap::Subcommand;
use lango_store::TokenScope;

#[derive(clap::Args)]
pub struct ServeArgs {
    /// Listen on this address (server.host); only this machine reaches the usual one.
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<IpAddr>,
    /// Listen on this port (server.port); 0 takes any that is free.
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

#[derive(Subcommand)]
pub enum TokenCommand {
    /// Make an access token and show it, this once.
    Create(TokenCreateArgs),
    /// List tokens: what they are for, when they were used.
    List,
    /// Make tokens worthless.
    Revoke {
        /// Names of tokens.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(clap::Args)]
pub struct TokenCreateArgs {
    /// Its name.
    pub name: String,
    /// What it is for: chat, approve, read, admin.
    #[arg(
        long,
        value_name = "SCOPES",
        value_delimiter = ',',
        default_value = "chat,read"
    )]
    pub scope: Vec<TokenScope>,
    /// Whose sessions it reaches; its own name by default, `local` for those of this terminal.
    #[arg(long, value_name = "NAME")]
    pub principal: Option<String>,
    /// How long it is valid, as in 30d, 12h or 2w; for good by default.
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
}
