//! Arguments that several tools share.

use lango_domain::automation::{
    CatchUp, OverlapRule, RunBudget, RunState, ScheduleKind, SessionMode,
};
use lango_domain::{Destination, OutgoingData};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::delivery::DeliveryTarget;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ScheduleTypeArg {
    Cron,
    Every,
    At,
}

impl From<ScheduleTypeArg> for ScheduleKind {
    fn from(kind: ScheduleTypeArg) -> Self {
        match kind {
            ScheduleTypeArg::Cron => Self::Cron,
            ScheduleTypeArg::Every => Self::Every,
            ScheduleTypeArg::At => Self::At,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SessionModeArg {
    #[default]
    Isolated,
    Main,
}

impl From<SessionModeArg> for SessionMode {
    fn from(mode: SessionModeArg) -> Self {
        match mode {
            SessionModeArg::Isolated => Self::Isolated,
            SessionModeArg::Main => Self::Main,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CatchUpArg {
    #[default]
    Once,
    Skip,
    All,
}

impl From<CatchUpArg> for CatchUp {
    fn from(rule: CatchUpArg) -> Self {
        match rule {
            CatchUpArg::Once => Self::Once,
            CatchUpArg::Skip => Self::Skip,
            CatchUpArg::All => Self::All,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OverlapArg {
    #[default]
    Skip,
    Queue,
    Replace,
}

impl From<OverlapArg> for OverlapRule {
    fn from(rule: OverlapArg) -> Self {
        match rule {
            OverlapArg::Skip => Self::Skip,
            OverlapArg::Queue => Self::Queue,
            OverlapArg::Replace => Self::Replace,
        }
    }
}

/// The most that one run may spend.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
pub(super) struct BudgetArg {
    /// Most tokens of one run.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// Most US dollars of one run.
    #[serde(default)]
    pub usd: Option<f64>,
}

impl From<BudgetArg> for RunBudget {
    fn from(budget: BudgetArg) -> Self {
        Self {
            tokens: budget.tokens,
            usd: budget.usd,
        }
    }
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RunStateArg {
    Queued,
    Running,
    Waiting,
    Done,
    Failed,
    Skipped,
    Missed,
    Cancelled,
}

impl From<RunStateArg> for RunState {
    fn from(state: RunStateArg) -> Self {
        match state {
            RunStateArg::Queued => Self::Queued,
            RunStateArg::Running => Self::Running,
            RunStateArg::Waiting => Self::Waiting,
            RunStateArg::Done => Self::Done,
            RunStateArg::Failed => Self::Failed,
            RunStateArg::Skipped => Self::Skipped,
            RunStateArg::Missed => Self::Missed,
            RunStateArg::Cancelled => Self::Cancelled,
        }
    }
}

/// Returns a text that is not blank. Models send empty texts for arguments that they leave out.
pub(super) fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Returns the hosts that work sends its results to, and the text of the work.
pub(super) fn outgoing(targets: Vec<String>, data: String) -> OutgoingData {
    let host = |target: &String| match target.parse() {
        Ok(DeliveryTarget::Webhook(url)) => url.host_str().map(str::to_owned),
        Ok(DeliveryTarget::Email(address)) => Some(address.domain().to_owned()),
        _ => None,
    };
    let hosts: Vec<String> = targets.iter().filter_map(host).collect();
    OutgoingData {
        to: Destination::Configured(hosts),
        data,
    }
}

/// Returns a limit of a list.
pub(super) fn limit(given: Option<usize>, default: usize, max: usize) -> usize {
    given.unwrap_or(default).clamp(1, max)
}
