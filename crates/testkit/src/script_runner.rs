//! Runs a script against the real engine and tells what happened.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use jiff::Timestamp;
use lango_domain::event::{
    ApprovalState, CallId, Decider, Event, EventBody, Principal, SessionId, TransferOutcome,
    TurnId, Update,
};
use lango_domain::hooks::{Advisor, ContextSource, Digest, DigestSource};
use lango_domain::model::{Model, ModelRequest};
use lango_domain::remote_agent::RemoteAgent;
use lango_domain::session::{HistoryWindow, SessionKeyRef, SessionStore, StoreError};
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

/// Everything that a story left behind.
pub struct ScriptOutcome {
    pub transcript: String,
    pub events: Vec<Arc<Event>>,
    pub requests: Vec<ModelRequest>,
    pub agents: Vec<String>,
    /// What the script had to say and was never asked for.
    pub unused_replies: Vec<String>,
    /// Whether what was shown is what the store holds.
    pub updates_match_store: bool,
}

/// Runs the script; must be called within a tokio runtime, whose clock should be paused.
pub async fn run_script(script: &Script) -> Result<ScriptOutcome, String> {
    run_script_with_store(script, Arc::new(InMemorySessionStore::default())).await
}

/// The same with another store.
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
    let mut shown: Vec<Arc<Event>> = turns.into_iter().flatten().filter_map(into_event).collect();
    shown.sort_by_key(|event| event.seq);
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
        updates_match_store: shown == events,
        events,
        requests,
        agents,
        unused_replies: model.unused_replies(),
    })
}

fn into_event(update: Update) -> Option<Arc<Event>> {
    match update {
        Update::Event(event) => Some(event),
        Update::Delta { .. } | Update::ToolOutputDelta { .. } | Update::StoreFailed(_) => None,
    }
}

