//! `lango vault …`: slots, lock and copies of the vault.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use lango_app::capability::vault::{
    ExistingRecords, ImportReport, OpenedBy, Vault, VaultError, VaultState, VaultStatus,
};
use lango_domain::vault::{RecordKey, RecordKind, SlotKind};
use serde_json::{Value, json};

use super::{CommandContext, runtime};
use crate::args::{GlobalArgs, VaultCommand};
use crate::hidden_input::HiddenInput;
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

const ASK_PASSPHRASE: &str = "Passphrase of the vault:";
const ASK_NEW_PASSPHRASE: &str = "New passphrase of the vault:";

pub fn run(global: &GlobalArgs, command: &VaultCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let secrets = context.stores.vault()?;
    let vault = secrets.vault();
    let minutes = context.loaded.settings.security.vault.unlock_minutes;
    runtime()?.block_on(async {
        match command {
            VaultCommand::Status => status(vault).await,
            VaultCommand::Unlock { minutes: given } => {
                unlock(vault, given.unwrap_or(minutes)).await
            }
            VaultCommand::Lock => lock(vault).await,
            VaultCommand::Passphrase { remove: true, .. } => remove_passphrase(vault).await,
            VaultCommand::Passphrase { only, .. } => set_passphrase(vault, *only).await,
            VaultCommand::KeyFile { remove } => key_file(vault, *remove).await,
            VaultCommand::Export { file } => export(vault, file).await,
            VaultCommand::Import { file, replace } => import(vault, file, *replace).await,
        }
    })
}

impl From<VaultError> for CliError {
    fn from(error: VaultError) -> Self {
        let hint = error.hint();
        let failure = match error {
            VaultError::Store(error) => return error.into(),
            VaultError::WrongPassphrase | VaultError::Locked => Self::denied(error.to_string()),
            VaultError::ShortPassphrase(_)
            | VaultError::NoPassphrase
            | VaultError::Empty
            | VaultError::LastSlot(_)
            | VaultError::Unknown { .. }
            | VaultError::Exists { .. }
            | VaultError::Invalid(_)
            | VaultError::InvalidExport(_) => Self::usage(error.to_string()),
            other => Self::store(other.to_string()),
        };
        failure.with_hint(hint)
    }
}

/// Opens a locked vault with its passphrase.
pub(super) async fn open(vault: &Vault, input: &mut HiddenInput) -> Result<(), CliError> {
    if vault.status().await?.state == VaultState::Locked {
        let passphrase = input.ask(ASK_PASSPHRASE).await?;
        vault.open_with_passphrase(&passphrase).await?;
    }
    Ok(())
}

async fn status(vault: &Vault) -> Result<CommandOutput, CliError> {
    let VaultStatus {
        state,
        created,
        slots,
        records,
    } = vault.status().await?;
    let (word, detail, opened_by) = describe_state(&state);
    let mut plain = format!("{}{detail}\n", styled(NAME, word));
    for (kind, at) in &slots {
        let name = match kind {
            SlotKind::KeyFile => "key file",
            SlotKind::Passphrase => "passphrase",
        };
        let since = styled(DIM, format!("since {}", at.strftime("%Y-%m-%d")));
        let _ = writeln!(plain, "opens with: {name} {since}");
    }
    for (kind, count) in records.iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(plain, "{}: {count}", plural(*kind));
    }
    let until = match &state {
        VaultState::Open(OpenedBy::Unlocked(until)) => Some(*until),
        _ => None,
    };
    let counts: serde_json::Map<String, Value> = records
        .iter()
        .map(|(kind, count)| (kind.as_str().to_owned(), json!(count)))
        .collect();
    let slots: Vec<Value> = slots
        .iter()
        .map(|(kind, created)| json!({ "kind": kind, "created": created }))
        .collect();
    let json = json!({
        "state": word,
        "opened_by": opened_by,
        "until": until,
        "error": error_json(&state),
        "created": created,
        "slots": slots,
        "records": counts,
    });
    Ok(CommandOutput::new(plain, json))
}

fn error_json(state: &VaultState) -> Option<Value> {
    match state {
        VaultState::Failed(error) => {
            Some(json!({ "message": error.to_string(), "hint": error.hint() }))
        }
        _ => None,
    }
}

fn describe_state(state: &VaultState) -> (&'static str, String, Option<&'static str>) {
    match state {
        VaultState::Empty => ("empty", ": nothing has been stored yet".to_owned(), None),
        VaultState::Locked => ("locked", ": `lango vault unlock` opens it".to_owned(), None),
        VaultState::Failed(error) => ("failed", format!(": {error}; {}", error.hint()), None),
        VaultState::Open(by) => {
            let (word, detail) = match by {
                OpenedBy::KeyFile(file) => ("key-file", format!("with {}", file.display())),
                OpenedBy::Credential(file) => ("credential", format!("with {}", file.display())),
                OpenedBy::PassphraseFile(file) => {
                    ("passphrase-file", format!("with {}", file.display()))
                }
                OpenedBy::Passphrase => ("passphrase", String::new()),
                OpenedBy::Unlocked(until) => ("unlock", format!("until {}", local_time(*until))),
            };
            ("open", format!(", {detail}"), Some(word))
        }
    }
}

