//! The tool steps of a workflow that are asked about when the work is created (B121).

use lango_domain::automation::{JobAction, RunSpec};
use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_domain::{AgentName, Intent, Tool, ToolContext, ToolOutputSink};
use lango_engine::{ApprovalPolicy, TurnPermission, Verdict};
use serde_json::{Map, Value};

use super::{PlannedJob, PlannedRun};
use crate::turn_work::approval_rules;
use crate::workflow::{ReferenceValues, StepAction, StepField, ValueTemplate, Workflow};

/// The agent of a call that is only described.
const PLANNING_AGENT: &str = "automator";

/// Finds the steps whose calls would wait for an approval.
pub struct StepPermissions<'a> {
    pub tools: Vec<&'a Tool>,
    pub policy: &'a ApprovalPolicy,
}

impl StepPermissions<'_> {
    /// Adds all of them to what the job may do. The question of the job then lists them.
    pub async fn allow_in_job(&self, planned: &mut PlannedJob) {
        if let Some(workflow) = &planned.workflow {
            let job = &mut planned.job;
            job.spec.allowed_steps = self.asked_steps(workflow, &job.spec, &job.principal).await;
        }
    }

    /// Adds all of them to what the run may do. The question of the run then lists them.
    pub async fn allow_in_run(&self, planned: &mut PlannedRun) {
        if let Some(workflow) = &planned.workflow {
            let run = &mut planned.run;
            run.spec.allowed_steps = self.asked_steps(workflow, &run.spec, &run.principal).await;
        }
    }

    async fn asked_steps(
        &self,
        workflow: &Workflow,
        spec: &RunSpec,
        principal: &Principal,
    ) -> Vec<String> {
        let JobAction::Workflow { params, .. } = &spec.action else {
            return Vec::new();
        };
        let permission = TurnPermission {
            rules: approval_rules(&spec.allow).collect(),
            ..TurnPermission::default()
        };
        let mut asked = Vec::new();
        for step in &workflow.steps {
            let StepAction::Tool { tool, arguments } = &step.action else {
                continue;
            };
            let Some(tool) = self.tools.iter().find(|known| known.name == *tool) else {
                continue;
            };
            let intent = call_intent(tool, arguments, params, principal).await;
            if permission.verdict(self.policy, &tool.name, &intent) == Verdict::Ask {
                asked.push(step.id.clone());
            }
        }
        asked
    }
}

/// Returns the intent of a call. A call whose arguments depend on other steps, or that does not work yet, has
/// the level of its tool.
async fn call_intent(
    tool: &Tool,
    arguments: &ValueTemplate,
    params: &Map<String, Value>,
    principal: &Principal,
) -> Intent {
    let arguments = arguments.fill(&ParamValues(params)).ok();
    let described = match arguments.zip(planning_context(principal)) {
        Some((arguments, context)) => tool.intent(context, arguments).await.ok(),
        None => None,
    };
    described.unwrap_or_else(|| Intent {
        level: tool.safety,
        shows: String::new(),
        subject: String::new(),
        pattern: None,
    })
}

fn planning_context(principal: &Principal) -> Option<ToolContext> {
    Some(ToolContext {
        session: SessionId::new(PLANNING_AGENT),
        principal: principal.clone(),
        turn: TurnId::new(PLANNING_AGENT),
        agent: AgentName::new(PLANNING_AGENT).ok()?,
        call: CallId::new(PLANNING_AGENT),
        label: lango_domain::Label::default(),
        typed_addresses: Vec::new(),
        output_sink: ToolOutputSink::disconnected(),
        redactor: lango_text::secret_redactor::SecretRedactor::default(),
    })
}

/// The values that are known before any step has run.
struct ParamValues<'a>(&'a Map<String, Value>);

impl ReferenceValues for ParamValues<'_> {
    fn param(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }

    fn step(&self, _: &str, _: StepField) -> Option<Value> {
        None
    }
}
