//! Plans background tasks, runs of workflows, and runs of jobs out of turn.

use lango_domain::Safety;
use lango_domain::automation::{Job, NewRun, OverlapRule, Run, RunKind, RunQuery, RunState};
use lango_text::sanitize::truncated_line;

use super::WorkPlanner;
use super::caller::Requester;
use super::error::PlanError;
use super::request::{RunOptions, RunRequest, WorkflowRequest};
use super::work::{PlannedAction, PlannedWork};
use crate::occurrences::MAX_QUEUED;
use crate::workflow::Workflow;

/// The longest name of a background task.
const MAX_TASK_NAME_CHARS: usize = 60;
const OPEN_STATES: [RunState; 3] = [RunState::Queued, RunState::Running, RunState::Waiting];

/// A run that was checked and can be submitted.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    pub run: NewRun,
    /// The level at which submitting it is approved.
    pub level: Safety,
    /// The workflow, if it runs one.
    pub workflow: Option<Workflow>,
}

impl WorkPlanner<'_> {
    /// Checks a request for a background task.
    pub async fn plan_task(
        &self,
        requester: &Requester,
        request: &RunRequest,
    ) -> Result<PlannedRun, PlanError> {
        let action = self.prompt(&request.prompt, request.agent.as_deref())?;
        self.plan_run(requester, action, &request.options, RunKind::Background)
            .await
    }

    /// Checks a request to run a workflow now.
    pub async fn plan_workflow(
        &self,
        requester: &Requester,
        request: &WorkflowRequest,
        options: &RunOptions,
    ) -> Result<PlannedRun, PlanError> {
        let action = self.workflow(&requester.principal, request).await?;
        self.plan_run(requester, action, options, RunKind::Workflow)
            .await
    }

    async fn plan_run(
        &self,
        requester: &Requester,
        action: PlannedAction,
        options: &RunOptions,
        kind: RunKind,
    ) -> Result<PlannedRun, PlanError> {
        let caller = self.calling_run(requester).await?;
        let work = self.work(action, options, requester, caller.as_ref())?;
        self.check_open_runs(requester, kind).await?;
        let PlannedWork {
            title,
            spec,
            level,
            workflow,
        } = work;
        let run = NewRun {
            kind,
            job: None,
            principal: requester.principal.clone(),
            name: truncated_line(&title, MAX_TASK_NAME_CHARS),
            due: self.now,
            spec,
        };
        Ok(PlannedRun {
            run,
            level,
            workflow,
        })
    }

    /// Returns a run of a job out of turn. It has the permissions of the job, and its overlap rule holds.
    pub async fn plan_job_run(&self, job: &Job) -> Result<PlannedRun, PlanError> {
        let open = self.store.open_runs(job.id).await?;
        match open.first() {
            Some(run) if job.overlap == OverlapRule::Skip || open.len() >= MAX_QUEUED => {
                return Err(PlanError::NotOver {
                    job: job.name.clone(),
                    run: run.id,
                });
            }
            _ => {}
        }
        Ok(PlannedRun {
            run: NewRun {
                kind: RunKind::Job,
                job: Some(job.id),
                principal: job.principal.clone(),
                name: job.name.clone(),
                due: self.now,
                spec: job.spec.clone(),
            },
            level: Safety::Moderate,
            workflow: None,
        })
    }

    /// Queues a planned run.
    pub async fn submit(&self, planned: &PlannedRun) -> Result<Run, PlanError> {
        Ok(self.store.submit_run(planned.run.clone()).await?)
    }

    async fn check_open_runs(&self, requester: &Requester, kind: RunKind) -> Result<(), PlanError> {
        let (limit, what, setting) = match kind {
            RunKind::Workflow => (
                self.limits.max_workflow_runs,
                "runs of workflows",
                "workflow.maxOpen",
            ),
            _ => (
                self.limits.max_tasks,
                "background tasks",
                "background.maxOpen",
            ),
        };
        let query = RunQuery {
            kinds: vec![kind],
            states: OPEN_STATES.to_vec(),
            ..RunQuery::newest(requester.principal.clone(), limit)
        };
        let count = self.store.runs(query).await?.len();
        match count >= limit {
            true => Err(PlanError::TooManyOpen {
                count,
                what,
                setting,
            }),
            false => Ok(()),
        }
    }
}