fn build_team(script: &Script) -> Result<AgentTree, String> {
    let behaviours = |name: &str| {
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
            .map(|name| scripted_tool(name, behaviours(name)))
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
        .map(|(name, behaviour)| {
            let name = AgentName::new(name).map_err(|error| error.to_string())?;
            Ok((
                name,
                Arc::new(ScriptedRemote(behaviour.clone())) as Arc<dyn RemoteAgent>,
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
        approver: Some(ScriptedApprover::new(&script.approvals)),
        approval_policy: approval_policy(script)?,
        hooks: turn_hooks(script),
        remotes,
        limits: turn_limits(script)?,
        clock_and_ids: clock_and_ids(),
    })
}

fn turn_hooks(script: &Script) -> TurnHooks {
    let digests = script.digest.clone().map(|(through, text)| {
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
    let sources = script.contexts.iter().map(source).collect();
    TurnHooks {
        context_sources: sources,
        digest_source: digests,
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

/// The same clock and the same ids in every run.
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
        let wrong = || format!("no limit `{name}` can be {value}");
        let number = u32::try_from(*value)
            .ok()
            .and_then(std::num::NonZeroU32::new)
            .ok_or_else(wrong)?;
        match name.as_str() {
            "rounds" => limits.rounds = number,
            "calls" => limits.model_calls = number,
            "repeats" => limits.repeats = number,
            "seconds" => limits.seconds = number.into(),
            "tokens" => limits.tokens = Some(number.into()),
            _ => return Err(wrong()),
        }
    }
    Ok(limits)
}

async fn run_turn(runner: &Runner, turn: &UserTurn) -> Vec<Update> {
    let request = turn_request(turn);
    let mut stream = runner.run(request);
    let mut updates = Vec::new();
    let asked = Instant::now();
    let mut cancelled = false;
    loop {
        let patience = match turn.cancelled_after {
            Some(time) if !cancelled => (asked + time).saturating_duration_since(Instant::now()),
            // Whatever a cancelled turn has to do, it does within this.
            Some(_) => Duration::from_secs(1),
            None => Duration::from_secs(3600),
        };
        match tokio::time::timeout(patience, stream.next()).await {
            Ok(Some(update)) => updates.push(update),
            Ok(None) => return updates,
            Err(_) if cancelled || turn.cancelled_after.is_none() => {
                updates.push(Update::StoreFailed(StoreError(
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

/// What stands behind `piped:` came over a pipe.
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
                attachments: vec![("stdin".to_owned(), attached)],
                ..typed(text.trim())
            }
        }
        None => typed(&turn.text),
    }
}

/// What happened, one line each, and what the user saw as it came.
fn transcript(updates: &[Update]) -> String {
    let mut text = String::new();
    let mut shown: Vec<(String, String)> = Vec::new();
    for update in updates {
        match update {
            Update::Delta { author, text } => match shown.last_mut() {
                Some((last, so_far)) if last == author.as_str() => so_far.push_str(text),
                _ => shown.push((author.to_string(), text.clone())),
            },
            Update::ToolOutputDelta { .. } => {}
            Update::Event(event) => {
                if let Some(line) = event_line(event, updates) {
                    let _ = writeln!(text, "{line}");
                }
            }
            Update::StoreFailed(error) => _ = writeln!(text, "BROKEN {error}"),
        }
    }
    for (author, words) in shown {
        let _ = writeln!(text, "seen as it came, from {author}: {words:?}");
    }
    text
}

fn event_line(event: &Event, updates: &[Update]) -> Option<String> {
    let who = &event.author;
    Some(match &event.body {
        EventBody::User { text } => format!("user asks: {text}"),
        EventBody::Context { source, text } => {
            format!("  context from {source}: {}", truncate(text))
        }
        EventBody::Digest { through, text } => {
            format!("  digest of events up to {through}: {}", truncate(text))
        }
        EventBody::Note { text } => format!("{who} says in passing: {text}"),
        EventBody::Transfer {
            to,
            task,
            report_back,
            ..
        } => {
            let task = task
                .as_ref()
                .map_or(String::new(), |task| format!(": {task}"));
            let back = if *report_back { " (report back)" } else { "" };
            format!("{who} → {to}{task}{back}")
        }
        EventBody::TransferResult {
            id,
            outcome,
            detail,
            ..
        } => {
            let detail = if detail.is_empty() {
                String::new()
            } else {
                format!(" ({detail})")
            };
            format!(
                "{who} ← {} {}{detail}",
                transfer_target(id, updates),
                outcome_text(*outcome)
            )
        }
        EventBody::ToolCall { tool, args, .. } => format!("{who} calls {tool} {args}"),
        EventBody::ToolResult {
            ok: true,
            content,
            untrusted,
            ..
        } => {
            format!(
                "{who} gets {}{}",
                if *untrusted { "untrusted " } else { "" },
                truncate(content)
            )
        }
        EventBody::ToolResult {
            error,
            code,
            advice,
            ..
        } => {
            let code = code
                .and_then(|code| serde_json::to_value(code).ok())
                .unwrap_or_default();
            let error = truncate(error.as_deref().unwrap_or("?"));
            let advice = advice
                .as_ref()
                .map_or(String::new(), |advice| format!("; learned: {advice}"));
            format!(
                "{who} gets {}: {error}{advice}",
                code.as_str().unwrap_or("?")
            )
        }
        EventBody::Approval {
            tool,
            state: ApprovalState::Asked,
            tainted_by,
            shows,
            ..
        } => {
            let taint = if tainted_by.is_empty() {
                String::new()
            } else {
                format!(", after reading {}", tainted_by.join(", "))
            };
            let sent = shows
                .lines()
                .skip_while(|line| !line.starts_with("SENDS"))
                .nth(1);
            let sent = sent.map_or(String::new(), |sent| format!(", which sends {sent}"));
            format!("{who} asks the user about {tool}{taint}{sent}")
        }
        EventBody::Approval {
            state,
            by: None | Some(Decider::User),
            grant,
            ..
        } => {
            let grant = grant
                .as_ref()
                .map_or(String::new(), |grant| format!(", {grant:?}"));
            format!("  the user: {state:?}{grant}")
        }
        EventBody::Approval {
            state,
            by: Some(by),
            ..
        } => format!("  by {by:?}: {state:?}"),
        EventBody::Rejected { reason } => format!("{who} rejects: {reason}"),
        EventBody::Report { text } => format!("{who} reports: {}", truncate(text)),
        EventBody::Answer { text } => format!("{who} ANSWERS: {}", truncate(text)),
        EventBody::Usage(_) => return None,
        EventBody::Thought(thought) => format!("{who} thinks: {}", truncate(&thought.text)),
        EventBody::TurnDone => "done".to_owned(),
        EventBody::TurnFailed { code, message, .. } => format!("FAILED {code}: {message}"),
    })
}

fn transfer_target(call: &CallId, updates: &[Update]) -> String {
    let found = updates.iter().find_map(|update| match update {
        Update::Event(event) => match &event.body {
            EventBody::Transfer { id, to, .. } if id == call => Some(to.to_string()),
            _ => None,
        },
        _ => None,
    });
    found.unwrap_or_else(|| "?".to_owned())
}

fn outcome_text(outcome: TransferOutcome) -> &'static str {
    match outcome {
        TransferOutcome::Answered => "answered",
        TransferOutcome::Rejected => "rejected",
        TransferOutcome::Failed => "failed",
        TransferOutcome::Cancelled => "cancelled",
    }
}

fn truncate(text: &str) -> String {
    let line = text.replace('\n', "⏎");
    if line.chars().count() <= 160 {
        return line;
    }
    let head: String = line.chars().take(60).collect();
    format!("{head}… ({} bytes)", text.len())
}