fn local_time(at: Timestamp) -> String {
    let local = at.to_zoned(jiff::tz::TimeZone::system());
    local.strftime("%Y-%m-%d %H:%M").to_string()
}

fn plural(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Secret => "secrets",
        RecordKind::Key => "keys, with versions",
        RecordKind::Wallet => "wallets",
    }
}

async fn unlock(vault: &Vault, minutes: NonZeroU32) -> Result<CommandOutput, CliError> {
    if vault.stored().await?.is_none() {
        return Err(VaultError::Empty.into());
    }
    let passphrase = HiddenInput::open().ask(ASK_PASSPHRASE).await?;
    let duration = SignedDuration::from_mins(i64::from(minutes.get()));
    let until = vault.unlock(&passphrase, duration).await?;
    let plain = format!("The vault is open until {}.\n", local_time(until));
    Ok(CommandOutput::new(plain, json!({ "until": until })))
}

async fn lock(vault: &Vault) -> Result<CommandOutput, CliError> {
    let was_unlocked = vault.lock().await?;
    let state = vault.status().await?.state;
    let plain = match &state {
        VaultState::Open(OpenedBy::KeyFile(file)) => format!(
            "{} still opens the vault; `lango vault passphrase --only` removes it.\n",
            file.display()
        ),
        VaultState::Open(_) => {
            "A credential or a passphrase file still opens the vault.\n".to_owned()
        }
        _ => "The vault is locked.\n".to_owned(),
    };
    let is_locked = !matches!(state, VaultState::Open(_));
    let json = json!({ "locked": is_locked, "was_unlocked": was_unlocked });
    Ok(CommandOutput::new(plain, json))
}

async fn set_passphrase(vault: &Vault, only: bool) -> Result<CommandOutput, CliError> {
    let mut input = HiddenInput::open();
    open(vault, &mut input).await?;
    let passphrase = input.ask_new(ASK_NEW_PASSPHRASE).await?;
    vault.set_passphrase(&passphrase).await?;
    if only {
        vault.remove_key_file().await?;
    }
    let state = vault.status().await?.state;
    let plain = match (&state, only) {
        (VaultState::Open(OpenedBy::KeyFile(file)), false) => format!(
            "The passphrase is set. {} opens the vault, too; `lango vault key-file --remove` removes it.\n",
            file.display()
        ),
        _ => "The passphrase is set. Without it, the values in the vault are lost.\n".to_owned(),
    };
    Ok(CommandOutput::new(
        plain,
        json!({ "passphrase": "set", "only": only }),
    ))
}

async fn remove_passphrase(vault: &Vault) -> Result<CommandOutput, CliError> {
    open(vault, &mut HiddenInput::open()).await?;
    vault.remove_passphrase().await?;
    let plain = "The passphrase is removed. The key file opens the vault.\n";
    Ok(CommandOutput::new(
        plain,
        json!({ "passphrase": "removed" }),
    ))
}

async fn key_file(vault: &Vault, remove: bool) -> Result<CommandOutput, CliError> {
    open(vault, &mut HiddenInput::open()).await?;
    if remove {
        vault.remove_key_file().await?;
        let plain = "The key file is removed. Only the passphrase opens the vault.\n";
        return Ok(CommandOutput::new(plain, json!({ "key_file": null })));
    }
    let file = vault.add_key_file().await?;
    let plain = format!("{} opens the vault.\n", file.display());
    Ok(CommandOutput::new(plain, json!({ "key_file": file })))
}

async fn export(vault: &Vault, file: &Path) -> Result<CommandOutput, CliError> {
    let mut input = HiddenInput::open();
    open(vault, &mut input).await?;
    let passphrase = input.ask_new("Passphrase of the export:").await?;
    let count = vault.export(file, &passphrase).await?;
    let plain = format!("{count} secrets and keys are in {}.\n", file.display());
    Ok(CommandOutput::new(
        plain,
        json!({ "file": file, "names": count }),
    ))
}

async fn import(vault: &Vault, file: &Path, replace: bool) -> Result<CommandOutput, CliError> {
    let mut input = HiddenInput::open();
    open(vault, &mut input).await?;
    let passphrase = input.ask("Passphrase of the export:").await?;
    let existing = match replace {
        true => ExistingRecords::Replace,
        false => ExistingRecords::Keep,
    };
    let report = vault.import(file, &passphrase, existing).await?;
    let list = |keys: &[RecordKey]| -> Vec<String> {
        keys.iter()
            .map(|key| format!("{} {}", key.kind.as_str(), key.name))
            .collect()
    };
    let ImportReport {
        added,
        replaced,
        kept,
        unchanged,
    } = &report;
    let mut plain = String::new();
    for (label, keys) in [
        ("added", added),
        ("replaced", replaced),
        ("kept; --replace replaces them", kept),
        ("unchanged", unchanged),
    ] {
        if !keys.is_empty() {
            let _ = writeln!(plain, "{label}: {}", list(keys).join(", "));
        }
    }
    if plain.is_empty() {
        plain.push_str("The export is empty.\n");
    }
    let json = json!({
        "added": list(added), "replaced": list(replaced), "kept": list(kept), "unchanged": list(unchanged),
    });
    Ok(CommandOutput::new(plain, json))
}
