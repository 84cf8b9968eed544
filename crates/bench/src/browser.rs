//! `lango-bench browser`: tokens per page, time to the first outline, clicks, memory and start, compared with
//! Playwright MCP and chrome-devtools-mcp in one run.

mod own;
mod pages;
mod peer;
mod processes;
mod report;
mod subject;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use pages::PageServer;
use peer::{McpPeer, PeerKind};
use report::{PageResult, SubjectReport};
use subject::Subject;

/// Most tokens of the outline of any page.
const TOKEN_AIM: usize = 2_000;

/// The options of `browser`.
#[derive(clap::Args)]
pub struct BrowserBench {
    /// Folder of pages, NAME.html or NAME/source.html; by default the benchmark makes some.
    #[arg(long)]
    pages: Option<PathBuf>,
    /// Number of measured clicks.
    #[arg(long, default_value_t = 30)]
    clicks: usize,
    /// Folder with the installed peers; by default the one that `cargo xtask browser-peers` fills.
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Measure only Lango.
    #[arg(long)]
    alone: bool,
    /// Print JSON lines, one for each page and one for each program, instead of a table.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &BrowserBench) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(compare(options))
}

async fn compare(options: &BrowserBench) -> Result<()> {
    let pages = match &options.pages {
        Some(folder) => pages::load(folder)?,
        None => pages::make(),
    };
    let server = PageServer::start(pages).await?;
    let mut reports = vec![measure(Program::Own, &server, options.clicks).await?];
    if !options.alone {
        let folder = options.peers.clone().or_else(installed_peers);
        for kind in PeerKind::ALL {
            let found = folder.as_ref().and_then(|folder| kind.find(folder));
            let Some(script) = found else {
                eprintln!(
                    "{} is not installed, so it is not compared; `cargo xtask browser-peers` installs it",
                    kind.name()
                );
                continue;
            };
            let program = Program::Peer(kind, script);
            reports.push(measure(program, &server, options.clicks).await?);
        }
    }
    match options.json {
        true => report::print_json(&reports),
        false => report::print_table(&reports),
    }
    check_aims(&reports[0])
}

/// Fails if an outline is empty or too long. Times depend on the machine, so they are only printed.
fn check_aims(own: &SubjectReport) -> Result<()> {
    let is_missed = |page: &&PageResult| page.tokens.is_none_or(|count| count > TOKEN_AIM);
    let missed: Vec<_> = own.pages.iter().filter(is_missed).collect();
    if missed.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missed.iter().map(|page| page.name.as_str()).collect();
    bail!(
        "outlines without content or above {TOKEN_AIM} tokens: {}",
        names.join(", ")
    )
}

/// Returns the folder that `cargo xtask browser-peers` fills, next to this binary.
fn installed_peers() -> Option<PathBuf> {
    let binary = std::env::current_exe().ok()?;
    let folder = binary.parent()?.parent()?.join("peers/browser");
    folder.exists().then_some(folder)
}

/// A program to start and measure.
enum Program {
    Own,
    Peer(PeerKind, PathBuf),
}

impl Program {
    async fn start(self, server: &PageServer) -> Result<Subject> {
        Ok(match self {
            Self::Own => Subject::Own(own::Own::new()),
            Self::Peer(kind, script) => {
                let browser = own::browser_path()?;
                Subject::Peer(McpPeer::start(kind, &script, &browser, server).await?)
            }
        })
    }
}

async fn measure(program: Program, server: &PageServer, clicks: usize) -> Result<SubjectReport> {
    let began = Instant::now();
    let mut subject = program.start(server).await?;
    let text = subject.open(&server.click_url()).await?;
    let start_ms = milliseconds(began.elapsed());
    let memory_at_start = subject.memory();
    let click_ms = measure_clicks(&mut subject, &text, clicks).await?;
    let mut pages = Vec::new();
    for (name, url) in server.page_urls() {
        let began = Instant::now();
        let opened = subject.open(&url).await;
        let ms = milliseconds(began.elapsed());
        pages.push(PageResult::new(name, ms, opened)?);
    }
    let memory_after_pages = subject.memory();
    let name = subject.name();
    subject.close().await;
    Ok(SubjectReport {
        name,
        start_ms,
        click_ms,
        memory_at_start,
        memory_after_pages,
        pages,
    })
}

/// Clicks a button whose click changes a line of the page. Checks that every click happened once.
async fn measure_clicks(subject: &mut Subject, text: &str, clicks: usize) -> Result<Vec<f64>> {
    let mut button = subject
        .button(text)
        .with_context(|| format!("{} shows no button:\n{text}", subject.name()))?;
    let mut times = Vec::new();
    for number in 0..=clicks.max(1) {
        let began = Instant::now();
        let text = subject.click(&button).await?;
        // The first click warms up.
        if number > 0 {
            times.push(milliseconds(began.elapsed()));
        }
        button = subject.button(&text).unwrap_or(button);
    }
    let text = subject.look().await?;
    let wanted = format!("clicked {} times", clicks.max(1) + 1);
    if !text.contains(&wanted) {
        bail!("{} does not show \"{wanted}\":\n{text}", subject.name());
    }
    Ok(times)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
