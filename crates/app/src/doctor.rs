//! The checks of `lango doctor`.

use std::path::Path;

use futures::future::BoxFuture;
use lango_domain::Stores;
use lango_tools::shell::SandboxChoice;
use serde_json::{Value, json};

use crate::capabilities::capability_checks;
use crate::config::LoadedConfig;
use crate::connected_models::selected_models;
use crate::environment::Environment;
use crate::lazy_stores::LazyStores;
use crate::store::store_file;
use crate::toolset::{confinement, workspace_folder};

/// The result of one check.
pub struct DoctorCheck {
    pub id: &'static str,
    pub status: CheckStatus,
    pub detail: String,
    pub hint: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CheckStatus {
    Pass,
    Warn,
    Fail,
}

impl CheckStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl DoctorCheck {
    pub fn new(id: &'static str, status: CheckStatus, detail: impl Into<String>) -> Self {
        Self {
            id,
            status,
            detail: detail.into(),
            hint: None,
        }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn to_json(&self) -> Value {
        json!({ "id": self.id, "status": self.status.as_str(), "detail": self.detail, "remedy": self.hint })
    }
}

/// Checks the configuration, the model, every capability and the store.
pub async fn doctor_checks(loaded: &LoadedConfig, environment: &Environment) -> Vec<DoctorCheck> {
    let files = loaded
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let files = if files.is_empty() {
        "no files; the defaults apply".to_owned()
    } else {
        files
    };
    let mut checks = vec![
        DoctorCheck::new("config", CheckStatus::Pass, files),
        check_model(loaded, environment),
    ];
    checks.extend(capability_checks(loaded, environment).await);
    let Some(file) = store_file(loaded, environment) else {
        let check = DoctorCheck::new(
            "store",
            CheckStatus::Warn,
            "sessions are stored in memory only",
        );
        checks.push(check.with_hint("set HOME, LANGO_HOME or store.path"));
        return checks;
    };
    match LazyStores::new(loaded, environment).open() {
        Err(error) => {
            checks.push(
                DoctorCheck::new("store", CheckStatus::Fail, error.to_string())
                    .with_hint(error.hint()),
            );
        }
        Ok(stores) => check_store(&stores, &file, &mut checks).await,
    }
    checks
}

async fn check_store(stores: &Stores, file: &Path, checks: &mut Vec<DoctorCheck>) {
    match stores.maintenance.health().await {
        Err(error) => {
            checks.push(
                DoctorCheck::new("store", CheckStatus::Fail, error.to_string())
                    .with_hint(error.hint()),
            );
            return;
        }
        Ok(health) if health.problems.is_empty() => {
            let detail = format!(
                "{}: {} sessions, {} events, {} bytes",
                file.display(),
                health.sessions,
                health.events,
                health.bytes
            );
            checks.push(DoctorCheck::new("store", CheckStatus::Pass, detail));
        }
        Ok(health) => {
            let detail = format!(
                "{} is damaged: {}",
                file.display(),
                health.problems.join("; ")
            );
            let hint = "copy the file to a safe place, then restore a backup with `lango restore`";
            checks.push(DoctorCheck::new("store", CheckStatus::Fail, detail).with_hint(hint));
            return;
        }
    }
    checks.push(check_rows(stores).await);
    checks.push(check_permissions(file));
    match stores.maintenance.check_writable().await {
        Ok(()) => checks.push(DoctorCheck::new(
            "disk",
            CheckStatus::Pass,
            "the store is writable",
        )),
        Err(error) => {
            checks.push(
                DoctorCheck::new("disk", CheckStatus::Fail, error.to_string())
                    .with_hint(error.hint()),
            );
        }
    }
}

/// The maximum number of damaged rows that are listed.
const MAX_NAMED: usize = 20;

async fn check_rows(stores: &Stores) -> DoctorCheck {
    match stores.maintenance.find_damaged_rows().await {
        Ok(rows) if rows.is_empty() => {
            DoctorCheck::new("rows", CheckStatus::Pass, "all rows can be read")
        }
        Ok(rows) => {
            let named: Vec<String> = rows
                .iter()
                .take(MAX_NAMED)
                .map(ToString::to_string)
                .collect();
            let detail = format!("{} rows are skipped: {}", rows.len(), named.join("; "));
            let hint = "a newer version of Lango may be able to read them; save the readable part of a session with \
                `lango session export`, delete it with `lango session delete`, or restore a backup with `lango restore`";
            DoctorCheck::new("rows", CheckStatus::Warn, detail).with_hint(hint)
        }
        Err(error) => {
            DoctorCheck::new("rows", CheckStatus::Fail, error.to_string()).with_hint(error.hint())
        }
    }
}

fn check_permissions(file: &Path) -> DoctorCheck {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| {
        std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode() & 0o777)
    };
    let folder = file.parent().unwrap_or(file);
    if mode(file) & 0o077 != 0 || mode(folder) & 0o022 != 0 {
        let detail = format!(
            "{} ({:o}) is accessible to other users",
            folder.display(),
            mode(folder)
        );
        return DoctorCheck::new("permissions", CheckStatus::Warn, detail)
            .with_hint(format!("chmod 700 {}", folder.display()));
    }
    DoctorCheck::new(
        "permissions",
        CheckStatus::Pass,
        "only you can read the store",
    )
}

/// Checks the workspace and the sandbox of commands.
pub(crate) fn check_operator<'a>(
    loaded: &'a LoadedConfig,
    environment: &'a Environment,
) -> BoxFuture<'a, Vec<DoctorCheck>> {
    Box::pin(async move {
        vec![
            check_workspace(loaded, environment),
            check_sandbox(loaded, environment).await,
        ]
    })
}

