//! Runs a script against the real engine and returns what happened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::event::{Event, Principal, SessionId, TurnId, Update};
use lango_domain::hooks::{Advisor, ContextSource, Digest, DigestSource};
use lango_domain::model::{Model, ModelRequest};
use lango_domain::remote_agent::RemoteAgent;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore};
use lango_domain::{AgentName, AgentTree, Label, LabeledText, TeamMode};
use lango_engine::{
    ApprovalPolicy, ClockAndIds, InMemorySessionStore, Models, Runner, RunnerParts, TurnHooks,
    TurnLimits, TurnRequest,
};
use lango_team::{Config, RemoteCard, build_agent_tree};
use tokio::time::Instant;

use crate::script::{Script, UserTurn};
use crate::scripted::{
    ScriptedAdvisor, ScriptedApprover, ScriptedDigest, ScriptedModel, ScriptedRemote,
    ScriptedSource, scripted_tool,
};
use crate::transcript::transcript;

/// The outcome of running a script.
pub struct ScriptOutcome {
    pub transcript: String,
    pub events: Vec<Arc<Event>>,
    pub requests: Vec<ModelRequest>,
    pub agents: Vec<String>,
    /// Replies of the script that were not requested.
    pub unused_replies: Vec<String>,
    /// True if the published events equal the stored ones.
    pub updates_match_store: bool,
}

/// Runs a script. Must be called within a tokio runtime, whose clock should be paused.
pub async fn run_script(script: &Script) -> Result<ScriptOutcome, String> {
    run_script_with_store(script, Arc::new(InMemorySessionStore::default())).await
}

/// Runs a script on another store.
pub async fn run_script_with_store(
    script: &Script,
    store: Arc<dyn SessionStore>,
) -> Result<ScriptOutcome, String> {
    let tree = build_team(script)?;
    let agents = tree.agents().map(|agent| agent.name.to_string()).collect();
    let model = Arc::new(ScriptedModel::new(
        script.replies.clone(),
        script.window.unwrap_or(128_000),
    ));
    let runner = Runner::new(runner_parts(
        script,
        tree,
        Arc::clone(&model) as Arc<dyn Model>,
        Arc::clone(&store),
    )?);
    let turns: Vec<Vec<Update>> = if script.parallel {
        join_all(script.turns.iter().map(|turn| run_turn(&runner, turn))).await
    } else {
        let mut turns = Vec::new();
        for turn in &script.turns {
            turns.push(run_turn(&runner, turn).await);
        }
        turns
    };
    let transcript = turns
        .iter()
        .map(|updates| transcript(updates))
        .collect::<Vec<_>>()
        .join("\n");
    let mut published: Vec<Arc<Event>> =
        turns.into_iter().flatten().filter_map(into_event).collect();
    published.sort_by_key(|event| event.seq);
    let key = SessionKeyRef {
        session: &SessionId::new("s"),
        principal: &Principal::local(),
    };
    let events = store
        .load(key, HistoryWindow::Everything)
        .await
        .map_err(|error| error.to_string())?;
    let requests = model.requests();
    let transcript = format!("{transcript}\n{} model calls\n", requests.len());
    Ok(ScriptOutcome {
        transcript,
        updates_match_store: published == events,
        events,
        requests,
        agents,
        unused_replies: model.unused_replies(),
    })
}

/// Returns a runner for the team of a script, with another model or store than [`run_script`].
pub fn script_runner(
    script: &Script,
    model: Arc<dyn Model>,
    store: Arc<dyn SessionStore>,
) -> Result<Runner, String> {
    let tree = build_team(script)?;
    Ok(Runner::new(runner_parts(script, tree, model, store)?))
}

fn into_event(update: Update) -> Option<Arc<Event>> {
    match update {
        Update::Event(event) => Some(event),
        Update::Delta { .. } | Update::ToolOutputDelta { .. } | Update::StoreFailed(_) => None,
    }
}

