//! `bg_submit`, `bg_status`, `bg_result`, `bg_list` and `bg_cancel`.

use lango_domain::automation::{Run, RunId, RunKind, RunQuery};
use lango_domain::{Intent, LabeledText, Safety, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{LabeledLines, result_text, run_lines, terms_lines};
use super::arguments::{BudgetArg, filled, limit, outgoing};
use super::{AutomationTools, phrases, requester};
use crate::planning::{PlanError, RunOptions, RunRequest, describe_action};

const DEFAULT_LIST: usize = 20;
const MAX_LIST: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct BgSubmitArgs {
    /// The task, understandable for someone who never saw this conversation.
    prompt: String,
    /// The agent; the whole team if left out.
    agent: Option<String>,
    /// inbox (default), notify, session:NAME, file:PATH, webhook:URL, command:LINE, email:ADDRESS.
    deliver_to: Option<Vec<String>>,
    /// The longest time, such as "30m".
    timeout: Option<String>,
    /// The most that it may spend.
    budget: Option<BudgetArg>,
    /// Calls that run without asking: "fs_write", or "exec_shell df*". Only what the user wants; everything
    /// else waits for approval.
    allow: Option<Vec<String>>,
}

impl BgSubmitArgs {
    fn request(self) -> RunRequest {
        RunRequest {
            prompt: self.prompt,
            agent: filled(self.agent),
            options: RunOptions {
                deliver_to: self.deliver_to.unwrap_or_default(),
                timeout: filled(self.timeout),
                budget: self.budget.unwrap_or_default().into(),
                allow: self.allow.unwrap_or_default(),
                ..RunOptions::default()
            },
        }
    }
}

pub(super) fn bg_submit(parts: AutomationTools) -> Tool {
    let description = "Runs a task in the background, in a session of its own. It survives the end of this process, and its \
        result is delivered.";
    let asked = parts.clone();
    Tool::new(
        "bg_submit",
        description,
        Safety::Moderate,
        move |context, args: BgSubmitArgs| {
            let parts = parts.clone();
            async move { run_submit(&parts, &context, args).await }
        },
    )
    .with_intent(move |context, args: BgSubmitArgs| {
        let parts = asked.clone();
        async move {
            let planner = parts.planner().await?;
            let planned = planner
                .plan_task(&requester(&context), &args.request())
                .await?;
            Ok(Intent {
                level: planned.level,
                shows: planned.question(),
                subject: describe_action(&planned.run.spec.action),
                pattern: None,
            })
        }
    })
    .with_outgoing(|args: BgSubmitArgs| outgoing(args.deliver_to.unwrap_or_default(), args.prompt))
    .with_phrases(phrases::BG_SUBMIT)
}

async fn run_submit(
    parts: &AutomationTools,
    context: &ToolContext,
    args: BgSubmitArgs,
) -> Result<String, ToolError> {
    let planner = parts.planner().await?;
    let planned = planner
        .plan_task(&requester(context), &args.request())
        .await?;
    let run = planner.submit(&planned).await?;
    parts.wake();
    let mut text = format!(
        "Background task {}: {}\n{}",
        run.id,
        describe_action(&run.spec.action),
        terms_lines(&run.spec)
    );
    text.push_str(parts.scheduler_note().await?.unwrap_or_default());
    Ok(text.trim_end().to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct TaskArgs {
    /// The number of the task.
    task_id: u64,
}

async fn task(parts: &AutomationTools, context: &ToolContext, id: u64) -> Result<Run, ToolError> {
    let planner = parts.planner().await?;
    let found = planner.run_of_kind(&context.principal, RunId::new(id), RunKind::Background);
    Ok(found.await?)
}

pub(super) fn bg_status(parts: AutomationTools) -> Tool {
    let description = "Tells how a background task stands.";
    Tool::new(
        "bg_status",
        description,
        Safety::Safe,
        move |context, args: TaskArgs| {
            let parts = parts.clone();
            async move {
                let run = task(&parts, &context, args.task_id).await?;
                let mut lines = LabeledLines::default();
                push_run(&mut lines, &parts, &run);
                if !run.state.is_final() {
                    lines.line(parts.scheduler_note().await?.unwrap_or_default());
                }
                Ok(lines.output())
            }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases(phrases::BG_STATUS)
}

fn push_run(lines: &mut LabeledLines, parts: &AutomationTools, run: &Run) {
    lines.line(run_lines(run, &parts.time_zone, parts.now()).trim_end());
    lines.label.join(&run.label);
    lines.label.join(&run.spec.label);
}

pub(super) fn bg_result(parts: AutomationTools) -> Tool {
    let description = "Returns the whole result of a background task.";
    Tool::new(
        "bg_result",
        description,
        Safety::Safe,
        move |context, args: TaskArgs| {
            let parts = parts.clone();
            async move {
                let run = task(&parts, &context, args.task_id).await?;
                Ok(ToolOutput::from_labeled(LabeledText {
                    text: result_text(&run),
                    label: run.label.joined(&run.spec.label),
                }))
            }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases(phrases::BG_RESULT)
}

#[derive(Deserialize, JsonSchema)]
struct BgListArgs {
    /// Most tasks, newest first; 20 if left out.
    limit: Option<usize>,
}

pub(super) fn bg_list(parts: AutomationTools) -> Tool {
    let description = "Lists background tasks, newest first.";
    Tool::new(
        "bg_list",
        description,
        Safety::Safe,
        move |context, args: BgListArgs| {
            let parts = parts.clone();
            async move { run_list(&parts, &context, args.limit).await }
        },
    )
    .with_untrusted_output()
    .with_private_output()
    .with_phrases(phrases::BG_LIST)
}

async fn run_list(
    parts: &AutomationTools,
    context: &ToolContext,
    given: Option<usize>,
) -> Result<ToolOutput, ToolError> {
    let query = RunQuery {
        kinds: vec![RunKind::Background],
        ..RunQuery::newest(
            context.principal.clone(),
            limit(given, DEFAULT_LIST, MAX_LIST),
        )
    };
    let store = parts.store().await?;
    let runs = store.runs(query).await.map_err(PlanError::from)?;
    let mut lines = LabeledLines::default();
    if runs.is_empty() {
        lines.line("There are no background tasks.");
    }
    for run in &runs {
        push_run(&mut lines, parts, run);
    }
    if runs.iter().any(|run| !run.state.is_final()) {
        lines.line(parts.scheduler_note().await?.unwrap_or_default());
    }
    Ok(lines.output())
}

pub(super) fn bg_cancel(parts: AutomationTools) -> Tool {
    let description = "Cancels a background task.";
    Tool::new(
        "bg_cancel",
        description,
        Safety::Moderate,
        move |context, args: TaskArgs| {
            let parts = parts.clone();
            async move {
                let run = task(&parts, &context, args.task_id).await?;
                parts.planner().await?.cancel(&run).await?;
                parts.wake();
                Ok(super::answer::cancelled_text("Background task", &run))
            }
        },
    )
    .with_phrases(phrases::BG_CANCEL)
}
