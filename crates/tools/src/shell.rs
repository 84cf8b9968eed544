//! Runs commands in the sandbox. Their output is shown while they run, and they end with the tool
//! call.

mod capture;
mod command;
mod command_kind;
mod environment;
mod jobs;
mod outputs;
mod process;
mod report;
mod settings;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lango_domain::{ToolContext, ToolError};

use crate::files::{Journal, Workspace};
use crate::sandbox::{readable_etc, remove_stale_temp_dirs};
use jobs::ShellJobs;
use outputs::OutputStore;
use process::RunningCommand;

pub use command::{CommandRequest, Program};
pub use outputs::delete_outputs;
pub use process::probe_confinement;
pub use settings::{ExecSettings, SandboxChoice};
pub use tools::tools;

/// Runs commands in the sandbox. Cheap to clone.
#[derive(Clone)]
pub struct Shell {
    inner: Arc<ShellInner>,
}

struct ShellInner {
    parts: ShellParts,
    outputs: OutputStore,
    jobs: ShellJobs,
    /// Computed for the first command.
    readable_etc: OnceLock<Vec<PathBuf>>,
}

/// Constructor arguments of a [`Shell`].
pub struct ShellParts {
    pub workspace: Workspace,
    pub journal: Journal,
    pub settings: ExecSettings,
    /// Folders of `tools.exec.read`, as absolute paths.
    pub read: Vec<PathBuf>,
    /// Lango's own folders, which no command may access.
    pub hidden: Vec<PathBuf>,
    /// The program to start as the sandbox helper, usually this one.
    pub helper: PathBuf,
    /// The environment of this process. Commands see only a few of its variables.
    pub variables: BTreeMap<String, String>,
    /// The data folder, for complete outputs.
    pub data: Option<PathBuf>,
    /// The upper limit for the timeout of a call.
    pub max_duration: Duration,
}

impl ShellParts {
    /// Returns the folder in which temporary folders of commands are created.
    fn temp_root(&self) -> PathBuf {
        let configured = self
            .variables
            .get("TMPDIR")
            .filter(|folder| !folder.is_empty());
        configured.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    }
}

impl Shell {
    pub fn new(parts: ShellParts) -> Self {
        let outputs = OutputStore::in_folder(parts.data.as_deref());
        Self {
            inner: Arc::new(ShellInner {
                parts,
                outputs,
                jobs: ShellJobs::default(),
                readable_etc: OnceLock::new(),
            }),
        }
    }

    /// Runs a command to its end and returns the result for the model: exit code, duration, head
    /// and tail of the output. An exit code other than 0 is an error with the same text.
    pub async fn run(
        &self,
        context: &ToolContext,
        request: CommandRequest,
    ) -> Result<String, ToolError> {
        let parts = &self.inner.parts;
        let default = Duration::from_secs(parts.settings.seconds.get());
        let timeout = request.timeout.unwrap_or(default).min(parts.max_duration);
        let (line, folder) = (request.command_line(), request.folder.clone());
        let output = self.inner.outputs.create(context);
        let (public, redactor) = (self.readable_etc_paths(), &context.redactor);
        let mut running = RunningCommand::start(parts, public, request, output, redactor).await?;
        self.record_command(context, folder, line);
        let result = running.finish(timeout, &context.output_sink).await;
        report::format_result(parts, &result)
    }

    fn readable_etc_paths(&self) -> &[PathBuf] {
        self.inner.readable_etc.get_or_init(|| {
            // Folders left by a Lango process that was killed.
            remove_stale_temp_dirs(&self.inner.parts.temp_root());
            readable_etc()
        })
    }

    /// Records the command for `lango undo`, which lists it but cannot undo it. Written while the
    /// command runs.
    fn record_command(&self, context: &ToolContext, folder: PathBuf, line: String) {
        let (journal, context) = (self.inner.parts.journal.clone(), context.clone());
        let line = context.redactor.redact(&line).into_owned();
        tokio::task::spawn_blocking(move || journal.record_command(&context, &folder, &line));
    }
}
