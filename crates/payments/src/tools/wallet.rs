//! `payment_wallet_info` and `payment_create_wallet`.

use std::sync::Arc;

use lango_domain::{Intent, Safety, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::address::shown_address;
use crate::payees::check_name;
use crate::payments::Payments;

#[derive(Deserialize, JsonSchema)]
struct WalletInfoArgs {}

pub(super) fn payment_wallet_info(payments: Arc<Payments>) -> Tool {
    Tool::new(
        "payment_wallet_info",
        "Shows the user's wallets with their addresses, and the network. Keys are never shown.",
        Safety::Safe,
        move |context, _: WalletInfoArgs| {
            let payments = Arc::clone(&payments);
            async move {
                let wallets = payments.wallets(&context.principal).await?;
                let network = payments.network();
                let mut lines = vec![format!("{} (chain {})", network.name, network.chain_id)];
                lines.extend(wallets.iter().map(|wallet| {
                    let address = shown_address(wallet.address);
                    format!("{}  {address}  {}", wallet.name, wallet.kind.name())
                }));
                if wallets.is_empty() {
                    lines.push("There is no wallet yet.".to_owned());
                }
                Ok::<_, ToolError>(lines.join("\n"))
            }
        },
    )
    .with_private_output()
    .with_phrases([
        "[show] [me] [my] wallet (info|information|address)",
        "(show|list) [me] my wallets",
        "what is my wallet address",
    ])
}

#[derive(Deserialize, JsonSchema)]
struct CreateWalletArgs {
    /// A short name; "main" if left out.
    #[serde(default)]
    name: Option<String>,
}

pub(super) fn payment_create_wallet(payments: Arc<Payments>) -> Tool {
    Tool::new(
        "payment_create_wallet",
        "Makes a new wallet. Its key is made and kept in the vault.",
        Safety::Dangerous,
        move |context, args: CreateWalletArgs| {
            let payments = Arc::clone(&payments);
            async move {
                let name = args.name.unwrap_or_else(|| "main".to_owned());
                let wallet = payments.create_wallet(&context.principal, &name).await?;
                Ok::<_, ToolError>(format!(
                    "Made the wallet {} with the address {}. Its key is in the vault: back the vault up before money is \
                    sent to this address.",
                    wallet.name,
                    shown_address(wallet.address)
                ))
            }
        },
    )
    .with_intent(|_, args: CreateWalletArgs| async move {
        let name = check_name(args.name.as_deref().unwrap_or("main"))?;
        Ok(Intent {
            level: Safety::Dangerous,
            shows: format!("Makes the wallet `{name}` with a new key in the vault"),
            subject: name,
            pattern: None,
        })
    })
    .with_phrases([
        "(create|make) [me] [a] [new] wallet",
        "(create|make) [me] [a] [new] wallet (named|called) {name:word}",
    ])
}
