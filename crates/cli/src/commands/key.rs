//! `lango key …`: keys of the vault for signatures and encryption.

use std::fmt::Write as _;

use lango_app::capability::vault::{KeyEntry, KeyPurpose, PublicKey, Vault};
use lango_domain::SecretName;
use lango_domain::event::Principal;
use serde_json::{Value, json};

use super::secret::parse_name;
use super::{CommandContext, runtime, vault};
use crate::args::{GlobalArgs, KeyCommand, PublicKeyForm, PurposeChoice};
use crate::hidden_input::HiddenInput;
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn run(global: &GlobalArgs, command: &KeyCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let secrets = context.stores.vault()?;
    let vault = secrets.vault();
    let principal = Principal::local();
    runtime()?.block_on(async {
        if !matches!(command, KeyCommand::List) {
            vault::open(vault, &mut HiddenInput::open()).await?;
        }
        match command {
            KeyCommand::Create { name, purpose } => {
                let purpose = match purpose {
                    PurposeChoice::Sign => KeyPurpose::Sign,
                    PurposeChoice::Encrypt => KeyPurpose::Encrypt,
                };
                let name = parse_name(name)?;
                let key = vault.create_key(&principal, &name, purpose).await?;
                Ok(CommandOutput::new(describe(&key) + "\n", key_json(&key)))
            }
            KeyCommand::List => list(vault).await,
            KeyCommand::Rotate { name } => {
                let key = vault.rotate_key(&principal, &parse_name(name)?).await?;
                let rest = "Earlier versions still verify and decrypt.";
                let plain = format!("{}\n{}\n", describe(&key), styled(DIM, rest));
                Ok(CommandOutput::new(plain, key_json(&key)))
            }
            KeyCommand::ExportPublic {
                name,
                version,
                form,
            } => export_public(vault, &parse_name(name)?, *version, *form).await,
        }
    })
}

async fn list(vault: &Vault) -> Result<CommandOutput, CliError> {
    let keys = vault.keys(&Principal::local()).await?;
    let mut plain = String::new();
    for key in &keys {
        let _ = writeln!(plain, "{}", describe(key));
    }
    if keys.is_empty() {
        plain.push_str("There are no keys. Create one with `lango key create NAME`.\n");
    }
    let items: Vec<Value> = keys.iter().map(key_json).collect();
    Ok(CommandOutput::new(plain, json!({ "items": items })))
}

async fn export_public(
    vault: &Vault,
    name: &SecretName,
    version: Option<u64>,
    form: PublicKeyForm,
) -> Result<CommandOutput, CliError> {
    let versions = vault.key_versions(&Principal::local(), name).await?;
    let key = versions
        .iter()
        .find(|key| version.is_none_or(|version| key.version == version));
    let Some(key) = key else {
        let newest = versions.first().map_or(0, |key| key.version);
        let message = format!("the key `{name}` has no such version; the newest is {newest}");
        return Err(CliError::usage(message));
    };
    let Some(public_key) = key.public_key else {
        let message = format!("the key `{name}` is for encryption, and has no public part");
        return Err(CliError::usage(message));
    };
    let plain = match form {
        PublicKeyForm::Pem => public_key.to_pem(),
        PublicKeyForm::Base64 => public_key.to_base64(),
        PublicKeyForm::Hex => public_key.to_hex(),
    };
    let mut json = key_json(key);
    json["hex"] = public_key.to_hex().into();
    json["pem"] = public_key.to_pem().into();
    Ok(CommandOutput::new(plain, json))
}

fn describe(key: &KeyEntry) -> String {
    let public_key = key.public_key.map_or_else(String::new, |key| {
        format!("  {}", styled(DIM, key.to_base64()))
    });
    format!(
        "{}  {} ({}), version {}{public_key}",
        styled(NAME, &key.name),
        key.purpose.as_str(),
        key.purpose.algorithm(),
        key.version
    )
}

fn key_json(key: &KeyEntry) -> Value {
    json!({
        "name": key.name,
        "purpose": key.purpose,
        "algorithm": key.purpose.algorithm(),
        "version": key.version,
        "created": key.created,
        "public_key": key.public_key.map(PublicKey::to_base64),
    })
}
