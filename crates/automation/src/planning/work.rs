//! The work of jobs and runs: reminders, prompts and workflows, with their options.

use jiff::SignedDuration;
use lango_domain::automation::{
    AllowRule, INBOX_TARGET, JobAction, RunBudget, RunSpec, SavedWorkflow,
};
use lango_domain::event::Principal;
use lango_domain::{AgentName, Safety};
use lango_text::sanitize::{is_hidden, truncated_line};
use lango_text::suggest::did_you_mean;

use super::caller::{CallingRun, Requester, check_not_widened, check_targets_not_widened};
use super::error::{PlanError, hint};
use super::request::{RunOptions, WorkflowRequest, WorkflowSource};
use super::{AutomationCatalog, WorkPlanner};
use crate::delivery::DeliveryTarget;
use crate::workflow::{StepAction, Workflow, parse_duration, parse_workflow};

const MAX_PROMPT_CHARS: usize = 20_000;
const MAX_REMINDER_CHARS: usize = 4_000;
/// Most rules that one job can be allowed.
const MAX_RULES: usize = 32;

/// Work that was checked, without its time.
#[derive(Clone, Debug)]
pub(super) struct PlannedWork {
    /// A name for the work, from its text.
    pub title: String,
    pub spec: RunSpec,
    pub level: Safety,
    pub workflow: Option<Workflow>,
}

/// An action that was checked.
pub(super) struct PlannedAction {
    pub action: JobAction,
    pub workflow: Option<Workflow>,
}

impl WorkPlanner<'_> {
    pub(super) fn reminder(&self, text: &str) -> Result<PlannedAction, PlanError> {
        let text = check_text("reminder", text, MAX_REMINDER_CHARS)?;
        Ok(PlannedAction {
            action: JobAction::Reminder { text },
            workflow: None,
        })
    }

    pub(super) fn prompt(
        &self,
        text: &str,
        agent: Option<&str>,
    ) -> Result<PlannedAction, PlanError> {
        let text = check_text("prompt", text, MAX_PROMPT_CHARS)?;
        let agent = agent.map(|agent| self.agent(agent)).transpose()?;
        Ok(PlannedAction {
            action: JobAction::Prompt { text, agent },
            workflow: None,
        })
    }

    fn agent(&self, name: &str) -> Result<AgentName, PlanError> {
        let unknown = |suggestion| PlanError::UnknownAgent {
            name: truncated_line(name, 80),
            hint: hint(suggestion),
        };
        let agent = AgentName::new(name.trim()).map_err(|_| unknown(None))?;
        let known = self.catalog.as_ref().map(|catalog| &catalog.names.agents);
        match known {
            Some(known) if !known.contains(agent.as_str()) => Err(unknown(did_you_mean(
                name,
                known.iter().map(String::as_str),
            ))),
            _ => Ok(agent),
        }
    }

    /// Reads and checks a workflow. The run keeps its text, so that later changes do not matter.
    pub(super) async fn workflow(
        &self,
        principal: &Principal,
        request: &WorkflowRequest,
    ) -> Result<PlannedAction, PlanError> {
        let (workflow, definition) = self.read_workflow(principal, &request.source).await?;
        let params = workflow.bind_params(&request.params)?;
        let action = JobAction::Workflow {
            name: workflow.name.clone(),
            definition,
            params,
        };
        Ok(PlannedAction {
            action,
            workflow: Some(workflow),
        })
    }

    /// Checks a workflow without running it, with the names of its agents and tools and its targets.
    pub async fn check_workflow(
        &self,
        principal: &Principal,
        source: &WorkflowSource,
    ) -> Result<Workflow, PlanError> {
        let (workflow, _) = self.read_workflow(principal, source).await?;
        self.targets(&workflow.deliver_to)?;
        self.workflow_level(&workflow)?;
        Ok(workflow)
    }

    async fn read_workflow(
        &self,
        principal: &Principal,
        source: &WorkflowSource,
    ) -> Result<(Workflow, String), PlanError> {
        let (file, definition) = match source {
            WorkflowSource::Text { file, text } => (file.clone(), text.clone()),
            WorkflowSource::Saved(name) => {
                let saved = self.saved_workflow(principal, name).await?;
                (saved.name, saved.definition)
            }
        };
        let names = self.catalog.as_ref().map(|catalog| &catalog.names);
        let workflow = parse_workflow(&file, &definition, names).map_err(PlanError::Workflow)?;
        Ok((workflow, definition))
    }

    async fn saved_workflow(
        &self,
        principal: &Principal,
        name: &str,
    ) -> Result<SavedWorkflow, PlanError> {
        let name = name.trim();
        if let Some(saved) = self.store.saved_workflow(principal, name, None).await? {
            return Ok(saved);
        }
        let saved = self.store.saved_workflows(principal).await?;
        let names: Vec<&str> = saved.iter().map(|saved| saved.name.as_str()).collect();
        let near = did_you_mean(name, names.iter().copied());
        let suggestion = near.or_else(|| match names.as_slice() {
            [] => Some("none is saved; give its file or its text".to_owned()),
            names => Some(format!("saved ones are {}", names.join(", "))),
        });
        Err(PlanError::UnknownWorkflow {
            name: truncated_line(name, 80),
            hint: hint(suggestion),
        })
    }

    /// Checks the options of work, and what a calling run may give on.
    pub(super) fn work(
        &self,
        planned: PlannedAction,
        options: &RunOptions,
        requester: &Requester,
        caller: Option<&CallingRun>,
    ) -> Result<PlannedWork, PlanError> {
        let PlannedAction { action, workflow } = planned;
        let own_targets = workflow.as_ref().map(|workflow| &workflow.deliver_to);
        let deliver_to = match (options.deliver_to.as_slice(), own_targets) {
            ([], Some(own)) if !own.is_empty() => self.targets(own)?,
            ([], _) => vec![DeliveryTarget::Inbox],
            (given, _) => self.targets(given)?,
        };
        let failure_deliver_to = self.targets(&options.failure_deliver_to)?;
        let allow = self.rules(&options.allow)?;
        check_not_widened(&allow, caller)?;
        let mut all_targets = [deliver_to.as_slice(), &failure_deliver_to].concat();
        for step in workflow.iter().flat_map(|workflow| &workflow.steps) {
            all_targets.extend(self.targets(&step.deliver_to)?);
        }
        check_targets_not_widened(&all_targets, caller, requester.session.as_ref())?;
        let timeout = options.timeout.as_deref().map(parse_timeout).transpose()?;
        let targets = deliver_to.iter().chain(&failure_deliver_to);
        let mut level = targets
            .map(DeliveryTarget::safety)
            .max()
            .unwrap_or_default();
        level = level.max(Safety::Moderate);
        if !allow.is_empty() {
            level = Safety::Dangerous;
        }
        if let Some(workflow) = &workflow {
            level = level.max(self.workflow_level(workflow)?);
        }
        let texts = |targets: &[DeliveryTarget]| targets.iter().map(ToString::to_string).collect();
        let spec = RunSpec {
            workspace: self.workspace.clone(),
            session_mode: options.session_mode,
            deliver_to: texts(&deliver_to),
            failure_deliver_to: texts(&failure_deliver_to),
            timeout,
            budget: check_budget(options.budget)?,
            allow,
            allowed_steps: Vec::new(),
            depth: self.depth(caller)?,
            label: requester.label.clone(),
            action,
        };
        Ok(PlannedWork {
            title: title(&spec.action),
            spec,
            level,
            workflow,
        })
    }

    /// Returns the level of what a workflow does without a model, and where its steps deliver to.
    fn workflow_level(&self, workflow: &Workflow) -> Result<Safety, PlanError> {
        let mut level = Safety::Moderate;
        for step in &workflow.steps {
            if let StepAction::Tool { tool, .. } = &step.action {
                let known = self.catalog.as_ref().map(|catalog| catalog.level(tool));
                level = level.max(known.unwrap_or_default());
            }
            let targets = self.targets(&step.deliver_to)?;
            level = targets
                .iter()
                .map(DeliveryTarget::safety)
                .fold(level, Safety::max);
        }
        Ok(level)
    }

    /// Reads delivery targets, and refuses those that cannot work with the settings.
    pub(super) fn targets(&self, texts: &[String]) -> Result<Vec<DeliveryTarget>, PlanError> {
        let targets = DeliveryTarget::parse_all(texts)?;
        for target in &targets {
            let checked = self.limits.target_check.check(target);
            checked.map_err(|reason| PlanError::Undeliverable {
                target: target.summary(),
                reason,
            })?;
        }
        Ok(targets)
    }

    fn rules(&self, texts: &[String]) -> Result<Vec<AllowRule>, PlanError> {
        if texts.len() > MAX_RULES {
            return Err(PlanError::TooManyRules(MAX_RULES));
        }
        let mut rules: Vec<AllowRule> = Vec::new();
        for text in texts {
            if text.chars().any(|c| c == '\n' || is_hidden(c)) {
                return Err(PlanError::HiddenInRule(truncated_line(text, 80)));
            }
            let rule: AllowRule = text.parse()?;
            check_tool(&rule, self.catalog.as_deref())?;
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        Ok(rules)
    }
}

