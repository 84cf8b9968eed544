//! `cron_add`.

use lango_domain::automation::JobAction;
use lango_domain::{Intent, Safety, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::{next_lines, terms_lines};
use super::arguments::{
    BudgetArg, CatchUpArg, OverlapArg, ScheduleTypeArg, SessionModeArg, filled, outgoing,
};
use super::{AutomationTools, phrases, requester};
use crate::planning::{
    JobRequest, RunOptions, WorkRequest, WorkTime, WorkflowRequest, WorkflowSource, describe_action,
};

/// Said about a job that may do nothing without asking (B121).
const APPROVAL_NOTE: &str = "Calls that need an approval, such as commands, will wait for it; `--allow` of `lango cron add` permits them in advance.\n";

#[derive(Deserialize, JsonSchema)]
pub(super) struct CronAddArgs {
    /// A short name; made from the work if left out.
    name: Option<String>,
    /// The time in the user's words, in any of six languages: "tomorrow at 9", "in two hours", "every Monday
    /// at 8". Instead of `schedule`.
    when: Option<String>,
    /// The kind of `schedule`.
    schedule_type: Option<ScheduleTypeArg>,
    /// cron: five fields, such as "0 8 * * MON-FRI"; every: "15m", "2h"; at: "2026-03-01 09:00".
    schedule: Option<String>,
    /// The task for an agent, understandable for someone who never saw this conversation.
    prompt: Option<String>,
    /// A text to deliver as it is, without a model. Instead of `prompt`.
    reminder: Option<String>,
    /// The name of a saved workflow. Instead of `prompt`. It has its own schedule if its file has one.
    workflow: Option<String>,
    /// Parameters of the workflow.
    params: Option<Map<String, Value>>,
    /// The agent for `prompt`; the whole team if left out.
    agent: Option<String>,
    /// An IANA name such as "Europe/Berlin"; the user's zone if left out.
    timezone: Option<String>,
    /// `isolated`: a new session for each run; `main`: one session for all.
    session_mode: Option<SessionModeArg>,
    /// inbox (default), notify, session:NAME, file:PATH, webhook:URL, command:LINE, email:ADDRESS.
    deliver_to: Option<Vec<String>>,
    /// Where failures go; the inbox if left out.
    failure_deliver_to: Option<Vec<String>>,
    /// The longest time of one run, such as "10m".
    timeout: Option<String>,
    /// The rule for runs that were missed while nothing ran: the last one runs (once), none, or all.
    catch_up: Option<CatchUpArg>,
    /// The rule if the run before is not over: skip, queue or replace.
    overlap: Option<OverlapArg>,
    /// The most that one run may spend.
    budget: Option<BudgetArg>,
    /// Calls that run without asking: "fs_write", or "exec_shell df*". Only what the user wants; everything
    /// else waits for approval.
    allow: Option<Vec<String>>,
}

pub(super) fn cron_add(parts: AutomationTools) -> Tool {
    let description = "Adds a job that runs later, once or repeatedly: a reminder, a task for the agents, or a workflow. \
        The answer has the exact times; tell them to the user.";
    let asked = parts.clone();
    Tool::new(
        "cron_add",
        description,
        Safety::Moderate,
        move |context, args: CronAddArgs| {
            let parts = parts.clone();
            async move { run_add(&parts, &context, args).await }
        },
    )
    .with_intent(move |context, args: CronAddArgs| {
        let parts = asked.clone();
        async move { describe_add(&parts, &context, args).await }
    })
    .with_outgoing(|args: CronAddArgs| {
        let texts = [args.prompt, args.reminder, args.when];
        let data: Vec<String> = texts.into_iter().flatten().collect();
        let targets = args.deliver_to.into_iter().chain(args.failure_deliver_to);
        outgoing(targets.flatten().collect(), data.join("\n"))
    })
    .with_phrases(phrases::CRON_ADD)
}

async fn describe_add(
    parts: &AutomationTools,
    context: &ToolContext,
    args: CronAddArgs,
) -> Result<Intent, ToolError> {
    let planner = parts.planner().await?;
    let planned = planner
        .plan_job(&requester(context), &args.request()?)
        .await?;
    Ok(Intent {
        level: planned.level,
        shows: planned.question(planner.now),
        subject: describe_action(&planned.job.spec.action),
        pattern: None,
    })
}

async fn run_add(
    parts: &AutomationTools,
    context: &ToolContext,
    args: CronAddArgs,
) -> Result<String, ToolError> {
    let planner = parts.planner().await?;
    let planned = planner
        .plan_job(&requester(context), &args.request()?)
        .await?;
    let job = planner.add_job(&planned).await?;
    parts.wake();
    let mut text = format!(
        "Added the job `{}` (#{}): {}\n",
        job.name,
        job.id,
        describe_action(&job.spec.action)
    );
    text.push_str(&next_lines(&planned.next, planner.now));
    text.push_str(&terms_lines(&job.spec));
    if matches!(job.spec.action, JobAction::Prompt { .. }) && job.spec.allow.is_empty() {
        text.push_str(APPROVAL_NOTE);
    }
    text.push_str(parts.scheduler_note().await?.unwrap_or_default());
    Ok(text.trim_end().to_owned())
}

impl CronAddArgs {
    fn request(self) -> Result<JobRequest, ToolError> {
        let work = work(&self)?;
        let workflow_runs = matches!(work, WorkRequest::Workflow(_));
        let schedule = filled(self.schedule);
        let time = match (filled(self.when), schedule, self.schedule_type) {
            (Some(words), None, _) => WorkTime::Words(words),
            (None, Some(text), Some(kind)) => WorkTime::Schedule {
                kind: kind.into(),
                text,
            },
            (None, Some(_), None) => {
                return Err(ToolError(
                    "`schedule_type` is missing: cron, every or at".to_owned(),
                ));
            }
            (Some(_), Some(_), _) => {
                return Err(ToolError("give `when` or `schedule`, not both".to_owned()));
            }
            (None, None, _) if workflow_runs => WorkTime::OfWorkflow,
            (None, None, _) => {
                return Err(ToolError(
                    "the time is missing: give `when`, such as \"tomorrow at 9\", or `schedule_type` and `schedule`"
                        .to_owned(),
                ));
            }
        };
        Ok(JobRequest {
            name: filled(self.name),
            time,
            work,
            timezone: filled(self.timezone),
            catch_up: self.catch_up.unwrap_or_default().into(),
            overlap: self.overlap.unwrap_or_default().into(),
            options: RunOptions {
                session_mode: self.session_mode.unwrap_or_default().into(),
                deliver_to: self.deliver_to.unwrap_or_default(),
                failure_deliver_to: self.failure_deliver_to.unwrap_or_default(),
                timeout: filled(self.timeout),
                budget: self.budget.unwrap_or_default().into(),
                allow: self.allow.unwrap_or_default(),
            },
        })
    }
}

fn work(args: &CronAddArgs) -> Result<WorkRequest, ToolError> {
    let text = |text: &Option<String>| filled(text.clone());
    let (prompt, reminder) = (text(&args.prompt), text(&args.reminder));
    match (prompt, reminder, text(&args.workflow)) {
        (Some(text), None, None) => Ok(WorkRequest::Prompt {
            text,
            agent: filled(args.agent.clone()),
        }),
        (None, Some(text), None) => Ok(WorkRequest::Reminder(text)),
        (None, None, Some(name)) => Ok(WorkRequest::Workflow(WorkflowRequest {
            source: WorkflowSource::Saved(name),
            params: args.params.clone().unwrap_or_default(),
        })),
        (None, None, None) if text(&args.when).is_some() => Ok(WorkRequest::InSentence),
        (None, None, None) => Err(ToolError(
            "say what to do: give `prompt`, `reminder` or `workflow`".to_owned(),
        )),
        _ => Err(ToolError(
            "give one of `prompt`, `reminder` and `workflow`, not several".to_owned(),
        )),
    }
}
