//! From settings to hands: the workspace, commands, skills.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lango_domain::{Tool, ToolError};
use lango_engine::{ApprovalPolicy, Verdict};
use lango_knowledge::DocumentAccess;
use lango_tools::files::{self, DenyRead, FileTools, UndoStorage, Workspace, WorkspaceLimits};
use lango_tools::shell::{self, Shell, ShellParts};
use lango_tools::skills::{self, SkillCatalog, SkillSettings, TrustFile};

use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;

/// A call of a tool is given up at its limit; a command is ended before, so that its output is not lost.
const COMMAND_TIMEOUT_MARGIN: Duration = Duration::from_secs(3);

/// Every tool that Lango ships and the settings enable, and what they work with.
pub struct Toolset {
    files: FileTools,
    shell: Shell,
    skills: SkillCatalog,
    folders: ToolsetFolders,
    /// Why there is no workspace.
    disabled_reason: Option<String>,
    approval: ApprovalPolicy,
}

/// Folders that are used beside the workspace.
struct ToolsetFolders {
    /// The workspace's own skills, those of the user, and what is known about both.
    project: Option<PathBuf>,
    user: Option<PathBuf>,
    data: Option<PathBuf>,
}

impl Toolset {
    pub fn new(loaded: &LoadedConfig, environment: &Environment) -> Result<Self, ConfigError> {
        let (workspace, no_workspace) = workspace(loaded, environment)?;
        let places = ToolsetFolders {
            project: no_workspace
                .is_none()
                .then(|| workspace.root().to_path_buf()),
            user: environment.config_folder(),
            data: environment.data_folder(),
        };
        let keeping = undo_storage(environment);
        let shell = Shell::new(shell_parts(
            loaded,
            environment,
            workspace.clone(),
            &keeping,
        ));
        let shelf = places.load_skills();
        let (files, approval) = (
            FileTools {
                workspace,
                undo_storage: keeping,
            },
            loaded.settings.security.approval.clone(),
        );
        Ok(Self {
            files,
            shell,
            skills: shelf,
            folders: places,
            disabled_reason: no_workspace,
            approval,
        })
    }

    pub fn tools(&self) -> Vec<Tool> {
        let settings = SkillSettings {
            user_folder: self.folders.user.clone(),
            workspace: self.files.workspace.root().to_path_buf(),
        };
        let mut tools = shell::tools(&self.shell);
        tools.extend(files::tools(self.files.clone()));
        if let Some(why) = &self.disabled_reason {
            tools = tools
                .into_iter()
                .map(|tool| disabled_tool(tool, why))
                .collect();
        }
        tools.extend(skills::tools(&self.skills, self.shell.clone(), settings));
        tools
    }

    /// Where the librarian may take documents from.
    pub fn document_access(&self) -> Arc<dyn DocumentAccess> {
        Arc::new(WorkspaceAccess {
            workspace: self.files.workspace.clone(),
            disabled_reason: self.disabled_reason.clone(),
            approval: self.approval.clone(),
        })
    }

    /// What the user should know about the skills.
    pub fn warnings(&self) -> Vec<String> {
        self.skills.warnings().to_vec()
    }

    /// Reads skills again where they changed; whether they did.
    pub fn reload_skills(&mut self) -> bool {
        if self.skills.is_current() {
            return false;
        }
        self.skills = self.folders.load_skills();
        true
    }

    pub fn skills(&self) -> &SkillCatalog {
        &self.skills
    }
}

/// The workspace, as far as the tools for files reach it.
struct WorkspaceAccess {
    workspace: Workspace,
    /// Why there is none.
    disabled_reason: Option<String>,
    approval: ApprovalPolicy,
}

impl DocumentAccess for WorkspaceAccess {
    fn resolve(&self, path: &str) -> Result<(PathBuf, String), ToolError> {
        match &self.disabled_reason {
            Some(why) => Err(ToolError(why.clone())),
            None => self.workspace.resolve_for_rules(path),
        }
    }

