//! The question that is asked before work is created: what runs, when, what it may do without asking, where
//! results go, and what it may spend (B121).

use std::fmt::Write as _;

use jiff::Timestamp;
use lango_domain::automation::{
    JobAction, Run, RunBudget, RunSpec, Schedule, ScheduleKind, SessionMode,
};
use lango_text::sanitize::{escape_hidden_chars, truncated_line};

use super::work::is_inbox_only;
use super::{PlannedJob, PlannedRun};
use crate::delivery::DeliveryTarget;
use crate::time_text::{absolute_time, describe_time, format_span};
use crate::workflow::{StepAction, Workflow, WorkflowStep, parse_workflow};

const MAX_ACTION_CHARS: usize = 160;

impl PlannedJob {
    /// Returns everything that the user approves with the job.
    pub fn question(&self, now: Timestamp) -> String {
        let job = &self.job;
        let mut text = format!("adds the job `{}`\n", job.name);
        push_action(&mut text, &job.spec, self.workflow.as_ref());
        let _ = writeln!(text, "when: {}", describe_schedule(&job.schedule));
        for (number, at) in self.next.iter().enumerate() {
            let _ = match number {
                0 => writeln!(text, "  next: {}", describe_time(at, now)),
                _ => writeln!(text, "  then: {}", absolute_time(at)),
            };
        }
        push_terms(&mut text, &job.spec);
        escape_hidden_chars(text.trim_end())
    }
}

impl PlannedRun {
    /// Returns everything that the user approves with the run.
    pub fn question(&self) -> String {
        let start = match self.run.spec.action {
            JobAction::Workflow { .. } => "runs a workflow now, out of sight\n",
            _ => "runs a background task now\n",
        };
        let mut text = start.to_owned();
        push_action(&mut text, &self.run.spec, self.workflow.as_ref());
        push_terms(&mut text, &self.run.spec);
        escape_hidden_chars(text.trim_end())
    }
}

/// Returns the work of a run on one line.
pub fn describe_action(action: &JobAction) -> String {
    match action {
        JobAction::Reminder { text } => {
            format!("reminds of: {}", truncated_line(text, MAX_ACTION_CHARS))
        }
        JobAction::Prompt { text, agent } => {
            let text = truncated_line(text, MAX_ACTION_CHARS);
            match agent {
                Some(agent) => format!("asks the {agent}: {text}"),
                None => format!("asks the team: {text}"),
            }
        }
        JobAction::Workflow { name, .. } => format!("runs the workflow `{name}`"),
    }
}

/// Describes a schedule: `0 8 * * MON (Europe/Berlin)`, `every 2h`, `once`.
pub fn describe_schedule(schedule: &Schedule) -> String {
    match schedule.kind {
        ScheduleKind::Cron => format!("cron `{}` in {}", schedule.text, schedule.time_zone),
        ScheduleKind::Every => format!("every {}", schedule.text),
        ScheduleKind::At => "once".to_owned(),
    }
}

fn push_action(text: &mut String, spec: &RunSpec, workflow: Option<&Workflow>) {
    let _ = match &spec.action {
        JobAction::Reminder { text: reminder } => {
            writeln!(text, "reminds, without a model, of: {}", indented(reminder))
        }
        JobAction::Prompt {
            text: prompt,
            agent,
        } => {
            let agent = agent.as_ref().map(|agent| format!(" {agent}"));
            let whom = agent.map_or_else(|| "the team".to_owned(), |agent| format!("the{agent}"));
            writeln!(text, "asks {whom}: {}", indented(prompt))
        }
        JobAction::Workflow { name, params, .. } => {
            let _ = writeln!(text, "runs the workflow `{name}`");
            if !params.is_empty() {
                let params = serde_json::to_string(params).unwrap_or_default();
                let _ = writeln!(text, "  with {params}");
            }
            workflow.map_or(Ok(()), |workflow| {
                text.push_str(&steps_text(workflow));
                Ok(())
            })
        }
    };
    if spec.session_mode == SessionMode::Main {
        text.push_str("all runs share one session\n");
    }
}

