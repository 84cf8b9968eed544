//! Arguments of `lango serve` and `lango token`.

use std::net::IpAddr;

use clap::Subcommand;
use lango_domain::access_tokens::TokenScope;

#[derive(clap::Args)]
pub struct ServeArgs {
    /// Listen on this address (server.host); the default accepts only local connections.
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<IpAddr>,
    /// Listen on this port (server.port); 0 picks a free port.
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

#[derive(Subcommand)]
pub enum TokenCommand {
    /// Create an access token and print it once.
    Create(TokenCreateArgs),
    /// List tokens with their scopes and last use.
    List,
    /// Revoke tokens.
    Revoke {
        /// The names of the tokens.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(clap::Args)]
pub struct TokenCreateArgs {
    /// The name of the token.
    pub name: String,
    /// The scopes of the token: chat, approve, read, admin.
    #[arg(
        long,
        value_name = "SCOPES",
        value_delimiter = ',',
        default_value = "chat,read"
    )]
    pub scope: Vec<TokenScope>,
    /// The owner of the sessions it can access; `local` for those of this terminal [default: the
    /// token name].
    #[arg(long, value_name = "NAME")]
    pub principal: Option<String>,
    /// The lifetime, for example 30d, 12h or 2w [default: no expiry].
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
}
