//! `lango-bench vault`: kills a process inside `payment_send`, loses the answer of a paid request, and offers
//! hostile prices. Runs on a real chain on loopback; `cargo xtask peers` installs it.

pub mod chain;
mod resources;
mod wallet;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, keccak256};
use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_domain::payments::{PaymentId, PaymentQuery, PaymentState};
use lango_domain::{AgentName, Label, ToolContext, ToolOutputSink};
use lango_net::AddressPolicy;
use lango_payments::{LazyPaymentStore, PaymentParts, PaymentSettings, Payments};
use lango_store::{SqliteStore, StoreLocation};
use lango_testkit::usdc_chain::{USDC, UsdcChain};
use serde_json::json;

use crate::rng::Rng;
use wallet::BenchKeys;

/// The payee of all measurements.
const PAYEE: Address = Address::repeat_byte(0xb0);
/// In millionths: small enough for thousands of payments.
const AMOUNT: u64 = 1_000;

/// Arguments of the child process.
#[derive(clap::Args)]
pub struct VaultChild {
    #[arg(long)]
    store: PathBuf,
    #[arg(long)]
    url: String,
    /// The call whose payment is made.
    #[arg(long)]
    call: String,
    /// Report as ready before open payments are followed.
    #[arg(long)]
    early: bool,
}

/// Runs all measurements.
pub fn run(kills: usize) -> Result<()> {
    println!("{}", kill_payments(kills)?);
    let runtime = runtime()?;
    println!("{}", runtime.block_on(resources::lost_answer())?);
    println!("{}", runtime.block_on(resources::hostile_offers())?);
    Ok(())
}

/// Makes one payment with the tool. This is the process that is killed.
pub fn child(child: &VaultChild) -> Result<()> {
    runtime()?.block_on(async {
        let payments = open(&child.store, &child.url, &Arc::new(BenchKeys::default()))?;
        let tools = lango_payments::tools(&payments);
        let tool = tools.iter().find(|tool| tool.name == "payment_send");
        let tool = tool.context("the tool exists")?;
        let context = context(&child.call)?;
        let args = json!({ "to": PAYEE.to_checksum(None), "amount": "0.001" });
        // Open payments of killed processes are followed first. Some kills happen there, most in the payment.
        if !child.early {
            payments.reconcile_once().await;
        }
        // From here on the parent counts the time until the kill.
        println!("ready");
        let asked = tool.intent(context.clone(), args.clone()).await;
        asked.map_err(|error| anyhow::anyhow!(error.0))?;
        let paid = tool.call(context, args).await;
        paid.map_err(|error| anyhow::anyhow!(error.0))?;
        Ok(())
    })
}

fn kill_payments(kills: usize) -> Result<serde_json::Value> {
    let chain = UsdcChain::start();
    let keys = Arc::new(BenchKeys::default());
    chain.fund(keys.address(), 1_000_000_000);
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("ledger.sqlite");
    let started = Instant::now();
    // One payment without a kill: its time is the range of the kills.
    let (whole, _) = run_child(&store, &chain.url(), "whole", None)?;
    ensure!(
        chain.balance(PAYEE) == AMOUNT,
        "a payment without a kill is made"
    );
    let mut rng = Rng(7);
    let mut killed = 0;
    let micros = u64::try_from(whole.as_micros())?.max(2) * 11 / 10;
    for number in 0..kills {
        let after = Duration::from_micros(rng.next() % micros);
        let (_, was_killed) = run_child(&store, &chain.url(), &format!("c{number}"), Some(after))?;
        killed += usize::from(was_killed);
    }
    let payments = open(&store, &chain.url(), &keys)?;
    let counts = runtime()?.block_on(settle_all(&payments, &chain, kills))?;
    Ok(json!({
        "bench": "vault-kill",
        "kills": kills,
        "killed": killed,
        "payments": counts.rows,
        "confirmed": counts.confirmed,
        "never_signed": counts.unsigned,
        "doubled": counts.doubled,
        "lost": counts.lost,
        "ledger_equals_chain": counts.is_equal,
        "seconds": started.elapsed().as_secs(),
    }))
}