/// Lists what each step does.
fn steps_text(workflow: &Workflow) -> String {
    workflow.steps.iter().map(step_text).collect()
}

/// Returns the text of a step of a run; nothing if the run has no such step.
pub fn describe_step(run: &Run, id: &str) -> String {
    let JobAction::Workflow {
        name, definition, ..
    } = &run.spec.action
    else {
        return String::new();
    };
    let workflow = parse_workflow(name, definition, None).ok();
    let step = workflow.as_ref().and_then(|workflow| workflow.step(id));
    escape_hidden_chars(&step.map(step_text).unwrap_or_default())
}

fn step_text(step: &WorkflowStep) -> String {
    let approval = match step.approval {
        Some(_) => ", after approval",
        None => "",
    };
    let mut text = match &step.action {
        StepAction::Agent { agent, prompt, .. } => format!(
            "  {}: asks {}{approval}: {}\n",
            step.id,
            agent.as_deref().unwrap_or("the team"),
            indented(prompt)
        ),
        StepAction::Tool { tool, arguments } => {
            format!("  {}: calls {tool}{approval}: {arguments}\n", step.id)
        }
    };
    push_targets(&mut text, "    result: ", &step.deliver_to);
    text
}

fn push_terms(text: &mut String, spec: &RunSpec) {
    if !matches!(spec.action, JobAction::Reminder { .. }) {
        push_permissions(text, spec);
    }
    if let Some(folder) = &spec.workspace
        && needs_folder(spec)
    {
        let _ = writeln!(text, "works in {}", folder.display());
    }
    push_targets(text, "results: ", &spec.deliver_to);
    let failures = match is_inbox_only(&spec.failure_deliver_to) {
        true => &[],
        false => spec.failure_deliver_to.as_slice(),
    };
    push_targets(text, "failures: ", failures);
    if !matches!(spec.action, JobAction::Reminder { .. }) {
        let _ = writeln!(
            text,
            "budget of each run: {}",
            describe_budget(&spec.budget)
        );
    }
    if let Some(timeout) = spec.timeout {
        let _ = writeln!(text, "stops after {}", format_span(timeout));
    }
}

/// Returns true if it matters in which folder the work runs.
pub fn needs_folder(spec: &RunSpec) -> bool {
    let mut targets = spec.deliver_to.iter().chain(&spec.failure_deliver_to);
    !matches!(spec.action, JobAction::Reminder { .. })
        || targets.any(|target| target.starts_with("file:") || target.starts_with("command:"))
}

fn push_permissions(text: &mut String, spec: &RunSpec) {
    if spec.allow.is_empty() && spec.allowed_steps.is_empty() {
        text.push_str(
            "without asking: only what the settings allow; everything else waits for approval\n",
        );
        return;
    }
    text.push_str("without asking, also when nobody is there:\n");
    for rule in &spec.allow {
        let _ = match (&rule.subject, rule.tool.as_str()) {
            (None, "*") => writeln!(text, "  every call of every tool"),
            (None, tool) => writeln!(text, "  {tool}: every call"),
            (Some(subject), tool) => writeln!(text, "  {tool}: {subject}"),
        };
    }
    for step in &spec.allowed_steps {
        let _ = writeln!(text, "  the call of the step {step}, as above");
    }
}

fn push_targets(text: &mut String, start: &str, targets: &[String]) {
    for target in targets {
        let effect = match target.parse::<DeliveryTarget>() {
            Ok(target) => target.effect(),
            Err(_) => target.clone(),
        };
        let _ = writeln!(text, "{start}{effect}");
    }
}

/// Returns the budget of one run in words.
pub fn describe_budget(budget: &RunBudget) -> String {
    let tokens = budget.tokens.map(|tokens| format!("{tokens} tokens"));
    let usd = budget.usd.map(|usd| format!("{usd} USD"));
    let parts: Vec<String> = tokens.into_iter().chain(usd).collect();
    match parts.is_empty() {
        true => "the limits of a turn".to_owned(),
        false => parts.join(" and "),
    }
}

/// Indents the lines after the first, so that a text cannot look like another part of the question.
fn indented(text: &str) -> String {
    text.trim().replace(['\r', '\n'], "\n    ")
}
