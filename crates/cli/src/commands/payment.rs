//! `lango payment …`: payments in USDC.

mod address_book;
mod fetch;
mod send;

use std::fmt::Write as _;

use jiff::Timestamp;
use lango_app::capability::payments::{PaymentError, Payments, shown_address, shown_ether};
use lango_app::open_payments;
use lango_domain::Stores;
use lango_domain::event::Principal;
use lango_domain::payments::{Payment, PaymentQuery, PaymentState};
use lango_text::sanitize::{one_line, truncated_line};
use serde_json::{Value, json};

use super::{CommandContext, runtime, with_damage_warnings};
use crate::args::{GlobalArgs, PaymentCommand};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

/// The configuration and the store of a command about payments.
struct PaymentView {
    context: CommandContext,
    stores: Stores,
    principal: Principal,
}

pub fn run(global: &GlobalArgs, command: &PaymentCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let stores = context.stores.open()?;
    let view = PaymentView {
        context,
        stores,
        principal: Principal::local(),
    };
    let output = runtime()?.block_on(async {
        match command {
            PaymentCommand::Send(args) => send::send(&view, args).await,
            PaymentCommand::Balance => balance(&view).await,
            PaymentCommand::History { state, limit } => {
                history(&view, state.as_deref(), limit.get()).await
            }
            PaymentCommand::Show { id } => show(&view, id).await,
            PaymentCommand::Limits => limits(&view).await,
            PaymentCommand::Info => info(&view).await,
            PaymentCommand::Wallet(command) => address_book::wallet(&view, command).await,
            PaymentCommand::Payees(command) => address_book::payees(&view, command).await,
            PaymentCommand::Fetch(args) => fetch::fetch(&view, args).await,
        }
    })?;
    Ok(with_damage_warnings(output, &view.stores))
}

impl PaymentView {
    fn payments(&self) -> Result<Payments, CliError> {
        let CommandContext { loaded, stores, .. } = &self.context;
        open_payments(loaded, stores).map_err(payment_error)
    }

    /// Compares the ledger with the chain. The ledger is shown even if that is not possible.
    async fn reconcile(&self) -> Vec<String> {
        let Ok(payments) = self.payments() else {
            return Vec::new();
        };
        match payments.reconcile().await {
            Ok(report) if report.failed > 0 => {
                vec![format!("{} payments could not be followed", report.failed)]
            }
            Ok(_) => Vec::new(),
            Err(error) => vec![format!(
                "the ledger was not compared with the chain: {error}"
            )],
        }
    }
}

/// Sorts an error by who can act on it.
fn payment_error(error: PaymentError) -> CliError {
    let message = error.to_string();
    match error {
        PaymentError::Store(error) => error.into(),
        PaymentError::OverLimit { .. } => {
            CliError::limit(message).with_hint("see `lango payment limits`")
        }
        PaymentError::Chain(_) | PaymentError::Refused(_) | PaymentError::NotPending { .. } => {
            CliError::run_failed(message)
        }
        PaymentError::UnknownPayee { .. } => {
            CliError::usage(message).with_hint("`lango payment payees list` lists the address book")
        }
        PaymentError::NoNode => CliError::usage(message)
            .with_hint("for example --set payment.network.rpcUrl=http://127.0.0.1:8545"),
        _ => CliError::usage(message),
    }
}

async fn balance(view: &PaymentView) -> Result<CommandOutput, CliError> {
    let payments = view.payments()?;
    let wallet = payments
        .wallet(&view.principal)
        .await
        .map_err(payment_error)?;
    let balance = payments.balance(wallet).await.map_err(payment_error)?;
    let (network, ether) = (payments.network(), shown_ether(balance.ether));
    let plain = format!(
        "{}  {} USDC on {}\n{}\n",
        styled(NAME, one_line(&balance.wallet.name)),
        balance.usdc,
        network.name,
        styled(DIM, format!("{ether} ETH for network fees"))
    );
    let json = json!({
        "wallet": balance.wallet.name,
        "address": shown_address(balance.wallet.address),
        "network": network.name,
        "chain": network.chain_id,
        "usdc": balance.usdc,
        "eth": ether,
    });
    Ok(CommandOutput::new(plain, json))
}

