//! Commands that run beside the conversation. They end with Lango, and belong to the session that started them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lango_domain::session::SessionKey;
use lango_domain::{ToolContext, ToolError, ToolOutputSink};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::process::RunningCommand;
use super::{Shell, report};

/// Of one Lango so many run at one time.
const MAX_JOBS: usize = 16;
/// Nobody needs a command for longer.
const MAX_JOB_TIME: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Default)]
pub struct ShellJobs {
    all: Mutex<BTreeMap<String, Arc<ShellJob>>>,
}

pub struct ShellJob {
    owner: SessionKey,
    pub command: String,
    started: Instant,
    task: AbortHandle,
    /// What came of it, once it ended.
    pub result: watch::Receiver<Option<Result<String, String>>>,
}

impl ShellJob {
    pub fn is_running(&self) -> bool {
        self.result.borrow().is_none() && !self.task.is_finished()
    }

    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }
}

impl ShellJobs {
    /// Lets a command that was started run on; its id is that of its output.
    pub fn adopt(
        &self,
        shell: &Shell,
        context: &ToolContext,
        line: String,
        mut running: RunningCommand,
    ) -> String {
        let id = running.id().to_owned();
        let (tell, end) = watch::channel(None);
        let parts = Arc::clone(&shell.inner);
        let task = tokio::spawn(async move {
            let ended = running
                .finish(MAX_JOB_TIME, &ToolOutputSink::disconnected())
                .await;
            let worded = report::format_result(&parts.parts, &ended);
            let _ = tell.send(Some(worded.map_err(|ToolError(why)| why)));
        });
        let owner = context.session_key();
        let job = ShellJob {
            owner,
            command: line,
            started: Instant::now(),
            task: task.abort_handle(),
            result: end,
        };
        self.all().insert(id.clone(), Arc::new(job));
        id
    }

    pub fn check_capacity(&self) -> Result<(), ToolError> {
        let running = self.all().values().filter(|job| job.is_running()).count();
        if running < MAX_JOBS {
            return Ok(());
        }
        Err(ToolError(format!(
            "{MAX_JOBS} commands run already; stop one first (exec_stop)"
        )))
    }

    pub fn find(&self, context: &ToolContext, id: &str) -> Result<Arc<ShellJob>, ToolError> {
        let all = self.all();
        let own: Vec<(&String, &Arc<ShellJob>)> = all
            .iter()
            .filter(|(_, job)| job.is_owned_by(context))
            .collect();
        if let Some((_, job)) = own.iter().find(|(known, _)| *known == id) {
            return Ok(Arc::clone(job));
        }
        let ids: Vec<&str> = own.iter().map(|(id, _)| id.as_str()).collect();
        let known = if ids.is_empty() {
            "none was started here".to_owned()
        } else {
            ids.join(", ")
        };
        Err(ToolError(format!(
            "no command with the id {id}; started were: {known}"
        )))
    }

    /// Those of this session, newest last.
    pub fn list(&self, context: &ToolContext) -> Vec<(String, Arc<ShellJob>)> {
        let own = self
            .all()
            .iter()
            .filter(|(_, job)| job.is_owned_by(context))
            .map(|(id, job)| (id.clone(), Arc::clone(job)))
            .collect();
        let mut own: Vec<(String, Arc<ShellJob>)> = own;
        own.sort_by_key(|(_, job)| job.started);
        own
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ShellJob>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShellJob {
    /// Dropping the task's work ends the command.
    pub fn stop(&self) {
        self.task.abort();
    }

    fn is_owned_by(&self, context: &ToolContext) -> bool {
        self.owner == context.session_key()
    }
}
