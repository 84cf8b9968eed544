//! `lango-bench chain`: a chain on loopback with USDC, for trying payments by hand and in scripts.

use std::io::{Read, Write};

use alloy_primitives::Address;
use anyhow::{Context, Result};
use lango_payments::parse_address;
use lango_testkit::paid_servers::PaperShop;
use lango_testkit::usdc_chain::UsdcChain;
use serde_json::json;

#[derive(clap::Args)]
pub struct ChainOptions {
    /// The port on loopback.
    #[arg(long, default_value_t = 8545)]
    port: u16,
    /// Give this account USDC and one ETH; repeat for more.
    #[arg(long, value_name = "ADDRESS")]
    fund: Vec<String>,
    /// The USDC of each account.
    #[arg(long, default_value_t = 100)]
    usdc: u32,
    /// Use the chain that runs at the port, and end.
    #[arg(long)]
    running: bool,
    /// Also start a server of paid resources, which pays this account.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "running")]
    shop: Option<String>,
}

/// Starts the chain and keeps it until standard input ends or the process is stopped.
pub fn run(options: &ChainOptions) -> Result<()> {
    let accounts: Vec<Address> = options
        .fund
        .iter()
        .map(|text| address(text))
        .collect::<Result<_>>()?;
    let payee = options.shop.as_deref().map(address).transpose()?;
    let chain = match options.running {
        true => UsdcChain::connect(options.port),
        false => UsdcChain::start_on(options.port),
    };
    for account in accounts {
        chain.fund(account, u64::from(options.usdc) * 1_000_000);
    }
    let shop = payee.map(|payee| PaperShop::start(&chain, payee));
    let paper = shop
        .as_ref()
        .map(|shop| format!("http://127.0.0.1:{}/paper", shop.port));
    println!(
        "{}",
        json!({ "rpcUrl": chain.url(), "chainId": 8453, "paper": paper })
    );
    std::io::stdout().flush()?;
    if !options.running {
        std::io::stdin().read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

fn address(text: &str) -> Result<Address> {
    parse_address(text).with_context(|| format!("the address {text}"))
}