    /// Nobody is asked about each file of a folder: what reading it would ask about is left out.
    fn open(&self, path: &Path) -> io::Result<File> {
        let (file, subject) = self.workspace.open_file(path)?;
        let refused = |why: &str| Err(io::Error::new(ErrorKind::PermissionDenied, why));
        match self.approval.for_read(&subject) {
            Verdict::Auto => Ok(file),
            Verdict::Ask => refused("it is only read after a question"),
            Verdict::Deny => refused("a rule denies it"),
        }
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

/// What deleted and changed files are kept in.
pub fn undo_storage(environment: &Environment) -> UndoStorage {
    UndoStorage::in_folder(environment.data_folder().as_deref())
}

/// The folder that is in force, and why it may not be used.
pub fn workspace_folder(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> (PathBuf, Option<String>) {
    let named = &loaded.settings.tools.workspace;
    let folder = match named {
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
    let wide = match () {
        () if named.is_some() => None,
        () if Some(&real) == home.as_ref() => Some("your home folder"),
        () if real == Path::new("/") => Some("the whole machine"),
        () => None,
    };
    let why = wide.map(|what| {
        format!("the current folder is {what}, which is a workspace only when it is named: start in a project's folder, or use --workspace")
    });
    (folder, why)
}

/// What commands are confined by on this system.
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
    let (folder, why) = workspace_folder(loaded, environment);
    let hidden = own_folders(environment);
    create_own_folders(&folder, &hidden);
    let limits = WorkspaceLimits {
        hidden: hidden.clone(),
        deny_read: denied_reads(loaded),
        instruction_paths: instruction_paths(loaded, environment),
    };
    let workspace = Workspace::open_with_limits(&folder, limits).map_err(|error| {
        ConfigError::new(format!(
            "the workspace {} cannot be used: {error}",
            folder.display()
        ))
    })?;
    let is_own = hidden.iter().any(|own| workspace.root().starts_with(own));
    let own = is_own.then(|| "the current folder is where Lango keeps its own files".to_owned());
    Ok((workspace, own.or(why)))
}

/// What is denied to looks at single files is not seen from above either.
fn denied_reads(loaded: &LoadedConfig) -> DenyRead {
    let approval = loaded.settings.security.approval.clone();
    Box::new(move |path| approval.for_read(path) == Verdict::Deny)
}

/// Where settings, agents and prompts are read from: a change there changes what the team obeys.
fn instruction_paths(loaded: &LoadedConfig, environment: &Environment) -> Vec<PathBuf> {
    let team = &loaded.settings.agent.team;
    let named = [
        ("agent.agentsDir", &team.agents_dir),
        ("agent.promptsDir", &team.prompts_dir),
    ];
    let named = named
        .into_iter()
        .filter_map(|(key, folder)| Some((key, folder.as_ref()?)));
    let named = named.map(|(key, folder)| loaded.resolve(environment, key, folder));
    named
        .chain(
            loaded
                .files
                .iter()
                .map(|file| environment.working_folder.join(file)),
        )
        .collect()
}

/// Lango's own folders, which no tool reaches.
pub(crate) fn own_folders(environment: &Environment) -> Vec<PathBuf> {
    let own = [environment.data_folder(), environment.config_folder()]
        .into_iter()
        .flatten();
    let mut own: Vec<PathBuf> = own
        .map(|folder| folder.canonicalize().unwrap_or(folder))
        .collect();
    own.dedup();
    own
}

/// A folder of Lango's own that is not there yet could be made by a command, where it lies in the workspace.
fn create_own_folders(workspace: &Path, own: &[PathBuf]) {
    let Ok(workspace) = workspace.canonicalize() else {
        return;
    };
    for folder in own
        .iter()
        .filter(|folder| folder.starts_with(&workspace) && !folder.exists())
    {
        let _ = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
    }
}

fn shell_parts(
    loaded: &LoadedConfig,
    environment: &Environment,
    workspace: Workspace,
    keeping: &UndoStorage,
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
        journal: keeping.journal.clone(),
        read: read
            .filter(|path| !hidden.iter().any(|own| path.starts_with(own)))
            .collect(),
        settings,
        hidden,
        // This program, also when its file was replaced meanwhile.
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

/// `~` stands for the home folder.
fn expand_home(environment: &Environment, path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), environment.get("HOME")) {
        (Ok(rest), Some(home)) => Path::new(home).join(rest),
        _ => path.to_path_buf(),
    }
}

/// The same tool, which only says why it does nothing.
fn disabled_tool(tool: Tool, why: &str) -> Tool {
    let (told, why) = (why.to_owned(), why.to_owned());
    tool.wrap_intent(move |_, _| {
        Arc::new(move |_, _| {
            let why = told.clone();
            Box::pin(async move { Err(ToolError(why)) })
        })
    })
    .wrap_function(move |_, _| {
        Arc::new(move |_, _| {
            let why = why.clone();
            Box::pin(async move { Err(ToolError(why)) })
        })
    })
}
