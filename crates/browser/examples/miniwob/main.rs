//! Runs tasks of MiniWoB++ with scripted policies against the browser's tools: `cargo xtask eval browser`.
//!
//! The policies know the wording of each task, but see only what the tools return and act only through
//! them, so the score is that of the tools. Reading the state of the page and its score is left to this file.

#![expect(clippy::print_stdout, reason = "the report is printed")]

mod element;
mod episode;
mod policies;
mod report;
mod server;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use episode::Episode;
use lango_browser::{BrowserOptions, BrowserSettings, Navigator, NavigatorParts, tools};
use lango_domain::Tool;
use lango_net::AddressPolicy;
use lango_testkit::tool_context_for;
use policies::{run_policy, tasks};
use report::{Report, TaskResult};
use serde_json::json;

/// Longest time of an episode.
const EPISODE_LIMIT: Duration = Duration::from_secs(30);
/// Least score of the page at which an episode counts as passed.
const LEAST_REWARD: f64 = 0.8;

/// The tasks to run, and the form of the report.
struct Options {
    folder: PathBuf,
    words: Vec<String>,
    seeds: u32,
    json: bool,
    /// Few tasks with few seeds, for tests.
    is_quick: bool,
}

fn parse_options() -> Result<Options, String> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("expected the folder html of MiniWoB++")?;
    let mut options = Options {
        folder: PathBuf::from(folder),
        words: Vec::new(),
        seeds: 10,
        json: false,
        is_quick: false,
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => options.json = true,
            "--quick" => (options.is_quick, options.seeds) = (true, 2),
            "--seeds" => {
                let count = arguments.next().and_then(|text| text.parse().ok());
                let count = count.filter(|count| (1..=1000).contains(count));
                options.seeds = count.ok_or("expected --seeds N, from 1 to 1000")?;
            }
            flag if flag.starts_with('-') => return Err(format!("unknown option {flag}")),
            _ => options.words.push(argument),
        }
    }
    Ok(options)
}

/// Tasks of the quick run: one of each kind of policy.
const QUICK_TASKS: [&str; 10] = [
    "choose-date-easy",
    "click-button",
    "click-color",
    "click-menu",
    "click-shape",
    "drag-box",
    "email-inbox",
    "enter-text",
    "highlight-text",
    "use-slider",
];

fn selected_tasks(options: &Options) -> Vec<&'static str> {
    let is_selected = |task: &&str| match options.is_quick {
        true => QUICK_TASKS.contains(task),
        false => options.words.is_empty() || options.words.iter().any(|word| task.contains(word)),
    };
    tasks().into_iter().filter(is_selected).collect()
}

async fn run_episode(
    tools: &[Tool],
    address: &str,
    task: &str,
    seed: u32,
) -> Result<Duration, String> {
    let mut episode = Episode {
        tools,
        context: tool_context_for("navigator"),
        task: String::new(),
    };
    let url = format!("{address}/miniwob/{task}.html");
    episode
        .call("browser_navigate", json!({ "url": url }))
        .await?;
    let script = format!(
        "Math.seedrandom({seed}); core.EPISODE_MAX_TIME = 60000; core.startEpisodeReal(); \
         (said => said.utterance ?? said)(core.getUtterance())"
    );
    let started = episode
        .act(json!({ "action": "eval", "text": script }))
        .await?;
    let said = started.strip_prefix("result: ").unwrap_or_default();
    said.lines()
        .next()
        .unwrap_or_default()
        .clone_into(&mut episode.task);
    let start = Instant::now();
    let run = tokio::time::timeout(EPISODE_LIMIT, run_policy(task, &episode)).await;
    let took = start.elapsed();
    let in_task = |error: String| format!("{error} (task: {})", episode.task);
    run.map_err(|_late| in_task("too slow".to_owned()))?
        .map_err(in_task)?;
    let script = json!({ "action": "eval", "text": "`reward ${WOB_RAW_REWARD_GLOBAL}`" });
    let result = episode.act(script).await?;
    let reward = result.strip_prefix("result: reward ");
    let reward = reward.and_then(|rest| rest.lines().next()?.parse::<f64>().ok());
    match reward {
        Some(reward) if reward >= LEAST_REWARD => Ok(took),
        reward => Err(in_task(format!("reward {reward:?}"))),
    }
}

async fn run_task(tools: &[Tool], address: &str, task: &'static str, seeds: u32) -> TaskResult {
    let mut result = TaskResult::new(task);
    for seed in 0..seeds {
        match run_episode(tools, address, task, seed).await {
            Ok(took) => result.times.push(took),
            Err(error) => result.errors.push(format!("seed {seed}: {error}")),
        }
    }
    result
}

fn navigator() -> Arc<Navigator> {
    Navigator::new(NavigatorParts {
        options: BrowserOptions {
            settings: BrowserSettings {
                allow_eval: true,
                ..BrowserSettings::default()
            },
            policy: AddressPolicy::Anywhere,
            variables: std::env::vars_os().collect(),
            temp_folder: std::env::temp_dir(),
        },
        read_file: Arc::new(|_| Err("no files".to_owned())),
        read_pdf: Arc::new(|_| Err("no PDF files".to_owned())),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = parse_options()?;
    let selected = selected_tasks(&options);
    if selected.is_empty() {
        return Err(format!("no task has a name with {}", options.words.join(" or ")).into());
    }
    let address = server::start(options.folder.clone()).await?;
    let navigator = navigator();
    let tools = tools(&navigator);
    let mut report = Report::new(options.seeds);
    if !options.json {
        println!("{}", Report::HEAD);
    }
    for task in selected {
        let result = run_task(&tools, &address, task, options.seeds).await;
        if !options.json {
            println!("{}", report.row(&result));
        }
        report.tasks.push(result);
    }
    navigator.close().await;
    let is_whole = options.words.is_empty() && !options.is_quick;
    match options.json {
        true => println!("{}", report.to_json()),
        false => println!("\n{}", report.summary()),
    }
    match report.missed_aims(is_whole) {
        missed if missed.is_empty() => Ok(()),
        missed => Err(missed.join("; ").into()),
    }
}
