//! Drives a run of a workflow: asks for the next moves, stores them, and runs steps.
//!
//! A step is stored as running before it starts, and its result together with the start of the next steps.
//! So a step that is done never runs again, and a step that may have run is known (B122).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use jiff::Timestamp;
use lango_domain::StoreError;
use lango_domain::automation::{JobAction, Run, RunStep, StepState};
use lango_domain::session::SessionKey;

use super::file::parse_workflow;
use super::planner::{RunEnding, ending};
use super::progress::{StepStart, WorkflowProgress};
use super::report;
use super::step_attempt::StepAttempt;
use super::step_call::step_session;
use super::step_executor::{StepCall, StepExecutor, StepOutcome, StepRequest};
use crate::execution::{RunContext, RunExecutor, RunOutcome};

/// The longest wait between attempts to store steps.
const MAX_STORE_RETRY: Duration = Duration::from_secs(30);

/// Settings of workflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkflowSettings {
    /// The time that a step waits for its approval if the file does not say.
    pub approval_deadline: Duration,
    /// A run whose next step continues within this time is held; otherwise no process holds it meanwhile.
    pub hold: Duration,
    /// The interval at which answers of other processes are looked for while other steps run.
    pub answer_poll: Duration,
    /// The time that stopped steps have to end.
    pub stop_grace: Duration,
    /// The wait before steps that could not be stored are stored again. It doubles each time.
    pub store_retry: Duration,
    /// Most attempts to store steps. The waits between them are longer than a lease lasts, so that a store
    /// that works again finds the run with this process or the next.
    pub store_attempts: u32,
}

impl Default for WorkflowSettings {
    fn default() -> Self {
        Self {
            approval_deadline: Duration::from_secs(24 * 60 * 60),
            hold: Duration::from_secs(5),
            answer_poll: Duration::from_secs(2),
            stop_grace: Duration::from_secs(5),
            store_retry: Duration::from_secs(1),
            store_attempts: 10,
        }
    }
}

/// Executes the runs of workflows.
#[derive(Clone)]
pub struct WorkflowDriver {
    executor: Arc<dyn StepExecutor>,
    settings: WorkflowSettings,
}

impl WorkflowDriver {
    pub fn new(executor: Arc<dyn StepExecutor>, settings: WorkflowSettings) -> Self {
        Self { executor, settings }
    }

    async fn drive(&self, run: &Run, context: &RunContext) -> Result<RunOutcome, StoreError> {
        let JobAction::Workflow {
            name,
            definition,
            params,
        } = &run.spec.action
        else {
            return Ok(RunOutcome::failed("the run is not one of a workflow"));
        };
        let workflow = match parse_workflow(name, definition, None) {
            Ok(workflow) => workflow,
            Err(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                return Ok(RunOutcome::failed(errors.join("\n")));
            }
        };
        let params = match workflow.bind_params(params) {
            Ok(params) => params,
            Err(error) => return Ok(RunOutcome::failed(error.to_string())),
        };
        let mut active = ActiveWorkflow {
            driver: self,
            context,
            progress: WorkflowProgress::new(
                run,
                &workflow,
                &params,
                self.settings.approval_deadline,
            ),
            running: FuturesUnordered::new(),
        };
        active.load().await?;
        active.run_to_end().await
    }

    /// Returns the steps that an earlier process left running, and whose log tells how far they came.
    async fn resumable_steps(
        &self,
        run: &Run,
        stored: &[RunStep],
    ) -> Result<HashSet<String>, StoreError> {
        let mut resumable = HashSet::new();
        for row in stored.iter().filter(|row| row.state == StepState::Running) {
            let Some(session) = row.session.clone() else {
                continue;
            };
            let principal = run.principal.clone();
            let key = SessionKey { session, principal };
            if self.executor.is_progress_known(key).await? {
                resumable.insert(row.step.clone());
            }
        }
        Ok(resumable)
    }
}

impl RunExecutor for WorkflowDriver {
    fn execute<'a>(
        &'a self,
        run: &'a Run,
        context: &'a RunContext,
    ) -> BoxFuture<'a, Result<RunOutcome, StoreError>> {
        self.drive(run, context).boxed()
    }
}

/// A run while a process holds it.
struct ActiveWorkflow<'a> {
    driver: &'a WorkflowDriver,
    context: &'a RunContext,
    progress: WorkflowProgress<'a>,
    running: FuturesUnordered<BoxFuture<'a, (String, StepOutcome)>>,
}

