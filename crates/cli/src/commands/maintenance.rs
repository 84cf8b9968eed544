//! `lango backup`, `restore` and `doctor`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use lango_app::{CheckStatus, DoctorCheck, LoadedConfig, doctor_checks, restore_store};
use serde_json::json;

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

/// Checks everything that Lango needs. The exit code is 1 if a check fails.
pub fn doctor(global: &GlobalArgs, format: OutputFormat) -> Result<ExitCode, CliError> {
    let environment = environment()?;
    let checks = match LoadedConfig::load(&environment, &global.overrides()) {
        Ok(loaded) => runtime()?.block_on(doctor_checks(&loaded, &environment)),
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
