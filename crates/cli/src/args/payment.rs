//! Arguments of `lango payment`.

use std::num::NonZeroUsize;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum PaymentCommand {
    /// Pay someone: shows the payment, asks, pays, and prints a receipt.
    Send(PaymentSendArgs),
    /// Show the USDC of the wallet, and its ETH for network fees.
    Balance,
    /// List payments, newest first, after comparing them with the chain.
    History {
        /// Only this state: intended, approved, signed, sent, confirmed, reverted or expired.
        #[arg(long)]
        state: Option<String>,
        /// The maximum number of payments.
        #[arg(long, value_name = "N", default_value = "20")]
        limit: NonZeroUsize,
    },
    /// Print the receipt of a payment.
    Show {
        /// The id of the payment, or its beginning or end.
        id: String,
    },
    /// Show the limits, and what is left of them.
    Limits,
    /// Show the network, the node's state and the wallet.
    Info,
    /// Manage wallets: list, create, watch, unwatch.
    #[command(subcommand)]
    Wallet(WalletCommand),
    /// Manage the address book: list, add, remove.
    #[command(subcommand)]
    Payees(PayeesCommand),
    /// Fetch a web resource that costs USDC (x402): shows its price, asks, pays and prints the content.
    Fetch(PaymentFetchArgs),
}

#[derive(clap::Args)]
pub struct PaymentSendArgs {
    /// A name of the address book, or an address.
    pub to: String,
    /// The amount in USDC, such as 1.50.
    pub amount: String,
    /// The reason.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub purpose: String,
    /// A name for this payment, such as an invoice number; the same name is paid once.
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// Pay without a question.
    #[arg(long)]
    pub yes: bool,
}

#[derive(clap::Args)]
pub struct PaymentFetchArgs {
    /// The http or https URL.
    pub url: String,
    /// The most that it may cost, in USDC.
    #[arg(long, value_name = "AMOUNT")]
    pub max_amount: String,
    /// The HTTP method.
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// The body of the request.
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,
    /// A header of the request, as NAME: VALUE; repeat --header for more.
    #[arg(long, value_name = "HEADER")]
    pub header: Vec<String>,
    /// Pay without a question.
    #[arg(long)]
    pub yes: bool,
}

#[derive(Subcommand)]
pub enum WalletCommand {
    /// List the wallets.
    List,
    /// Make a wallet with a new key in the vault.
    Create {
        /// The name of the wallet.
        #[arg(default_value = "main")]
        name: String,
    },
    /// Watch an address whose key is somewhere else.
    Watch {
        /// The name of the wallet.
        name: String,
        /// The address.
        address: String,
    },
    /// Stop watching an address.
    Unwatch {
        /// The name of the wallet.
        name: String,
    },
}

#[derive(Subcommand)]
pub enum PayeesCommand {
    /// List the address book.
    List,
    /// Add a payee.
    Add {
        /// The name.
        name: String,
        /// The address; its checksum is checked.
        address: String,
        /// Add it although it looks like the address of another payee.
        #[arg(long)]
        force: bool,
    },
    /// Remove a payee.
    Remove {
        /// The name.
        name: String,
    },
}