impl ActiveWorkflow<'_> {
    async fn load(&mut self) -> Result<(), StoreError> {
        let run = self.progress.run;
        let stored = self.context.store.steps(&run.principal, run.id).await?;
        let driver = self.driver;
        let resumable = driver.resumable_steps(run, &stored).await?;
        let executor = &driver.executor;
        let can_continue = |step: &str, call: &StepCall| match call {
            StepCall::Agent { .. } => true,
            StepCall::Tool { tool, arguments } => {
                resumable.contains(step) || executor.is_read_only(run, tool, arguments)
            }
        };
        self.progress
            .load(stored, &can_continue, self.context.now());
        Ok(())
    }

    async fn run_to_end(&mut self) -> Result<RunOutcome, StoreError> {
        loop {
            if self.context.cancel.is_cancelled() {
                return self.cancel().await;
            }
            if self.context.suspend.is_cancelled() {
                return self.suspend().await;
            }
            let plan = self.progress.advance(self.context.now());
            self.store_changes().await?;
            self.start_steps();
            if plan.is_over {
                return Ok(self.outcome());
            }
            let wake_in = plan.wake_at.map(|at| until(self.context.now(), at));
            let is_short = wake_in.is_some_and(|wait| wait <= self.driver.settings.hold);
            if self.running.is_empty() && !(is_short && plan.questions.is_empty()) {
                return Ok(RunOutcome::Waiting {
                    reason: report::waiting_reason(&plan),
                    resume_at: plan.resume_at(self.context.now()),
                });
            }
            self.wait(wake_in, !plan.questions.is_empty()).await?;
        }
    }

    /// Stores all changes in one write.
    async fn store_changes(&mut self) -> Result<(), StoreError> {
        let (rows, deliveries) = self.progress.take_changes();
        if rows.is_empty() && deliveries.is_empty() {
            return Ok(());
        }
        // Steps that run must not be given up because the store fails for a while.
        let mut wait = self.driver.settings.store_retry;
        for attempt in 1_u32.. {
            let stored = self
                .context
                .record_steps(rows.clone(), deliveries.clone())
                .await;
            match stored {
                Err(StoreError::LeaseLost) | Ok(()) => return stored,
                Err(error)
                    if attempt >= self.driver.settings.store_attempts
                        || self.context.suspend.is_cancelled() =>
                {
                    return Err(error);
                }
                Err(error) => tracing::warn!(%error, "the steps of a run cannot be stored"),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(MAX_STORE_RETRY);
        }
        Ok(())
    }

    fn start_steps(&mut self) {
        let (context, run) = (self.context, self.progress.run);
        for start in self.progress.take_starts() {
            let StepStart {
                step: id,
                work,
                is_resumed,
            } = start;
            let step = self.progress.workflow.step(&id);
            let (Some(row), Some(step)) = (self.progress.rows.get(&id), step) else {
                continue;
            };
            let session = row.session.clone().unwrap_or_else(|| {
                step_session(run.id, &id, row.attempt, row.started.unwrap_or(run.created))
            });
            let request = StepRequest {
                run,
                context,
                step: id.clone(),
                attempt: row.attempt,
                call: work.call,
                session,
                is_resumed,
                label: work.label.joined(&run.spec.label),
                cancel: context.cancel.child_token(),
            };
            let attempt = StepAttempt {
                executor: &*self.driver.executor,
                timeout: step.timeout,
                grace: self.driver.settings.stop_grace,
            };
            let running = async move { (id, attempt.run(request).await) };
            self.running.push(running.boxed());
        }
    }

    /// Waits until a step ends, a time comes, an answer arrives or the run is stopped.
    async fn wait(
        &mut self,
        wake_in: Option<Duration>,
        has_questions: bool,
    ) -> Result<(), StoreError> {
        let wake = tokio::time::sleep(wake_in.unwrap_or_default());
        let poll = tokio::time::sleep(self.driver.settings.answer_poll);
        tokio::select! {
            biased;
            () = self.context.cancel.cancelled() => {}
            () = self.context.suspend.cancelled() => {}
            Some((id, outcome)) = self.running.next() => {
                let now = self.context.now();
                let mut ended = vec![(id, outcome)];
                // What ended at the same time is stored in the same write.
                while let Some(Some(end)) = self.running.next().now_or_never() {
                    ended.push(end);
                }
                for (id, outcome) in ended {
                    if let StepOutcome::StoreFailed(error) = outcome {
                        return Err(error);
                    }
                    self.progress.finish(&id, outcome, now);
                }
            }
            () = wake, if wake_in.is_some() => {}
            () = poll, if has_questions => {
                // Another process may have stored an answer.
                let run = self.progress.run;
                let stored = self.context.store.steps(&run.principal, run.id).await?;
                self.progress.take_answers(stored);
            }
        }
        Ok(())
    }

    /// Ends the run as cancelled, after its steps had time to stop.
    async fn cancel(&mut self) -> Result<RunOutcome, StoreError> {
        self.drain(|outcome| matches!(outcome, StepOutcome::Done(_)))
            .await;
        self.progress.cancel_open_steps(self.context.now());
        self.store_changes().await?;
        Ok(RunOutcome::Cancelled)
    }

    /// Leaves the run to the next process. Steps that end in time are stored.
    async fn suspend(&mut self) -> Result<RunOutcome, StoreError> {
        self.drain(|_| true).await;
        self.store_changes().await?;
        Ok(RunOutcome::Suspended)
    }

    /// Gives running steps time to stop. Outcomes that do not count leave their step running.
    async fn drain(&mut self, counts: impl Fn(&StepOutcome) -> bool) {
        let deadline = tokio::time::sleep(self.driver.settings.stop_grace);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                ended = self.running.next() => match ended {
                    Some((id, outcome)) if counts(&outcome) => {
                        self.progress.finish(&id, outcome, self.context.now());
                    }
                    Some(_) => {}
                    None => return,
                },
                () = &mut deadline => return,
            }
        }
    }

    fn outcome(&self) -> RunOutcome {
        let (workflow, rows) = (self.progress.workflow, &self.progress.rows);
        let (result, label) = report::run_result(workflow, rows);
        match ending(workflow, rows) {
            RunEnding::Done => RunOutcome::Done { result, label },
            RunEnding::Failed { error } => RunOutcome::Failed {
                error,
                result: Some(result).filter(|result| !result.is_empty()),
                label,
            },
        }
    }
}

fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
