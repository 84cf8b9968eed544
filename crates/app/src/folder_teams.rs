//! Teams for the folders of jobs. A job works in the folder that it was added in, with the settings and the
//! workspace of that folder, whatever folder the scheduler was started in (B121).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lango_automation::delivery::{CommandChannel, DeliveryFolders, FolderChannels};
use lango_automation::{SchedulerWake, WorkspaceTeams};
use lango_engine::Runner;
use lango_remote::RemoteTeam;

use crate::assistant::{StartError, build_runner};
use crate::capabilities::{CapabilityContext, capability_tools};
use crate::config::{ConfigError, LoadedConfig};
use crate::environment::Environment;
use crate::lazy_stores::LazyStores;
use crate::toolset::{Toolset, shell_parts, undo_storage};

/// Builds teams for folders, each on first use.
pub(crate) struct FolderTeams {
    pub loaded: LoadedConfig,
    pub environment: Environment,
    pub stores: LazyStores,
    pub remote_agents: RemoteTeam,
    pub wake: SchedulerWake,
    /// The folder of this process.
    pub own: PathBuf,
    pub built: Mutex<HashMap<PathBuf, FolderTeam>>,
}

/// The team of a folder. Its commands live as long as its toolset.
pub(crate) struct FolderTeam {
    runner: Runner,
    _toolset: Toolset,
}

impl FolderTeams {
    fn build(&self, folder: &Path) -> Result<FolderTeam, StartError> {
        let (loaded, environment) = self.settings(folder)?;
        let toolset = Toolset::new(&loaded, &environment)?.with_scheduler_wake(self.wake.clone());
        let context = CapabilityContext::new(&loaded, &environment, &toolset, &self.stores);
        let tools = capability_tools(&context)?;
        let parts = (&self.stores, &self.remote_agents);
        let (runner, catalog) = build_runner(&loaded, &environment, tools, parts)?;
        toolset.catalog().set(catalog);
        Ok(FolderTeam {
            runner,
            _toolset: toolset,
        })
    }

    fn settings(&self, folder: &Path) -> Result<(LoadedConfig, Environment), ConfigError> {
        if !folder.is_dir() {
            return Err(ConfigError::new("it does not exist"));
        }
        self.loaded.for_folder(&self.environment, folder)
    }
}

impl WorkspaceTeams for FolderTeams {
    fn runner(&self, folder: &Path) -> Result<Option<Runner>, String> {
        if folder == self.own {
            return Ok(None);
        }
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(team) = built.get(folder).filter(|_| folder.is_dir()) {
            return Ok(Some(team.runner.clone()));
        }
        let team = self
            .build(folder)
            .map_err(|error| unusable(folder, &error.to_string()))?;
        let runner = team.runner.clone();
        built.insert(folder.to_path_buf(), team);
        Ok(Some(runner))
    }
}

impl DeliveryFolders for FolderTeams {
    fn open(&self, folder: &Path) -> Result<Option<FolderChannels>, String> {
        if folder == self.own {
            return Ok(None);
        }
        let unusable = |error: ConfigError| unusable(folder, &error.to_string());
        let (loaded, environment) = self.settings(folder).map_err(unusable)?;
        let toolset = Toolset::new(&loaded, &environment).map_err(unusable)?;
        let (workspace, undo) = (toolset.workspace().clone(), undo_storage(&environment));
        let shell = shell_parts(&loaded, &environment, workspace.clone(), &undo);
        Ok(Some(FolderChannels {
            workspace,
            commands: CommandChannel::new(shell),
        }))
    }
}

fn unusable(folder: &Path, reason: &str) -> String {
    format!(
        "the folder {}, in which it works, cannot be used: {reason}",
        folder.display()
    )
}
