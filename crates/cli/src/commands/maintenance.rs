//! `lango backup`, `restore` and `doctor`: keeping what is kept.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use lango_app::{
    Environment, LazyStore, LoadedConfig, confinement, pre_restore_backup_path, selected_models,
    store_location, workspace_folder,
};
use lango_store::{SqliteStore, StoreLocation};
use lango_tools::shell::SandboxChoice;
use serde_json::{Value, json};

use super::{environment, runtime};
use crate::args::GlobalArgs;
use crate::output::{CliError, CommandOutput, DIM, ERROR, NAME, OutputFormat, styled};

pub fn back_up(global: &GlobalArgs, file: &Path) -> Result<CommandOutput, CliError> {
    let setting = super::CommandContext::load(global)?;
    let store = setting.store.open()?;
    runtime()?.block_on(store.back_up(file))?;
    let bytes = std::fs::metadata(file).map_or(0, |file| file.len());
    let plain = format!("{}: {bytes} bytes.\n", file.display());
    Ok(CommandOutput::new(
        plain,
        json!({ "file": file, "bytes": bytes }),
    ))
}

pub fn restore(global: &GlobalArgs, file: &Path) -> Result<CommandOutput, CliError> {
    let setting = super::CommandContext::load(global)?;
    let place = store_location(&setting.loaded, &setting.environment);
    let kept = pre_restore_backup_path(&place, Timestamp::now());
    runtime()?.block_on(SqliteStore::restore(place, file, &kept))?;
    let plain = format!(
        "Restored. What was there before is in {}.\n",
        kept.display()
    );
    Ok(CommandOutput::new(
        plain,
        json!({ "restored": file, "kept": kept }),
    ))
}

/// One thing that was looked at.
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

    fn with_hint(mut self, remedy: impl Into<String>) -> Self {
        self.hint = Some(remedy.into());
        self
    }

    fn to_json(&self) -> Value {
        json!({ "id": self.id, "status": self.status.as_str(), "detail": self.detail, "remedy": self.hint })
    }
}

/// Looks at everything that Lango needs; exit code 1 when something is broken.
pub fn doctor(global: &GlobalArgs, form: OutputFormat) -> Result<ExitCode, CliError> {
    let environment = environment()?;
    let checks = match LoadedConfig::load(&environment, &global.overrides()) {
        Ok(loaded) => run_checks(&loaded, &environment)?,
        Err(error) => {
            let remedy = error
                .hint
                .unwrap_or_else(|| "mend the configuration file".to_owned());
            vec![DoctorCheck::new("config", CheckStatus::Fail, error.message).with_hint(remedy)]
        }
    };
    let mut plain = String::new();
    for check in &checks {
        let word = styled(
            if check.status == CheckStatus::Fail {
                ERROR
            } else {
                NAME
            },
            check.status.as_str(),
        );
        let _ = writeln!(plain, "{word}  {}: {}", check.id, check.detail);
        if let Some(remedy) = &check.hint {
            let _ = writeln!(plain, "      {}", styled(DIM, remedy));
        }
    }
    let json = json!({ "checks": checks.iter().map(DoctorCheck::to_json).collect::<Vec<_>>() });
    let printed = CommandOutput::new(plain, json).print(form);
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
        "no files, the defaults hold".to_owned()
    } else {
        files
    };
    let mut checks = vec![
        DoctorCheck::new("config", CheckStatus::Pass, files),
        check_model(loaded, environment),
    ];
    checks.push(check_workspace(loaded, environment));
    checks.push(runtime()?.block_on(check_sandbox(loaded, environment)));
    let place = store_location(loaded, environment);
    if place == StoreLocation::Memory {
        let nothing = DoctorCheck::new(
            "store",
            CheckStatus::Warn,
            "sessions are kept in memory only",
        );
        checks.push(nothing.with_hint("set HOME, LANGO_HOME or store.path"));
        return Ok(checks);
    }
    match LazyStore::new(loaded, environment).open() {
        Err(trouble) => {
            checks.push(
                DoctorCheck::new("store", CheckStatus::Fail, trouble.to_string())
                    .with_hint(trouble.hint()),
            );
        }
        Ok(store) => runtime()?.block_on(check_store(&store, &mut checks)),
    }
    Ok(checks)
}

