//! Commands: each runs in the sandbox, is shown while it runs, and ends with its call.

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

/// Runs programs in the sandbox; cheap to clone.
#[derive(Clone)]
pub struct Shell {
    inner: Arc<ShellInner>,
}

struct ShellInner {
    parts: ShellParts,
    outputs: OutputStore,
    jobs: ShellJobs,
    /// Looked up for the first command.
    readable_etc: OnceLock<Vec<PathBuf>>,
}

/// What a shell is made of.
pub struct ShellParts {
    pub workspace: Workspace,
    pub journal: Journal,
    pub settings: ExecSettings,
    /// Folders of `tools.exec.read`, in full.
    pub read: Vec<PathBuf>,
    /// Lango's own folders: out of reach for every command.
    pub hidden: Vec<PathBuf>,
    /// The program that becomes the sandbox's helper: this one, started anew.
    pub helper: PathBuf,
    /// The variables of this process, of which a command sees a few.
    pub variables: BTreeMap<String, String>,
    /// Where whole outputs are kept.
    pub data: Option<PathBuf>,
    /// No call may take longer.
    pub max_duration: Duration,
}

impl ShellParts {
    /// Where the temporary folders of commands are made.
    fn temp_root(&self) -> PathBuf {
        let named = self
            .variables
            .get("TMPDIR")
            .filter(|folder| !folder.is_empty());
        named.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
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

    /// Runs it to its end and words what came of it for a model: exit code, duration, output (head and tail). What did
    /// not end with 0 is a failure that says the same.
    pub async fn run(
        &self,
        context: &ToolContext,
        errand: CommandRequest,
    ) -> Result<String, ToolError> {
        let parts = &self.inner.parts;
        let usual = Duration::from_secs(parts.settings.seconds.get());
        let time = errand.timeout.unwrap_or(usual).min(parts.max_duration);
        let (line, folder) = (errand.command_line(), errand.folder.clone());
        let output = self.inner.outputs.create(context);
        let mut running =
            RunningCommand::start(parts, self.readable_etc_paths(), errand, output).await?;
        self.record_command(context, folder, line);
        let ended = running.finish(time, &context.output_sink).await;
        report::format_result(parts, &ended)
    }

    fn readable_etc_paths(&self) -> &[PathBuf] {
        self.inner.readable_etc.get_or_init(|| {
            // What is found on the way to the first command: folders of a Lango that was killed.
            remove_stale_temp_dirs(&self.inner.parts.temp_root());
            readable_etc()
        })
    }

    /// For `lango undo`, which cannot take it back; written while the command runs.
    fn record_command(&self, context: &ToolContext, folder: PathBuf, line: String) {
        let (journal, context) = (self.inner.parts.journal.clone(), context.clone());
        tokio::task::spawn_blocking(move || journal.record_command(&context, &folder, &line));
    }
}
