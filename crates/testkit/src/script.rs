//! The script of a `.turn` file: requests of the user, replies of the models, behavior of the tools.
//!
//! `docs/turn-files.md` describes the format.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use crate::ONE_TOOL_PER_PREFIX;

#[derive(Clone, Debug, Default)]
pub struct Script {
    pub single: bool,
    pub tools: Vec<String>,
    pub limits: HashMap<String, u64>,
    pub behaviors: HashMap<String, Vec<ToolBehavior>>,
    pub remotes: Vec<(String, RemoteBehavior)>,
    pub contexts: Vec<(String, String)>,
    /// The last event that the digest covers, and its text.
    pub digest: Option<(u64, String)>,
    /// The advice for failed calls.
    pub advice: Option<String>,
    pub approvals: Vec<String>,
    /// Decision, tool and subject.
    pub rules: Vec<(String, String, String)>,
    pub allow_hosts: Vec<String>,
    /// Levels and their decisions.
    pub levels: Vec<(String, String)>,
    pub window: Option<usize>,
    pub turns: Vec<UserTurn>,
    /// True if all turns are requested at once.
    pub parallel: bool,
    pub replies: HashMap<String, Vec<ScriptedReply>>,
}

#[derive(Clone, Debug)]
pub struct UserTurn {
    pub text: String,
    /// The time after the request at which the user cancels.
    pub cancelled_after: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ToolBehavior {
    Returns(String),
    Fails(String),
    Panics,
    Hangs,
    Takes(Duration),
    /// Arguments by name and JSON type.
    Wants(Vec<(String, String)>),
    Moderate,
    Dangerous,
    Untrusted,
    Private,
    /// Sends its first argument to this host.
    Sends(String),
}

impl ToolBehavior {
    pub fn sends_to(&self) -> Option<String> {
        match self {
            Self::Sends(to) => Some(to.clone()),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum RemoteBehavior {
    Says(String),
    Fails(String),
    Hangs,
    Panics,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedReply {
    pub parts: Vec<ScriptedPart>,
    /// Repeated from here on.
    pub always: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ScriptedPart {
    Text(Vec<String>),
    Call {
        id: Option<String>,
        name: String,
        arguments: Value,
    },
    Usage(u64),
    Thought(String),
    Error(String),
    BreaksOff,
    Hangs,
    Panics,
}

impl Script {
    /// Parses a script. The error quotes the invalid line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self {
            tools: ONE_TOOL_PER_PREFIX.map(str::to_owned).to_vec(),
            ..Self::default()
        };
        for line in text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            script
                .parse_line(first, rest.trim())
                .ok_or_else(|| format!("invalid line `{line}`"))?;
        }
        Ok(script)
    }

    fn parse_line(&mut self, first: &str, rest: &str) -> Option<()> {
        match first {
            "mode" => self.single = rest == "single",
            "tools" => self.tools = rest.split_whitespace().map(str::to_owned).collect(),
            "window" => self.window = Some(rest.parse().ok()?),
            "together" => self.parallel = true,
            "approve" => self.approvals.push(rest.to_owned()),
            "allow-host" => self.allow_hosts.push(rest.to_owned()),
            "rule" => {
                let (decision, call) = rest.split_once(' ')?;
                let (tool, subject) = call.trim().split_once(' ').unwrap_or((call, "*"));
                self.rules.push((
                    decision.to_owned(),
                    tool.to_owned(),
                    subject.trim().to_owned(),
                ));
            }
            "level" => {
                let (level, decision) = rest.split_once(' ')?;
                self.levels
                    .push((level.to_owned(), decision.trim().to_owned()));
            }
            "limit" => {
                let (name, value) = rest.split_once(' ')?;
                self.limits
                    .insert(name.to_owned(), value.trim().parse().ok()?);
            }
            "context" => {
                let (source, text) = rest.split_once(' ')?;
                self.contexts
                    .push((source.to_owned(), text.trim().to_owned()));
            }
            "digest" => {
                let (through, text) = rest.split_once(' ')?;
                self.digest = Some((through.parse().ok()?, text.trim().to_owned()));
            }
            "learned" => self.advice = Some(rest.to_owned()),
            "tool" => {
                let (name, behavior) = rest.split_once(' ')?;
                self.behaviors
                    .entry(name.to_owned())
                    .or_default()
                    .push(parse_behavior(behavior.trim())?);
            }
            "remote" => self.remotes.push(parse_remote(rest)?),
            "user" => self.parse_user(rest)?,
            agent => self
                .replies
                .entry(agent.to_owned())
                .or_default()
                .push(parse_reply(rest)?),
        }
        Some(())
    }

    fn parse_user(&mut self, rest: &str) -> Option<()> {
        match rest.strip_prefix("cancels after ") {
            Some(time) => self.turns.last_mut()?.cancelled_after = Some(parse_duration(time)?),
            None => self.turns.push(UserTurn {
                text: rest.to_owned(),
                cancelled_after: None,
            }),
        }
        Some(())
    }
}

fn parse_behavior(text: &str) -> Option<ToolBehavior> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    Some(match (verb, rest) {
        ("returns", "10 MB") => ToolBehavior::Returns("0123456789".repeat(1024 * 1024)),
        ("returns", text) => ToolBehavior::Returns(text.to_owned()),
        ("fails", reason) => ToolBehavior::Fails(reason.to_owned()),
        ("panics", _) => ToolBehavior::Panics,
        ("hangs", _) => ToolBehavior::Hangs,
        ("takes", time) => ToolBehavior::Takes(parse_duration(time)?),
        ("wants", list) => {
            let pair = |word: &str| {
                word.split_once(':')
                    .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
            };
            ToolBehavior::Wants(list.split_whitespace().map(pair).collect::<Option<_>>()?)
        }
        ("is", "moderate") => ToolBehavior::Moderate,
        ("is", "dangerous") => ToolBehavior::Dangerous,
        ("is", "untrusted") => ToolBehavior::Untrusted,
        ("is", "private") => ToolBehavior::Private,
        ("sends", to) => ToolBehavior::Sends(to.strip_prefix("to ")?.to_owned()),
        _ => return None,
    })
}

fn parse_remote(text: &str) -> Option<(String, RemoteBehavior)> {
    let (name, rest) = text.split_once(' ')?;
    let (verb, text) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
    let behavior = match verb {
        "says" => RemoteBehavior::Says(text.to_owned()),
        "fails" => RemoteBehavior::Fails(text.to_owned()),
        "hangs" => RemoteBehavior::Hangs,
        "panics" => RemoteBehavior::Panics,
        _ => return None,
    };
    Some((name.to_owned(), behavior))
}

fn parse_reply(text: &str) -> Option<ScriptedReply> {
    let (always, text) = match text.strip_prefix("always ") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let parts = text
        .split(" + ")
        .map(|part| parse_part(part.trim()))
        .collect::<Option<_>>()?;
    Some(ScriptedReply { parts, always })
}

fn parse_part(text: &str) -> Option<ScriptedPart> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    Some(match (verb, rest.trim()) {
        ("says", "nothing") => ScriptedPart::Text(Vec::new()),
        ("says", text) => ScriptedPart::Text(vec![text.to_owned()]),
        ("streams", pieces) => ScriptedPart::Text(pieces.split('|').map(str::to_owned).collect()),
        ("transfers", transfer) => parse_transfer(transfer),
        ("calls", call) => parse_call(call)?,
        ("uses", tokens) => ScriptedPart::Usage(tokens.trim_end_matches(" tokens").parse().ok()?),
        ("thinks", text) => ScriptedPart::Thought(text.to_owned()),
        ("fails", kind) => ScriptedPart::Error(kind.to_owned()),
        ("breaks", "off") => ScriptedPart::BreaksOff,
        ("hangs", _) => ScriptedPart::Hangs,
        ("panics", _) => ScriptedPart::Panics,
        _ => return None,
    })
}

/// Parses `operator`, `operator: read it` or `operator: read it (report back)`.
fn parse_transfer(text: &str) -> ScriptedPart {
    let (text, report_back) = match text.strip_suffix("(report back)") {
        Some(rest) => (rest.trim(), true),
        None => (text, false),
    };
    let (agent, task) = text
        .split_once(": ")
        .map_or((text, None), |(agent, task)| (agent, Some(task.trim())));
    let mut arguments = serde_json::json!({ "agent_name": agent });
    if let Some(task) = task {
        arguments["task"] = task.into();
    }
    if report_back {
        arguments["report_back"] = true.into();
    }
    ScriptedPart::Call {
        id: None,
        name: "transfer_to_agent".to_owned(),
        arguments,
    }
}

/// Parses `fs_read {"path":"a"}`, optionally preceded by `id=…`. Arguments that are not JSON become text.
fn parse_call(call: &str) -> Option<ScriptedPart> {
    let (id, call) = match call.strip_prefix("id=") {
        Some(rest) => rest
            .split_once(' ')
            .map(|(id, call)| (Some(id.to_owned()), call.trim()))?,
        None => (None, call),
    };
    let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
    Some(ScriptedPart::Call {
        id,
        name: name.to_owned(),
        arguments,
    })
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_once(' ')?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "min" => Some(Duration::from_secs(number * 60)),
        _ => None,
    }
}