/// Checks that the tool of a rule exists.
fn check_tool(rule: &AllowRule, catalog: Option<&AutomationCatalog>) -> Result<(), PlanError> {
    let tools = match catalog {
        Some(catalog) if !rule.tool.contains('*') => &catalog.names.tools,
        _ => return Ok(()),
    };
    if tools.contains_key(&rule.tool) {
        return Ok(());
    }
    let near = did_you_mean(&rule.tool, tools.keys().map(String::as_str));
    Err(PlanError::UnknownTool {
        rule: rule.to_string(),
        tool: rule.tool.clone(),
        hint: hint(near),
    })
}

fn check_text(what: &'static str, text: &str, limit: usize) -> Result<String, PlanError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(PlanError::EmptyText { what });
    }
    match text.chars().count() > limit {
        true => Err(PlanError::LongText { what, limit }),
        false => Ok(text.to_owned()),
    }
}

fn parse_timeout(text: &str) -> Result<SignedDuration, PlanError> {
    let duration = parse_duration(text)?;
    Ok(SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX))
}

fn check_budget(budget: RunBudget) -> Result<RunBudget, PlanError> {
    let is_wrong =
        budget.tokens == Some(0) || budget.usd.is_some_and(|usd| !usd.is_finite() || usd <= 0.0);
    match is_wrong {
        true => Err(PlanError::Budget),
        false => Ok(budget),
    }
}

fn title(action: &JobAction) -> String {
    match action {
        JobAction::Reminder { text } | JobAction::Prompt { text, .. } => text.clone(),
        JobAction::Workflow { name, .. } => name.clone(),
    }
}

/// Returns true if the only target is the inbox.
pub(super) fn is_inbox_only(targets: &[String]) -> bool {
    targets.iter().all(|target| target == INBOX_TARGET)
}
