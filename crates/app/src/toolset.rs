//! Assembles the built-in tools: the workspace, commands and skills.

mod workspace_access;

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lango_automation::SchedulerWake;
use lango_automation::planning::SharedCatalog;
use lango_browser::Navigator;
use lango_documents::DocumentAccess;
use lango_domain::{Generation, Tool, ToolError};
use lango_engine::{ApprovalPolicy, Verdict};
use lango_mcp::McpServer;
use lango_tools::files::{self, DenyRead, FileTools, UndoStorage, Workspace, WorkspaceLimits};
use lango_tools::shell::{self, Shell, ShellParts};
use lango_tools::skills::{self, SkillCatalog, SkillSettings, TrustFile};
use lango_vault::SharedPrompt;

use self::workspace_access::WorkspaceAccess;
use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;

/// A command is ended this much before the limit of its tool call, so that its output is not lost.
const COMMAND_TIMEOUT_MARGIN: Duration = Duration::from_secs(3);

/// The built-in tools that the settings enable, with their workspace and skills.
pub struct Toolset {
    files: FileTools,
    shell: Shell,
    skills: SkillCatalog,
    folders: ToolsetFolders,
    /// The reason why there is no workspace.
    disabled_reason: Option<String>,
    approval: ApprovalPolicy,
    generation: Generation,
    scheduler_wake: SchedulerWake,
    catalog: SharedCatalog,
    secret_prompt: SharedPrompt,
    /// Kept here, so that reloaded tools see the same pages.
    navigator: OnceLock<Arc<Navigator>>,
    /// Kept here, so that reloaded tools use the same running servers.
    pub(crate) tool_servers: OnceLock<Vec<Arc<McpServer>>>,
}

/// The folders from which skills are loaded.
struct ToolsetFolders {
    /// The workspace, for the skills of the project.
    project: Option<PathBuf>,
    user: Option<PathBuf>,
    /// The folder of the list of trusted skills.
    data: Option<PathBuf>,
}

impl Toolset {
    pub fn new(loaded: &LoadedConfig, environment: &Environment) -> Result<Self, ConfigError> {
        let (workspace, no_workspace) = workspace(loaded, environment)?;
        let folders = ToolsetFolders {
            project: no_workspace
                .is_none()
                .then(|| workspace.root().to_path_buf()),
            user: environment.config_folder(),
            data: environment.data_folder(),
        };
        let undo_storage = undo_storage(environment);
        let shell = Shell::new(shell_parts(
            loaded,
            environment,
            workspace.clone(),
            &undo_storage,
        ));
        let skills = folders.load_skills();
        let (files, approval) = (
            FileTools {
                workspace,
                undo_storage,
            },
            loaded.settings.security.approval.clone(),
        );
        Ok(Self {
            files,
            shell,
            skills,
            folders,
            disabled_reason: no_workspace,
            approval,
            generation: Generation::default(),
            scheduler_wake: SchedulerWake::default(),
            catalog: SharedCatalog::default(),
            secret_prompt: SharedPrompt::default(),
            navigator: OnceLock::new(),
            tool_servers: OnceLock::new(),
        })
    }

    pub fn tools(&self) -> Vec<Tool> {
        let settings = SkillSettings {
            user_folder: self.folders.user.clone(),
            workspace: self.files.workspace.root().to_path_buf(),
        };
        let mut tools = shell::tools(&self.shell);
        tools.extend(files::tools(self.files.clone()));
        if let Some(reason) = &self.disabled_reason {
            tools = tools
                .into_iter()
                .map(|tool| disabled_tool(tool, reason))
                .collect();
        }
        tools.extend(skills::tools(&self.skills, self.shell.clone(), settings));
        tools
    }

    /// Shares the waking of the scheduler with another toolset.
    #[must_use]
    pub(crate) fn with_scheduler_wake(mut self, wake: SchedulerWake) -> Self {
        self.scheduler_wake = wake;
        self
    }

    /// Returns what wakes the scheduler of this process when a tool changes its work.
    pub fn scheduler_wake(&self) -> &SchedulerWake {
        &self.scheduler_wake
    }

