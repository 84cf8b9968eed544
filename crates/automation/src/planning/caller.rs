//! Who asks for work. Work that asks for work gives on no more than it has (B121).

use lango_domain::Label;
use lango_domain::automation::{AllowRule, INBOX_TARGET, RunSpec};
use lango_domain::event::{Principal, SessionId};
use lango_domain::pattern::{Wildcard, matches};

use super::WorkPlanner;
use super::error::PlanError;
use crate::delivery::DeliveryTarget;

/// Who asks for work.
#[derive(Clone, Debug, PartialEq)]
pub struct Requester {
    pub principal: Principal,
    /// The session of the request; `None` for a command of the user.
    pub session: Option<SessionId>,
    /// The label of everything that the request was made from.
    pub label: Label,
}

impl Requester {
    /// Returns a user at the command line.
    pub fn user(principal: Principal) -> Self {
        Self {
            principal,
            session: None,
            label: Label::default(),
        }
    }
}

/// The run whose turn asks for work.
#[derive(Clone, Debug, PartialEq)]
pub struct CallingRun {
    pub name: String,
    pub spec: RunSpec,
}

impl WorkPlanner<'_> {
    /// Returns the run that works in the session of the request. A session whose run is over belongs to the
    /// user again.
    pub async fn calling_run(
        &self,
        requester: &Requester,
    ) -> Result<Option<CallingRun>, PlanError> {
        let Some(session) = &requester.session else {
            return Ok(None);
        };
        let run = self
            .store
            .run_of_session(&requester.principal, session)
            .await?;
        let open = run.filter(|run| !run.state.is_final());
        Ok(open.map(|run| CallingRun {
            name: run.name,
            spec: run.spec,
        }))
    }

    /// Returns the depth of work that a caller asks for.
    pub(super) fn depth(&self, caller: Option<&CallingRun>) -> Result<u32, PlanError> {
        let Some(caller) = caller else {
            return Ok(0);
        };
        let depth = caller.spec.depth.saturating_add(1);
        match depth > self.limits.max_depth {
            true => Err(PlanError::TooDeep(self.limits.max_depth)),
            false => Ok(depth),
        }
    }
}

/// Checks that a calling run has every permission that it gives on.
pub(super) fn check_not_widened(
    rules: &[AllowRule],
    caller: Option<&CallingRun>,
) -> Result<(), PlanError> {
    let Some(caller) = caller else {
        return Ok(());
    };
    let own = &caller.spec.allow;
    let is_covered = |rule: &&AllowRule| own.iter().any(|own| rule_covers(own, rule));
    match rules.iter().find(|rule| !is_covered(rule)) {
        None => Ok(()),
        Some(rule) => Err(PlanError::Widened {
            rule: rule.to_string(),
            own: own.iter().map(ToString::to_string).collect(),
        }),
    }
}

/// Checks that a calling run delivers only where it may deliver itself: to the inbox, to its own session, and
/// to its own targets. A target can run a command or send data away.
pub(super) fn check_targets_not_widened<'a>(
    targets: impl IntoIterator<Item = &'a DeliveryTarget>,
    caller: Option<&CallingRun>,
    session: Option<&SessionId>,
) -> Result<(), PlanError> {
    let Some(caller) = caller else {
        return Ok(());
    };
    let spec = &caller.spec;
    let is_own = |target: &&DeliveryTarget| {
        let text = target.to_string();
        let is_session = session.is_some_and(|session| text == format!("session:{session}"));
        let mut own = spec.deliver_to.iter().chain(&spec.failure_deliver_to);
        text == INBOX_TARGET || is_session || own.any(|own| *own == text)
    };
    match targets.into_iter().find(|target| !is_own(target)) {
        None => Ok(()),
        Some(target) => Err(PlanError::WidenedTarget(target.summary())),
    }
}

/// Returns true if `wide` allows every call that `narrow` allows.
pub fn rule_covers(wide: &AllowRule, narrow: &AllowRule) -> bool {
    // A `*` of the narrow pattern is matched only by a `*` of the wide one.
    let tools = matches(&wide.tool, &narrow.tool, Wildcard::Anything);
    let subjects = match (&wide.subject, &narrow.subject) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) if wide == narrow => true,
        // The second text finds a `.` next to a `*`, which can become `..`.
        (Some(wide), Some(narrow)) => [narrow.clone(), narrow.replace('*', ".")]
            .iter()
            .all(|text| matches(wide, text, Wildcard::Plain)),
    };
    tools && subjects
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B121
    #[test]
    fn a_rule_covers_narrower_rules_only() {
        for (wide, narrow, expected) in [
            ("fs_read", "fs_read", true),
            ("fs_*", "fs_read", true),
            ("fs_*", "fs_r*", true),
            ("fs_r*", "fs_*", false),
            ("fs_read", "fs_write", false),
            ("fs_read", "*", false),
            ("*", "exec_shell git status", true),
            ("exec_shell", "exec_shell git *", true),
            ("exec_shell git *", "exec_shell", false),
            ("exec_shell git *", "exec_shell git status*", true),
            ("exec_shell git *", "exec_shell git *", true),
            ("exec_shell git *", "exec_shell *", false),
            ("exec_shell git *", "exec_shell git a; rm -rf *", false),
            ("exec_shell git *", "exec_shell git $(x)", false),
            ("fs_write notes/*", "fs_write notes/../*", false),
            ("fs_write notes/*", "fs_write notes/.*", false),
            ("fs_write notes/*", "fs_write notes/a.md", true),
        ] {
            let [wide, narrow] = [wide, narrow].map(|text| text.parse::<AllowRule>().unwrap());
            assert_eq!(rule_covers(&wide, &narrow), expected, "{wide} | {narrow}");
        }
    }
}