fn build_team(script: &Script) -> Result<AgentTree, String> {
    let behaviors = |name: &str| {
        script
            .behaviors
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let cards = script.remotes.iter().map(|(name, _)| {
        let name = AgentName::new(name).map_err(|error| error.to_string())?;
        Ok(RemoteCard {
            description: format!("Does {name} work elsewhere."),
            name,
        })
    });
    build_agent_tree(Config {
        mode: if script.single {
            TeamMode::Single
        } else {
            TeamMode::Multi
        },
        tools: script
            .tools
            .iter()
            .map(|name| scripted_tool(name, behaviors(name)))
            .collect(),
        remote_agents: cards.collect::<Result<_, String>>()?,
        ..Config::default()
    })
    .map_err(|error| error.to_string())
}

fn runner_parts(
    script: &Script,
    tree: AgentTree,
    model: Arc<dyn Model>,
    store: Arc<dyn SessionStore>,
) -> Result<RunnerParts, String> {
    let remotes: BTreeMap<AgentName, Arc<dyn RemoteAgent>> = script
        .remotes
        .iter()
        .map(|(name, behavior)| {
            let name = AgentName::new(name).map_err(|error| error.to_string())?;
            Ok((
                name,
                Arc::new(ScriptedRemote(behavior.clone())) as Arc<dyn RemoteAgent>,
            ))
        })
        .collect::<Result<_, String>>()?;
    Ok(RunnerParts {
        tree,
        models: Models {
            default: model,
            per_agent: BTreeMap::new(),
        },
        store,
        blobs: Arc::<InMemorySessionStore>::default(),
        approver: Some(ScriptedApprover::new(&script.approvals)),
        approval_policy: approval_policy(script)?,
        hooks: turn_hooks(script),
        secrets: None,
        remotes,
        limits: turn_limits(script)?,
        clock_and_ids: clock_and_ids(),
    })
}

fn turn_hooks(script: &Script) -> TurnHooks {
    let digest_source = script.digest.clone().map(|(through, text)| {
        Arc::new(ScriptedDigest(Digest {
            through,
            text,
            label: Label::default(),
        })) as Arc<dyn DigestSource>
    });
    let advisor = script
        .advice
        .clone()
        .map(|text| Arc::new(ScriptedAdvisor(text)) as Arc<dyn Advisor>);
    let source = |(name, text): &(String, String)| {
        Arc::new(ScriptedSource {
            name: name.clone(),
            text: text.clone(),
        }) as Arc<dyn ContextSource>
    };
    TurnHooks {
        context_sources: script.contexts.iter().map(source).collect(),
        digest_source,
        advisor,
        after_turn: Vec::new(),
    }
}

fn approval_policy(script: &Script) -> Result<ApprovalPolicy, String> {
    let rule = |(decision, tool, subject): &(String, String, String)| serde_json::json!({ "tool": tool, "match": subject, "decision": decision });
    let rules: Vec<_> = script.rules.iter().map(rule).collect();
    let mut settings = serde_json::json!({ "rules": rules, "allowHosts": script.allow_hosts });
    for (level, decision) in &script.levels {
        settings[level] = decision.as_str().into();
    }
    serde_json::from_value(settings).map_err(|error| error.to_string())
}

/// Returns a clock and ids that are the same in every run.
pub fn clock_and_ids() -> ClockAndIds {
    let count = AtomicUsize::new(0);
    ClockAndIds {
        now: Arc::new(|| Timestamp::UNIX_EPOCH),
        new_turn_id: Arc::new(move || {
            TurnId::new(format!("t{}", count.fetch_add(1, Ordering::Relaxed) + 1))
        }),
    }
}

fn turn_limits(script: &Script) -> Result<TurnLimits, String> {
    let mut limits = TurnLimits::default();
    for (name, value) in &script.limits {
        let invalid = || format!("invalid limit: {name} = {value}");
        let number = u32::try_from(*value)
            .ok()
            .and_then(std::num::NonZeroU32::new)
            .ok_or_else(invalid)?;
        match name.as_str() {
            "rounds" => limits.rounds = number,
            "calls" => limits.model_calls = number,
            "repeats" => limits.repeats = number,
            "seconds" => limits.seconds = number.into(),
            "tokens" => limits.tokens = Some(number.into()),
            _ => return Err(invalid()),
        }
    }
    Ok(limits)
}

async fn run_turn(runner: &Runner, turn: &UserTurn) -> Vec<Update> {
    let request = turn_request(turn);
    let mut stream = runner.run(request);
    let mut updates = Vec::new();
    let started = Instant::now();
    let mut cancelled = false;
    loop {
        let timeout = match turn.cancelled_after {
            Some(time) if !cancelled => (started + time).saturating_duration_since(Instant::now()),
            // A cancelled turn has to end within this time.
            Some(_) => Duration::from_secs(1),
            None => Duration::from_secs(3600),
        };
        match tokio::time::timeout(timeout, stream.next()).await {
            Ok(Some(update)) => updates.push(update),
            Ok(None) => return updates,
            Err(_) if cancelled || turn.cancelled_after.is_none() => {
                updates.push(Update::StoreFailed(StoreError::Other(
                    "the turn did not end".to_owned(),
                )));
                return updates;
            }
            Err(_) => {
                stream.cancel();
                cancelled = true;
            }
        }
    }
}

/// Returns the request of a turn. Text after `piped:` comes from standard input.
fn turn_request(turn: &UserTurn) -> TurnRequest {
    let typed = |text: &str| TurnRequest::from_user(SessionId::new("s"), Principal::local(), text);
    let label = || Label::untrusted("standard input").joined(&Label::private("standard input"));
    match turn.text.split_once("piped: ") {
        Some(("", piped)) => TurnRequest {
            label: label(),
            ..typed(piped)
        },
        Some((text, piped)) => {
            let attached = LabeledText {
                text: piped.to_owned(),
                label: label(),
            };
            TurnRequest {
                context: vec![("stdin".to_owned(), attached)],
                ..typed(text.trim())
            }
        }
        None => typed(&turn.text),
    }
}
