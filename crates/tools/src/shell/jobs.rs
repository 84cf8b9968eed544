//! Background commands. They belong to the session that started them and end with the Lango
//! process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lango_domain::session::SessionKey;
use lango_domain::{ToolContext, ToolError, ToolOutputSink};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::process::RunningCommand;
use super::{Shell, report};

/// Maximum number of background commands that run at the same time.
const MAX_JOBS: usize = 16;
/// Timeout of a background command.
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
    /// The result, once the command has ended.
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
    /// Runs a started command in the background. Its id is the id of its output.
    pub fn adopt(
        &self,
        shell: &Shell,
        context: &ToolContext,
        line: String,
        mut running: RunningCommand,
    ) -> String {
        let id = running.id().to_owned();
        let (sender, receiver) = watch::channel(None);
        let inner = Arc::clone(&shell.inner);
        let task = tokio::spawn(async move {
            let result = running
                .finish(MAX_JOB_TIME, &ToolOutputSink::disconnected())
                .await;
            let text = report::format_result(&inner.parts, &result);
            let _ = sender.send(Some(text.map_err(|ToolError(reason)| reason)));
        });
        let owner = context.session_key();
        let job = ShellJob {
            owner,
            command: line,
            started: Instant::now(),
            task: task.abort_handle(),
            result: receiver,
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
            "{MAX_JOBS} background commands are running; stop one first (exec_stop)"
        )))
    }

    pub fn find(&self, context: &ToolContext, id: &str) -> Result<Arc<ShellJob>, ToolError> {
        let all = self.all();
        let own: Vec<(&String, &Arc<ShellJob>)> = all
            .iter()
            .filter(|(_, job)| job.is_owned_by(context))
            .collect();
        if let Some((_, job)) = own.iter().find(|(own_id, _)| *own_id == id) {
            return Ok(Arc::clone(job));
        }
        let ids: Vec<&str> = own.iter().map(|(id, _)| id.as_str()).collect();
        let known = if ids.is_empty() {
            "none was started in this session".to_owned()
        } else {
            ids.join(", ")
        };
        Err(ToolError(format!(
            "no command with the id {id}; started commands: {known}"
        )))
    }

    /// Returns the jobs of this session, newest last.
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
    /// Aborts the task, which kills the command.
    pub fn stop(&self) {
        self.task.abort();
    }

    fn is_owned_by(&self, context: &ToolContext) -> bool {
        self.owner == context.session_key()
    }
}