async fn check_store(store: &SqliteStore, checks: &mut Vec<DoctorCheck>) {
    let file = store.location().path();
    match store.health().await {
        Err(trouble) => {
            checks.push(
                DoctorCheck::new("store", CheckStatus::Fail, trouble.to_string())
                    .with_hint(trouble.hint()),
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
            let remedy = "copy the file away, then `lango restore` a backup";
            checks.push(DoctorCheck::new("store", CheckStatus::Fail, detail).with_hint(remedy));
            return;
        }
    }
    checks.push(check_rows(store).await);
    checks.push(check_permissions(file));
    match store.check_writable().await {
        Ok(()) => checks.push(DoctorCheck::new(
            "disk",
            CheckStatus::Pass,
            "there is room to write",
        )),
        Err(trouble) => {
            checks.push(
                DoctorCheck::new("disk", CheckStatus::Fail, trouble.to_string())
                    .with_hint(trouble.hint()),
            );
        }
    }
}

/// How many damaged rows are named.
const MAX_NAMED: usize = 20;

async fn check_rows(store: &SqliteStore) -> DoctorCheck {
    match store.find_damaged_rows().await {
        Ok(rows) if rows.is_empty() => {
            DoctorCheck::new("rows", CheckStatus::Pass, "everything in it can be read")
        }
        Ok(rows) => {
            let named: Vec<String> = rows
                .iter()
                .take(MAX_NAMED)
                .map(ToString::to_string)
                .collect();
            let detail = format!("{} rows are skipped: {}", rows.len(), named.join("; "));
            let remedy = "a newer Lango may be able to read them; `lango restore` brings a backup back, `lango session delete` \
                takes a session out, and `lango session export` saves what can be read of it";
            DoctorCheck::new("rows", CheckStatus::Warn, detail).with_hint(remedy)
        }
        Err(trouble) => DoctorCheck::new("rows", CheckStatus::Fail, trouble.to_string())
            .with_hint(trouble.hint()),
    }
}

fn check_permissions(file: &Path) -> DoctorCheck {
    use std::os::unix::fs::PermissionsExt;
    let mode =
        |path: &Path| std::fs::metadata(path).map_or(0, |found| found.permissions().mode() & 0o777);
    let folder = file.parent().unwrap_or(file);
    if mode(file) & 0o077 != 0 || mode(folder) & 0o022 != 0 {
        let detail = format!(
            "{} ({:o}) can be reached by others",
            folder.display(),
            mode(folder)
        );
        return DoctorCheck::new("permissions", CheckStatus::Warn, detail)
            .with_hint(format!("chmod 700 {}", folder.display()));
    }
    DoctorCheck::new(
        "permissions",
        CheckStatus::Pass,
        "only you can read what is kept",
    )
}

fn check_workspace(loaded: &LoadedConfig, environment: &Environment) -> DoctorCheck {
    match workspace_folder(loaded, environment) {
        (folder, None) => {
            DoctorCheck::new("workspace", CheckStatus::Pass, folder.display().to_string())
        }
        (_, Some(why)) => DoctorCheck::new("workspace", CheckStatus::Warn, why)
            .with_hint("--workspace DIR names one"),
    }
}

/// What commands are confined by, as the sandbox says that it is.
async fn check_sandbox(loaded: &LoadedConfig, environment: &Environment) -> DoctorCheck {
    let exec = &loaded.settings.tools.exec;
    if exec.sandbox == SandboxChoice::Off {
        let detail = "switched off: commands can do whatever you can";
        return DoctorCheck::new("sandbox", CheckStatus::Warn, detail)
            .with_hint("remove tools.exec.sandbox");
    }
    match confinement(loaded, environment).await {
        Ok(by) => {
            let network = if exec.network {
                ", the network is open (tools.exec.network)"
            } else {
                ""
            };
            let detail = format!("commands are confined by {}{network}", by.join(", "));
            if by.iter().any(|word| word == "user namespace")
                || exec.sandbox == SandboxChoice::NoNamespaces
            {
                return DoctorCheck::new("sandbox", CheckStatus::Pass, detail);
            }
            let detail = format!(
                "{detail}; namespaces are not allowed here, so modes and times of other files are not guarded"
            );
            DoctorCheck::new("sandbox", CheckStatus::Pass, detail)
        }
        Err(why) => {
            let remedy = "use a Linux kernel with Landlock (5.13 or newer, lsm=landlock), or decide for tools.exec.sandbox=off";
            DoctorCheck::new(
                "sandbox",
                CheckStatus::Fail,
                format!("commands cannot be confined, so none will run: {why}"),
            )
            .with_hint(remedy)
        }
    }
}

fn check_model(loaded: &LoadedConfig, environment: &Environment) -> DoctorCheck {
    match selected_models(loaded, environment) {
        Ok(chosen) => match chosen.first() {
            Some((_, chosen)) if chosen.is_offline() => DoctorCheck::new(
                "model",
                CheckStatus::Warn,
                format!("the offline model: {}", chosen.reason),
            )
            .with_hint(lango_models::offline::CONNECT_HINT),
            Some((_, chosen)) => DoctorCheck::new(
                "model",
                CheckStatus::Pass,
                format!("{}/{}: {}", chosen.provider, chosen.model, chosen.reason),
            ),
            None => DoctorCheck::new("model", CheckStatus::Fail, "none"),
        },
        Err(error) => DoctorCheck::new("model", CheckStatus::Fail, error.to_string())
            .with_hint("`lango model list` says more"),
    }
}
