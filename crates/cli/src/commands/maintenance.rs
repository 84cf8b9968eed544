//! `lango backup`, `restore` and `doctor`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use lango_app::{
    Environment, LazyStores, LoadedConfig, confinement, restore_store, selected_models, store_file,
    workspace_folder,
};
use lango_domain::Stores;
use lango_tools::shell::SandboxChoice;
use serde_json::{Value, json};

use super::{environment, runtime};
use crate::args::GlobalArgs;
use crate::output::{CliError, CommandOutput, DIM, ERROR, NAME, OutputFormat, styled};

pub fn back_up(global: &GlobalArgs, file: &Path) -> Result<CommandOutput, CliError> {
    let context = super::CommandContext::load(global)?;
    let stores = context.stores.open()?;
    runtime()?.block_on(stores.maintenance.back_up(file))?;
    let bytes = std::fs::metadata(file).map_or(0, |file| file.len());
    let plain = format!("{}: {bytes} bytes.\n", file.display());
    Ok(CommandOutput::new(
        plain,
        json!({ "file": file, "bytes": bytes }),
    ))
}

pub fn restore(global: &GlobalArgs, file: &Path) -> Result<CommandOutput, CliError> {
    let context = super::CommandContext::load(global)?;
    let (loaded, environment) = (&context.loaded, &context.environment);
    let restored = restore_store(loaded, environment, file, Timestamp::now());
    let backup = runtime()?.block_on(restored)?;
    let plain = format!(
        "Restored. The previous store was saved to {}.\n",
        backup.display()
    );
    Ok(CommandOutput::new(
        plain,
        json!({ "restored": file, "kept": backup }),
    ))
}

/// The result of one check.
struct DoctorCheck {
    id: &'static str,
    status: CheckStatus,
    detail: String,
    hint: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckStatus {
    Pass,
    Warn,
    Fail,
}

impl CheckStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl DoctorCheck {
    fn new(id: &'static str, status: CheckStatus, detail: impl Into<String>) -> Self {
        Self {
            id,
            status,
            detail: detail.into(),
            hint: None,
        }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn to_json(&self) -> Value {
        json!({ "id": self.id, "status": self.status.as_str(), "detail": self.detail, "remedy": self.hint })
    }
}

/// Checks everything that Lango needs. The exit code is 1 if a check fails.
pub fn doctor(global: &GlobalArgs, format: OutputFormat) -> Result<ExitCode, CliError> {
    let environment = environment()?;
    let checks = match LoadedConfig::load(&environment, &global.overrides()) {
        Ok(loaded) => run_checks(&loaded, &environment)?,
        Err(error) => {
            let hint = error
                .hint
                .unwrap_or_else(|| "fix the configuration file".to_owned());
            vec![DoctorCheck::new("config", CheckStatus::Fail, error.message).with_hint(hint)]
        }
    };
    let mut plain = String::new();
    for check in &checks {
        let status = styled(
            if check.status == CheckStatus::Fail {
                ERROR
            } else {
                NAME
            },
            check.status.as_str(),
        );
        let _ = writeln!(plain, "{status}  {}: {}", check.id, check.detail);
        if let Some(hint) = &check.hint {
            let _ = writeln!(plain, "      {}", styled(DIM, hint));
        }
    }
    let json = json!({ "checks": checks.iter().map(DoctorCheck::to_json).collect::<Vec<_>>() });
    let printed = CommandOutput::new(plain, json).print(format);
    let is_broken = checks.iter().any(|check| check.status == CheckStatus::Fail);
    Ok(if is_broken {
        ExitCode::from(1)
    } else {
        printed
    })
}

fn run_checks(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<Vec<DoctorCheck>, CliError> {
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
    checks.push(check_workspace(loaded, environment));
    checks.push(runtime()?.block_on(check_sandbox(loaded, environment)));
    let Some(file) = store_file(loaded, environment) else {
        let check = DoctorCheck::new(
            "store",
            CheckStatus::Warn,
            "sessions are stored in memory only",
        );
        checks.push(check.with_hint("set HOME, LANGO_HOME or store.path"));
        return Ok(checks);
    };
    match LazyStores::new(loaded, environment).open() {
        Err(error) => {
            checks.push(
                DoctorCheck::new("store", CheckStatus::Fail, error.to_string())
                    .with_hint(error.hint()),
            );
        }
        Ok(stores) => runtime()?.block_on(check_store(&stores, &file, &mut checks)),
    }
    Ok(checks)
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