fn check_workspace(loaded: &LoadedConfig, environment: &Environment) -> DoctorCheck {
    match workspace_folder(loaded, environment) {
        (folder, None) => {
            DoctorCheck::new("workspace", CheckStatus::Pass, folder.display().to_string())
        }
        (_, Some(reason)) => DoctorCheck::new("workspace", CheckStatus::Warn, reason)
            .with_hint("choose a workspace with --workspace DIR"),
    }
}

/// Checks the confinement of commands by starting a sandboxed process.
async fn check_sandbox(loaded: &LoadedConfig, environment: &Environment) -> DoctorCheck {
    let exec = &loaded.settings.tools.exec;
    if exec.sandbox == SandboxChoice::Off {
        let detail = "disabled: commands run with all your permissions";
        return DoctorCheck::new("sandbox", CheckStatus::Warn, detail)
            .with_hint("remove tools.exec.sandbox");
    }
    match confinement(loaded, environment).await {
        Ok(mechanisms) => {
            let network = if exec.network {
                ", the network is open (tools.exec.network)"
            } else {
                ""
            };
            let detail = format!(
                "commands are confined by {}{network}",
                mechanisms.join(", ")
            );
            if mechanisms.iter().any(|status| status == "user namespace")
                || exec.sandbox == SandboxChoice::NoNamespaces
            {
                return DoctorCheck::new("sandbox", CheckStatus::Pass, detail);
            }
            let detail = format!(
                "{detail}; user namespaces are not available, so modes and times of other files are not protected"
            );
            DoctorCheck::new("sandbox", CheckStatus::Pass, detail)
        }
        Err(reason) => {
            let hint = "use a Linux kernel with Landlock (5.13 or newer, lsm=landlock), or set tools.exec.sandbox=off";
            DoctorCheck::new(
                "sandbox",
                CheckStatus::Fail,
                format!("commands cannot be confined, so none can run: {reason}"),
            )
            .with_hint(hint)
        }
    }
}

fn check_model(loaded: &LoadedConfig, environment: &Environment) -> DoctorCheck {
    match selected_models(loaded, environment) {
        Ok(models) => match models.first() {
            Some((_, selected)) if selected.is_offline() => DoctorCheck::new(
                "model",
                CheckStatus::Warn,
                format!("the offline model: {}", selected.reason),
            )
            .with_hint(lango_models::offline::CONNECT_HINT),
            Some((_, selected)) => DoctorCheck::new(
                "model",
                CheckStatus::Pass,
                format!(
                    "{}/{}: {}",
                    selected.provider, selected.model, selected.reason
                ),
            ),
            None => DoctorCheck::new("model", CheckStatus::Fail, "none"),
        },
        Err(error) => DoctorCheck::new("model", CheckStatus::Fail, error.to_string())
            .with_hint("run `lango model list` for details"),
    }
}
