//! `lango payment payees` and `lango payment wallet`.

use std::fmt::Write as _;

use jiff::Timestamp;
use lango_app::capability::payments::{
    KnownAddresses, Likeness, Wallet, WalletKind, check_name, likeness, parse_address,
    shown_address,
};
use lango_domain::payments::{AccountAddress, NewPayee, Payee, WatchedWallet};
use lango_text::sanitize::{one_line, truncated_line};
use lango_text::suggest;
use serde_json::{Value, json};

use super::{PaymentView, payment_error};
use crate::args::{PayeesCommand, WalletCommand};
use crate::output::{CliError, CommandOutput, NAME, styled};

pub(super) async fn payees(
    view: &PaymentView,
    command: &PayeesCommand,
) -> Result<CommandOutput, CliError> {
    match command {
        PayeesCommand::List => list_payees(view).await,
        PayeesCommand::Add {
            name,
            address,
            force,
        } => add_payee(view, name, address, *force).await,
        PayeesCommand::Remove { name } => {
            let store = &view.stores.payments;
            if store.remove_payee(&view.principal, name).await? {
                let text = format!("Removed {}.\n", one_line(name));
                return Ok(CommandOutput::new(text, json!({ "removed": name })));
            }
            let payees = store.payees(&view.principal).await?;
            let names = payees.iter().map(|payee| payee.name.as_str());
            Err(unknown("payee", name, suggest::did_you_mean(name, names)))
        }
    }
}

async fn list_payees(view: &PaymentView) -> Result<CommandOutput, CliError> {
    let payees = view.stores.payments.payees(&view.principal).await?;
    let mut plain = String::new();
    for payee in &payees {
        let name = styled(NAME, one_line(&payee.name));
        let _ = writeln!(plain, "{name}  {}", shown_address(payee.address));
    }
    if payees.is_empty() {
        plain.push_str("The address book is empty. Add someone with `lango payment payees add`.\n");
    }
    let items: Vec<Value> = payees.iter().map(payee_json).collect();
    Ok(CommandOutput::new(plain, json!({ "items": items })))
}

async fn add_payee(
    view: &PaymentView,
    name: &str,
    address: &str,
    force: bool,
) -> Result<CommandOutput, CliError> {
    let payee = Payee {
        name: check_name(name).map_err(payment_error)?,
        address: read_address(address)?,
        added: Timestamp::now(),
    };
    let store = &view.stores.payments;
    let known = KnownAddresses::load(&**store, &view.principal, Vec::new());
    let similar = known
        .await
        .map_err(payment_error)?
        .most_similar(payee.address);
    if let Some((other, theirs)) = similar
        && likeness(payee.address, theirs) == Some(Likeness::Poisoned)
        && !force
    {
        let message = format!(
            "this address begins and ends like that of {other} ({}); such addresses are made to be mistaken",
            shown_address(theirs)
        );
        return Err(CliError::usage(message)
            .with_hint("compare all digits; if it is right, add it with --force"));
    }
    let new = NewPayee {
        principal: view.principal.clone(),
        payee: payee.clone(),
    };
    if !store.add_payee(new).await? {
        let message = format!(
            "`{}` or its address is in the address book",
            one_line(&payee.name)
        );
        return Err(CliError::usage(message)
            .with_hint("`lango payment payees list` lists it; remove the old entry first"));
    }
    let text = format!(
        "Added {}, {}.\n",
        one_line(&payee.name),
        shown_address(payee.address)
    );
    Ok(CommandOutput::new(text, payee_json(&payee)))
}

pub(super) async fn wallet(
    view: &PaymentView,
    command: &WalletCommand,
) -> Result<CommandOutput, CliError> {
    match command {
        WalletCommand::List => list_wallets(view).await,
        WalletCommand::Create { name } => {
            let payments = view.payments()?;
            let made = payments.create_wallet(&view.principal, name).await;
            let made = made.map_err(payment_error)?;
            let text = format!(
                "Made the wallet {}: {}\nBack up the vault before money is sent to it.\n",
                one_line(&made.name),
                shown_address(made.address)
            );
            Ok(CommandOutput::new(text, wallet_json(&made)))
        }
        WalletCommand::Watch { name, address } => watch(view, name, address).await,
        WalletCommand::Unwatch { name } => {
            let store = &view.stores.payments;
            if store.unwatch_wallet(&view.principal, name).await? {
                let text = format!("No longer watches {}.\n", one_line(name));
                return Ok(CommandOutput::new(text, json!({ "removed": name })));
            }
            let wallets = store.watched_wallets(&view.principal).await?;
            let names = wallets.iter().map(|wallet| wallet.name.as_str());
            Err(unknown(
                "watched wallet",
                name,
                suggest::did_you_mean(name, names),
            ))
        }
    }
}

async fn list_wallets(view: &PaymentView) -> Result<CommandOutput, CliError> {
    let payments = view.payments()?;
    let wallets = payments
        .wallets(&view.principal)
        .await
        .map_err(payment_error)?;
    let mut plain = String::new();
    for wallet in &wallets {
        let name = styled(NAME, one_line(&wallet.name));
        let address = shown_address(wallet.address);
        let _ = writeln!(plain, "{name}  {address}  {}", wallet.kind.name());
    }
    if wallets.is_empty() {
        plain.push_str("There is no wallet. Make one with `lango payment wallet create`.\n");
    }
    let items: Vec<Value> = wallets.iter().map(wallet_json).collect();
    Ok(CommandOutput::new(plain, json!({ "items": items })))
}

async fn watch(view: &PaymentView, name: &str, address: &str) -> Result<CommandOutput, CliError> {
    let wallet = WatchedWallet {
        name: check_name(name).map_err(payment_error)?,
        address: read_address(address)?,
        added: Timestamp::now(),
    };
    let store = &view.stores.payments;
    if !store.watch_wallet(&view.principal, wallet.clone()).await? {
        let message = format!("there is already a wallet `{}`", one_line(&wallet.name));
        return Err(CliError::usage(message).with_hint("choose another name"));
    }
    let watched = Wallet {
        name: wallet.name,
        address: wallet.address,
        kind: WalletKind::WatchOnly,
    };
    let text = format!(
        "Watches {}: {}\n",
        one_line(&watched.name),
        shown_address(watched.address)
    );
    Ok(CommandOutput::new(text, wallet_json(&watched)))
}

fn read_address(text: &str) -> Result<AccountAddress, CliError> {
    let address = parse_address(text).map_err(|error| CliError::usage(error.to_string()))?;
    Ok(AccountAddress(address.into_array()))
}

fn unknown(noun: &str, name: &str, similar: Option<String>) -> CliError {
    let error = CliError::usage(format!("there is no {noun} `{}`", truncated_line(name, 80)));
    match similar {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn payee_json(payee: &Payee) -> Value {
    json!({ "name": payee.name, "address": shown_address(payee.address), "added": payee.added })
}

pub(super) fn wallet_json(wallet: &Wallet) -> Value {
    json!({
        "name": wallet.name,
        "address": shown_address(wallet.address),
        "kind": wallet.kind.name(),
    })
}
