use lango_domain::{Safety, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct FsCountArgs {
    /// Path of a text file, relative to the workspace.
    path: String,
}

fn fs_count() -> Tool {
    Tool::new(
        "fs_count",
        "Counts the lines of a text file.",
        Safety::Safe,
        |_context, args: FsCountArgs| async move {
            let text = std::fs::read_to_string(&args.path)
                .map_err(|error| ToolError(format!("cannot read {}: {error}", args.path)))?;
            Ok(format!("{} lines", text.lines().count()))
        },
    )
    .with_private_output()
    .with_phrases(["count [the] lines of {path:word}"])
}

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use lango_domain::event::{EventBody, Principal, SessionId, TurnId, Update};
use lango_engine::{
    ApprovalPolicy, ClockAndIds, InMemorySessionStore, Models, Runner, RunnerParts, TurnHooks,
    TurnLimits, TurnRequest,
};
use lango_models::offline::OfflineModel;
use lango_team::{BuildError, Config, build_agent_tree};

/// Runs one turn of a team that has only this tool, with the offline model.
async fn ask(text: &str) -> Result<Vec<EventBody>, BuildError> {
    let config = Config {
        tools: vec![fs_count()],
        ..Config::default()
    };
    let runner = Runner::new(RunnerParts {
        tree: build_agent_tree(config)?,
        models: Models {
            default: Arc::new(OfflineModel),
            per_agent: BTreeMap::new(),
        },
        store: Arc::new(InMemorySessionStore::default()),
        blobs: Arc::new(InMemorySessionStore::default()),
        approver: None,
        approval_policy: ApprovalPolicy::default(),
        hooks: TurnHooks::default(),
        secrets: None,
        remotes: BTreeMap::new(),
        limits: TurnLimits::default(),
        clock_and_ids: ClockAndIds {
            now: Arc::new(jiff::Timestamp::now),
            new_turn_id: Arc::new(|| TurnId::new("turn-1")),
        },
    });
    let request = TurnRequest::from_user(SessionId::new("demo"), Principal::local(), text);
    let updates: Vec<Update> = runner.run(request).collect().await;
    let bodies = updates.into_iter().filter_map(|update| match update {
        Update::Event(event) => Some(event.body.clone()),
        _ => None,
    });
    Ok(bodies.collect())
}

#[tokio::main]
async fn main() -> Result<(), BuildError> {
    for body in ask("count the lines of Cargo.toml").await? {
        println!("{body:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_offline_model_calls_the_tool() {
    let events = ask("count the lines of Cargo.toml").await.unwrap();
    let output = events.iter().find_map(|body| match body {
        EventBody::ToolResult {
            ok: true, content, ..
        } => Some(content.as_str()),
        _ => None,
    });
    let lines = include_str!("../Cargo.toml").lines().count();
    assert_eq!(output, Some(format!("{lines} lines").as_str()));
}