    /// Returns the navigator, which `build` creates once.
    pub(crate) fn navigator(&self, build: impl FnOnce() -> Arc<Navigator>) -> &Arc<Navigator> {
        self.navigator.get_or_init(build)
    }

    /// Returns the names that jobs and workflows can use. The build of a team sets them.
    pub fn catalog(&self) -> &SharedCatalog {
        &self.catalog
    }

    /// Returns the prompt for secrets, which a terminal sets.
    pub fn secret_prompt(&self) -> &SharedPrompt {
        &self.secret_prompt
    }

    /// Returns the real path of the workspace.
    pub fn workspace_root(&self) -> &Path {
        self.files.workspace.root()
    }

    pub fn workspace(&self) -> &Workspace {
        &self.files.workspace
    }

    /// Saves a new file in the workspace for another tool.
    pub(crate) fn file_saver(&self) -> lango_browser::FileSaver {
        let (files, disabled) = (self.files.clone(), self.disabled_reason.clone());
        Arc::new(move |context, path, bytes| match &disabled {
            Some(reason) => Err(reason.clone()),
            None => files
                .save_new(context, path, bytes)
                .map_err(|error| error.0),
        })
    }

    /// Returns access to the workspace for indexing documents.
    pub fn document_access(&self) -> Arc<dyn DocumentAccess> {
        Arc::new(WorkspaceAccess {
            workspace: self.files.workspace.clone(),
            disabled_reason: self.disabled_reason.clone(),
            approval: self.approval.clone(),
        })
    }

    /// Returns warnings about the skills.
    pub fn warnings(&self) -> Vec<String> {
        self.skills.warnings().to_vec()
    }

    /// Reloads the skills if they changed. Returns true if they did.
    pub fn reload_skills(&mut self) -> bool {
        if self.skills.is_current() {
            return false;
        }
        self.skills = self.folders.load_skills();
        self.generation.advance();
        true
    }

    /// Returns the generation of the tools, which other sources of tools and agents share.
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    pub fn skills(&self) -> &SkillCatalog {
        &self.skills
    }
}

impl ToolsetFolders {
    fn load_skills(&self) -> SkillCatalog {
        let trusted = TrustFile::new(
            self.data
                .as_ref()
                .map(|data| data.join("trusted-skills.json")),
        );
        SkillCatalog::load(self.project.as_deref(), self.user.as_deref(), trusted)
    }
}

/// Returns the storage of deleted and changed files.
pub fn undo_storage(environment: &Environment) -> UndoStorage {
    UndoStorage::in_folder(environment.data_folder().as_deref())
}