struct LedgerCounts {
    rows: usize,
    confirmed: usize,
    unsigned: usize,
    doubled: usize,
    lost: usize,
    is_equal: bool,
}

/// Starts once more, lets every authorization end, and compares the ledger with the chain.
async fn settle_all(payments: &Payments, chain: &UsdcChain, kills: usize) -> Result<LedgerCounts> {
    // A counter that a killed process claimed is free after a while; until then later payments wait.
    let until = Instant::now() + Duration::from_secs(90);
    while payments.reconcile().await?.open > 0 && Instant::now() < until {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    chain.pass_time(Duration::from_secs(1_000));
    payments.reconcile().await?;
    let query = PaymentQuery {
        principal: Principal::local(),
        state: None,
        limit: kills + 10,
    };
    let rows = payments.history(query).await?;
    let confirmed = rows
        .iter()
        .filter(|row| row.state == PaymentState::Confirmed)
        .count();
    let signed = rows.iter().filter(|row| row.bytes.is_some()).count();
    let uses = authorizations(chain);
    let paid = usize::try_from(chain.balance(PAYEE) / AMOUNT)?;
    Ok(LedgerCounts {
        rows: rows.len(),
        confirmed,
        unsigned: rows.len() - signed,
        doubled: paid.saturating_sub(confirmed),
        lost: signed - confirmed.min(signed),
        is_equal: paid == confirmed && uses == confirmed,
    })
}

/// Returns how many authorizations the chain has used.
fn authorizations(chain: &UsdcChain) -> usize {
    let topic = keccak256("AuthorizationUsed(address,bytes32)");
    let filter = json!([{ "address": USDC, "fromBlock": "0x0", "topics": [topic] }]);
    chain
        .rpc("eth_getLogs", filter)
        .as_array()
        .map_or(0, Vec::len)
}

/// Runs the child, and kills it some time after it began to pay. Returns the time that it paid, and whether it
/// was killed before its end.
fn run_child(
    store: &Path,
    url: &str,
    call: &str,
    kill_after: Option<Duration>,
) -> Result<(Duration, bool)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("vault-child")
        .arg("--store")
        .arg(store)
        .args(["--url", url, "--call", call])
        .args(call.ends_with('7').then_some("--early"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.stdout.take().context("the child has an output")?;
    BufReader::new(output).read_line(&mut String::new())?;
    let started = Instant::now();
    let Some(time) = kill_after else {
        ensure!(child.wait()?.success(), "the payment fails");
        return Ok((started.elapsed(), false));
    };
    std::thread::sleep(time);
    // SIGKILL: nothing is cleaned up.
    let _ = child.kill();
    let status = child.wait()?;
    Ok((started.elapsed(), status.signal().is_some()))
}

fn open(store: &Path, url: &str, keys: &Arc<BenchKeys>) -> Result<Arc<Payments>> {
    let store = SqliteStore::open(StoreLocation::File(store.to_path_buf()))?;
    payments(store, url, keys)
}

fn payments(store: SqliteStore, url: &str, keys: &Arc<BenchKeys>) -> Result<Arc<Payments>> {
    let mut settings = PaymentSettings {
        enabled: true,
        ..PaymentSettings::default()
    };
    settings.network.chain_id = 8453;
    settings.network.rpc_url = Some(url.to_owned());
    settings.limits.max_daily = "1000000".parse()?;
    settings.limits.max_per_payee = "1000000".parse()?;
    let payments = Payments::new(PaymentParts {
        store: LazyPaymentStore::ready(store.stores().payments),
        keys: Some(keys.clone()),
        settings,
        clock: Arc::new(Timestamp::now),
        new_id: Arc::new(|| PaymentId::new(lango_app::new_session().as_str())),
        resource_policy: AddressPolicy::Anywhere,
    })?;
    Ok(Arc::new(payments))
}

fn context(call: &str) -> Result<ToolContext> {
    Ok(ToolContext {
        session: SessionId::new("bench"),
        principal: Principal::local(),
        turn: TurnId::new("bench"),
        agent: AgentName::new("vault")?,
        call: CallId::new(call),
        label: Label::default(),
        typed_addresses: Vec::new(),
        output_sink: ToolOutputSink::disconnected(),
        redactor: Default::default(),
    })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}