async fn history(
    view: &PaymentView,
    state: Option<&str>,
    limit: usize,
) -> Result<CommandOutput, CliError> {
    let state = state.map(parse_state).transpose()?;
    let warnings = view.reconcile().await;
    let query = PaymentQuery {
        principal: view.principal.clone(),
        state,
        limit,
    };
    let payments = view.stores.payments.payments(query).await?;
    let mut plain = String::new();
    for payment in &payments {
        let terms = &payment.terms;
        let _ = writeln!(
            plain,
            "{}  {} USDC to {}  {}  {}",
            styled(NAME, &terms.id),
            terms.amount,
            payee_text(payment),
            payment.state.name(),
            styled(DIM, local_time(terms.created)),
        );
        let purpose = truncated_line(terms.purpose.text(), 100);
        if !purpose.is_empty() {
            let _ = writeln!(plain, "    {purpose}");
        }
    }
    if payments.is_empty() {
        plain.push_str("There are no payments.\n");
    }
    let items: Vec<Value> = payments.iter().map(payment_json).collect();
    Ok(CommandOutput::new(plain, json!({ "items": items })).with_warnings(warnings))
}

fn parse_state(name: &str) -> Result<PaymentState, CliError> {
    let found = PaymentState::ALL
        .into_iter()
        .find(|state| state.name() == name);
    found.ok_or_else(|| {
        let names = PaymentState::ALL.map(PaymentState::name).join(", ");
        let shown = truncated_line(name, 40);
        CliError::usage(format!(
            "there is no state `{shown}`; expected one of {names}"
        ))
    })
}

async fn show(view: &PaymentView, id: &str) -> Result<CommandOutput, CliError> {
    let warnings = view.reconcile().await;
    let payment = find_payment(view, id).await?;
    Ok(receipt(&payment).with_warnings(warnings))
}

async fn find_payment(view: &PaymentView, id: &str) -> Result<Payment, CliError> {
    let query = PaymentQuery {
        principal: view.principal.clone(),
        state: None,
        limit: 10_000,
    };
    let all = view.stores.payments.payments(query).await?;
    let is_part = |text: &str| id.len() >= 4 && (text.starts_with(id) || text.ends_with(id));
    let mut found = all.into_iter().filter(|payment| {
        let text = payment.terms.id.as_str();
        text == id || is_part(text)
    });
    match (found.next(), found.next()) {
        (Some(payment), None) => Ok(payment),
        _ => {
            let shown = truncated_line(id, 60);
            Err(
                CliError::usage(format!("there is no payment `{shown}`, or several"))
                    .with_hint("`lango payment history` lists the payments"),
            )
        }
    }
}

async fn limits(view: &PaymentView) -> Result<CommandOutput, CliError> {
    let settings = view.context.loaded.settings.payment.limits;
    let store = &view.stores.payments;
    let used = store
        .limit_use(&view.principal, None, Timestamp::now())
        .await?
        .day;
    let left = settings.max_daily.saturating_sub(used);
    let unasked = match settings.auto_approve_below.is_zero() {
        true => "nothing: every payment is asked about".to_owned(),
        false => format!(
            "below {} USDC, to payees of the address book",
            settings.auto_approve_below
        ),
    };
    let plain = format!(
        "one payment      at most {} USDC\n24 hours         {left} of {} USDC left\none payee        at most {} USDC in 24 \
        hours\nwithout asking   {unasked}\n",
        settings.max_per_tx, settings.max_daily, settings.max_per_payee
    );
    let json = json!({
        "max_per_payment": settings.max_per_tx,
        "max_daily": settings.max_daily,
        "max_per_payee": settings.max_per_payee,
        "auto_approve_below": settings.auto_approve_below,
        "used": used,
        "left": left,
    });
    Ok(CommandOutput::new(plain, json))
}

