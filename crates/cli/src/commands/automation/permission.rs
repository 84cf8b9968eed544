//! The question that is asked before what work may do is stored (B121).

use lango_app::capability::automation::planning::StepPermissions;
use lango_domain::AgentTree;
use lango_domain::automation::RunSpec;
use lango_text::sanitize::{one_line, strip_control_chars};

use super::AutomationView;
use crate::confirmation::{can_ask, confirm};
use crate::output::{CliError, NAME, styled};

impl AutomationView {
    /// Returns the rule that finds tool steps which would wait for an approval.
    pub fn step_permissions<'a>(&'a self, team: &'a AgentTree) -> StepPermissions<'a> {
        StepPermissions {
            tools: team.agents().flat_map(|agent| &agent.tools).collect(),
            policy: &self.context.loaded.settings.security.approval,
        }
    }
}

/// Asks whether work may do what it lists, unless `yes`. Rules that are not confirmed are refused; steps that
/// are not confirmed wait for an approval when they run. Returns a warning about such steps.
pub fn confirm_permission(
    spec: &mut RunSpec,
    question: &str,
    yes: bool,
) -> Result<Option<String>, CliError> {
    let (has_rules, has_steps) = (!spec.allow.is_empty(), !spec.allowed_steps.is_empty());
    if yes || !(has_rules || has_steps) {
        return Ok(None);
    }
    let is_asked = can_ask();
    if is_asked && confirm(&details(question), "Allow this, also when nobody is there?")? {
        return Ok(None);
    }
    if has_rules {
        let message = match is_asked {
            true => "cancelled; nothing was stored",
            false => "nothing was stored because there is no terminal to confirm the rules",
        };
        return Err(CliError::denied(message).with_hint("--yes allows them without a question"));
    }
    let steps = one_line(&std::mem::take(&mut spec.allowed_steps).join(", "));
    Ok(Some(format!(
        "steps that wait for an approval when they run: {steps}; --yes allows them at the start"
    )))
}

fn details(question: &str) -> String {
    let question = strip_control_chars(question);
    let mut lines = question.lines();
    let title = styled(NAME, lines.next().unwrap_or_default());
    let rest: String = lines.map(|line| format!("\n  {line}")).collect();
    format!("This {title}{rest}")
}