/// Returns the workspace folder, and the reason why it may not be used.
pub fn workspace_folder(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> (PathBuf, Option<String>) {
    let configured = &loaded.settings.tools.workspace;
    let folder = match configured {
        Some(path) => loaded.resolve(
            environment,
            "tools.workspace",
            &expand_home(environment, path),
        ),
        None => environment.working_folder.clone(),
    };
    let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let home = environment
        .get("HOME")
        .and_then(|home| Path::new(home).canonicalize().ok());
    let broad_folder = match () {
        () if configured.is_some() => None,
        () if Some(&real) == home.as_ref() => Some("your home folder"),
        () if real == Path::new("/") => Some("the whole machine"),
        () => None,
    };
    let reason = broad_folder.map(|description| {
        format!(
            "the current folder is {description}, which is not used as a workspace by default; \
             start in a project's folder, or pass --workspace"
        )
    });
    (folder, reason)
}

/// Returns the mechanisms that confine commands on this system.
pub async fn confinement(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<Vec<String>, String> {
    let (workspace, _) = workspace(loaded, environment).map_err(|error| error.message)?;
    let parts = shell_parts(
        loaded,
        environment,
        workspace,
        &UndoStorage::in_folder(None),
    );
    shell::probe_confinement(&parts).await
}

fn workspace(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<(Workspace, Option<String>), ConfigError> {
    let (folder, reason) = workspace_folder(loaded, environment);
    let hidden = own_folders(environment);
    create_own_folders(&folder, &hidden);
    let limits = WorkspaceLimits {
        hidden: hidden.clone(),
        deny_read: denied_reads(loaded),
        instruction_paths: instruction_paths(loaded, environment),
    };
    let workspace = Workspace::open_with_limits(&folder, limits).map_err(|error| {
        ConfigError::new(format!(
            "cannot open the workspace {}: {error}",
            folder.display()
        ))
    })?;
    let is_own = hidden.iter().any(|own| workspace.root().starts_with(own));
    let own_reason = is_own.then(|| "the workspace is one of Lango's own folders".to_owned());
    Ok((workspace, own_reason.or(reason)))
}

/// Returns a filter that hides files whose reading is denied from listings and searches.
fn denied_reads(loaded: &LoadedConfig) -> DenyRead {
    let approval = loaded.settings.security.approval.clone();
    Box::new(move |path| approval.for_read(path) == Verdict::Deny)
}

/// Returns the paths of settings, agents and prompts. A change there changes the instructions of
/// the team.
fn instruction_paths(loaded: &LoadedConfig, environment: &Environment) -> Vec<PathBuf> {
    let team = &loaded.settings.agent.team;
    let configured = [
        ("agent.agentsDir", &team.agents_dir),
        ("agent.promptsDir", &team.prompts_dir),
    ];
    let configured = configured
        .into_iter()
        .filter_map(|(key, folder)| Some((key, folder.as_ref()?)));
    let configured = configured.map(|(key, folder)| loaded.resolve(environment, key, folder));
    configured
        .chain(
            loaded
                .files
                .iter()
                .map(|file| environment.working_folder.join(file)),
        )
        .collect()
}

/// Returns Lango's own folders, which no tool may access.
pub(crate) fn own_folders(environment: &Environment) -> Vec<PathBuf> {
    let folders = [environment.data_folder(), environment.config_folder()]
        .into_iter()
        .flatten();
    let mut folders: Vec<PathBuf> = folders
        .map(|folder| folder.canonicalize().unwrap_or(folder))
        .collect();
    folders.dedup();
    folders
}

/// Creates Lango's own folders in the workspace, so that no command can create them first.
fn create_own_folders(workspace: &Path, own_folders: &[PathBuf]) {
    let Ok(workspace) = workspace.canonicalize() else {
        return;
    };
    for folder in own_folders
        .iter()
        .filter(|folder| folder.starts_with(&workspace) && !folder.exists())
    {
        let _ = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
    }
}

pub(crate) fn shell_parts(
    loaded: &LoadedConfig,
    environment: &Environment,
    workspace: Workspace,
    undo_storage: &UndoStorage,
) -> ShellParts {
    let settings = loaded.settings.tools.exec.clone();
    let hidden = own_folders(environment);
    let read = settings.read.iter().map(|path| {
        loaded.resolve(
            environment,
            "tools.exec.read",
            &expand_home(environment, path),
        )
    });
    let read = read.filter_map(|path| path.canonicalize().ok());
    ShellParts {
        workspace,
        journal: undo_storage.journal.clone(),
        read: read
            .filter(|path| !hidden.iter().any(|own| path.starts_with(own)))
            .collect(),
        settings,
        hidden,
        // The running program, even if its file was replaced.
        helper: PathBuf::from("/proc/self/exe"),
        variables: environment.variables.clone(),
        data: environment.data_folder(),
        max_duration: loaded
            .settings
            .limits()
            .tool_timeout()
            .saturating_sub(COMMAND_TIMEOUT_MARGIN)
            .max(Duration::from_secs(1)),
    }
}

/// Expands `~` to the home folder.
pub(crate) fn expand_home(environment: &Environment, path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), environment.get("HOME")) {
        (Ok(rest), Some(home)) => Path::new(home).join(rest),
        _ => path.to_path_buf(),
    }
}

/// Returns a copy of the tool that always fails with `reason`.
fn disabled_tool(tool: Tool, reason: &str) -> Tool {
    let (intent_reason, reason) = (reason.to_owned(), reason.to_owned());
    tool.wrap_intent(move |_, _| {
        Arc::new(move |_, _| {
            let reason = intent_reason.clone();
            Box::pin(async move { Err(ToolError(reason)) })
        })
    })
    .wrap_function(move |_, _| {
        Arc::new(move |_, _| {
            let reason = reason.clone();
            Box::pin(async move { Err(ToolError(reason)) })
        })
    })
}
