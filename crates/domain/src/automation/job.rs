//! Jobs: work with a schedule.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::JobId;
use crate::agent::AgentName;
use crate::event::Principal;
use crate::flow::Label;

/// A stored job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    pub principal: Principal,
    /// Unique for the principal.
    pub name: String,
    pub schedule: Schedule,
    pub catch_up: CatchUp,
    /// An occurrence that is later than this is never caught up.
    pub grace: SignedDuration,
    pub overlap: OverlapRule,
    /// False while the job is paused.
    pub enabled: bool,
    /// The work of each run. Every run stores a copy.
    pub spec: RunSpec,
    pub created: Timestamp,
    /// Grows with every edit, so that the scheduler never decides on an outdated job.
    pub version: u64,
    /// Occurrences up to and including this time are decided: each has a row.
    pub decided_until: Timestamp,
    /// The first occurrence after `decided_until`: an index for the scheduler, derived from the schedule.
    /// `None` if there is none, or the job is paused.
    pub next_due: Option<Timestamp>,
}

/// A job to add.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    pub principal: Principal,
    pub name: String,
    pub schedule: Schedule,
    pub catch_up: CatchUp,
    pub grace: SignedDuration,
    pub overlap: OverlapRule,
    pub spec: RunSpec,
    pub created: Timestamp,
    pub next_due: Option<Timestamp>,
}

/// A change of a job. `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobEdit {
    pub enabled: Option<bool>,
    pub schedule: Option<Schedule>,
    pub catch_up: Option<CatchUp>,
    pub grace: Option<SignedDuration>,
    pub overlap: Option<OverlapRule>,
    pub spec: Option<RunSpec>,
    /// Occurrences up to this time are no longer decided, as when a paused job is resumed.
    pub decided_until: Option<Timestamp>,
    /// Always replaced, because it depends on everything else.
    pub next_due: Option<Timestamp>,
}

/// When a job runs, as the user wrote it. The `automation` crate reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub kind: ScheduleKind,
    /// Five cron fields, a duration such as `15m`, or an instant.
    pub text: String,
    /// The IANA name of the time zone.
    pub time_zone: String,
    /// The start of the first interval of an `every` schedule.
    pub anchor: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleKind {
    Cron,
    Every,
    At,
}

/// The rule for occurrences that were due while no scheduler ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CatchUp {
    /// The last one runs.
    #[default]
    Once,
    /// None runs.
    Skip,
    /// All run, one after the other.
    All,
}

/// The rule for an occurrence that is due while an earlier run of the job is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverlapRule {
    #[default]
    Skip,
    /// It runs after the earlier run.
    Queue,
    /// The earlier run is cancelled.
    Replace,
}

/// The work of a run, with its permissions and limits, and where its result goes. Stored with every run,
/// so that an edit changes no run that exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    pub action: JobAction,
    /// The folder that the work was asked for in, and in which it runs. `None` if any folder will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    #[serde(default)]
    pub session_mode: SessionMode,
    /// Targets of the result. See the delivery targets of the `automation` crate.
    #[serde(default)]
    pub deliver_to: Vec<String>,
    /// Targets of a failure; the inbox if empty.
    #[serde(default)]
    pub failure_deliver_to: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<SignedDuration>,
    #[serde(default)]
    pub budget: RunBudget,
    /// The calls that the user allowed when the job was created (B121).
    #[serde(default)]
    pub allow: Vec<AllowRule>,
    /// The tool steps of the workflow whose calls the user allowed when the work was created (B121). Each
    /// covers the call of its own step, and no call of an agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_steps: Vec<String>,
    /// The number of jobs and tasks between this one and the user's own request.
    #[serde(default)]
    pub depth: u32,
    /// The label of the content that the work was made from.
    #[serde(default, skip_serializing_if = "Label::is_plain")]
    pub label: Label,
}

impl RunSpec {
    /// Returns what the run may do without asking, for people: its rules and its allowed steps.
    pub fn permissions(&self) -> Vec<String> {
        let rules = self.allow.iter().map(ToString::to_string);
        let steps = self.allowed_steps.iter().map(|id| format!("step {id}"));
        rules.chain(steps).collect()
    }
}

/// The work of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum JobAction {
    /// Delivers its text. Needs no model.
    Reminder { text: String },
    /// Runs a turn.
    Prompt {
        text: String,
        /// A single agent; the team if not set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
    },
    /// Runs a workflow with the definition as it was when the run was made.
    Workflow {
        name: String,
        definition: String,
        #[serde(default)]
        params: Map<String, Value>,
    },
}

/// The session in which a run's turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    /// A new session for every run.
    #[default]
    Isolated,
    /// One session for all runs of the job.
    Main,
}

/// The most that one run may spend. `None` is no limit of its own; the limits of a turn apply in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunBudget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// Allows calls of a tool, as `TOOL` or `TOOL SUBJECT`; `*` in the subject matches any text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AllowRule {
    pub tool: String,
    /// The pattern of the call's command or path; all calls of the tool if not set.
    pub subject: Option<String>,
}

/// A text that is not an allow rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a rule; write a tool name, or a tool name and a pattern, such as `exec_shell git status*`"
)]
pub struct ParseAllowRuleError(String);

impl FromStr for AllowRule {
    type Err = ParseAllowRuleError;

    fn from_str(text: &str) -> Result<Self, ParseAllowRuleError> {
        let text = text.trim();
        let (tool, subject) = match text.split_once(char::is_whitespace) {
            Some((tool, subject)) => (tool, Some(subject.trim().to_owned())),
            None => (text, None),
        };
        let is_tool_char =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
        if tool.is_empty() || !tool.chars().all(is_tool_char) {
            return Err(ParseAllowRuleError(text.to_owned()));
        }
        Ok(Self {
            tool: tool.to_owned(),
            subject,
        })
    }
}

impl TryFrom<String> for AllowRule {
    type Error = ParseAllowRuleError;

    fn try_from(text: String) -> Result<Self, ParseAllowRuleError> {
        text.parse()
    }
}

impl From<AllowRule> for String {
    fn from(rule: AllowRule) -> Self {
        rule.to_string()
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some(subject) => write!(f, "{} {subject}", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allow_rules_round_trip_as_text() {
        for text in ["exec_shell git status*", "fs_read", "search_*"] {
            assert_eq!(text.parse::<AllowRule>().unwrap().to_string(), text);
        }
        for text in ["", "  ", "a;b", "fs_read(x)"] {
            assert!(text.parse::<AllowRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn actions_are_tagged() {
        let json = serde_json::json!({ "type": "prompt", "text": "check the disk" });
        let action: JobAction = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&action).unwrap(), json);
    }
}