async fn info(view: &PaymentView) -> Result<CommandOutput, CliError> {
    let settings = &view.context.loaded.settings.payment;
    let network = settings
        .network()
        .map_err(|error| payment_error(error.into()))?;
    let (node, wallets) = match view.payments() {
        Ok(payments) => {
            let checked = payments.chain().verify().await;
            let node = checked.map_or_else(|error| error.to_string(), |()| "ready".to_owned());
            let wallets = payments
                .wallets(&view.principal)
                .await
                .map_err(payment_error)?;
            (node, wallets)
        }
        Err(_) => (
            "no node: payment.network.rpcUrl is not set".to_owned(),
            Vec::new(),
        ),
    };
    let mut plain = format!(
        "network  {} (chain {})\nUSDC     {}\nnode     {node}\nenabled  {}\n",
        network.name, network.chain_id, network.usdc, settings.enabled
    );
    for wallet in &wallets {
        let _ = writeln!(
            plain,
            "wallet   {}  {}  {}",
            one_line(&wallet.name),
            shown_address(wallet.address),
            wallet.kind.name()
        );
    }
    let wallets: Vec<Value> = wallets.iter().map(address_book::wallet_json).collect();
    let json = json!({
        "network": network.name,
        "chain": network.chain_id,
        "usdc": network.usdc.to_string(),
        "node": node,
        "enabled": settings.enabled,
        "wallets": wallets,
    });
    Ok(CommandOutput::new(plain, json))
}

/// Returns the receipt of a payment, as far as it came.
fn receipt(payment: &Payment) -> CommandOutput {
    let terms = &payment.terms;
    let mut plain = format!(
        "{} {} USDC to {}\n",
        styled(NAME, state_text(payment.state)),
        terms.amount,
        payee_text(payment)
    );
    let mut line = |name: &str, value: &str| _ = writeln!(plain, "  {name:<12} {value}");
    line("payment", terms.id.as_str());
    line("time", &local_time(terms.created));
    line("from", &shown_address(terms.from));
    line("to", &shown_address(terms.to));
    line("network", &network_name(terms.chain));
    if let Some(transaction) = &payment.transaction {
        line("transaction", transaction);
    }
    if let Some(block) = payment.block {
        line("block", &block.to_string());
    }
    let purpose = truncated_line(terms.purpose.text(), 200);
    if !purpose.is_empty() {
        line("purpose", &purpose);
    }
    if let Some(reason) = &payment.reason {
        line("note", &one_line(reason));
    }
    CommandOutput::new(plain, payment_json(payment))
}

fn state_text(state: PaymentState) -> &'static str {
    match state {
        PaymentState::Confirmed => "Paid",
        PaymentState::Signed | PaymentState::Sent => "On its way:",
        PaymentState::Reverted => "Refused by the token's contract:",
        PaymentState::Expired => "Not paid:",
        PaymentState::Intended | PaymentState::Approved => "Not paid yet:",
    }
}

fn payee_text(payment: &Payment) -> String {
    match &payment.terms.payee {
        Some(name) => one_line(name),
        None => shown_address(payment.terms.to),
    }
}

fn network_name(chain: u64) -> String {
    match lango_app::capability::payments::Network::find(chain, None) {
        Ok(network) => network.name.to_owned(),
        Err(_) => format!("chain {chain}"),
    }
}

fn local_time(at: Timestamp) -> String {
    let zoned = at.to_zoned(jiff::tz::TimeZone::system());
    zoned.strftime("%Y-%m-%d %H:%M").to_string()
}

fn payment_json(payment: &Payment) -> Value {
    let terms = &payment.terms;
    json!({
        "id": terms.id,
        "at": terms.created,
        "to": shown_address(terms.to),
        "payee": terms.payee,
        "amount": terms.amount,
        "network": network_name(terms.chain),
        "state": payment.state,
        "transaction": payment.transaction,
        "purpose": terms.purpose.text(),
        "from": shown_address(terms.from),
        "block": payment.block,
        "reason": payment.reason,
        "digest": terms.digest.to_string(),
    })
}
