//! `lango secret …`: secrets of the vault. Values are read, and never printed.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use lango_app::capability::vault::{BindingChange, SecretEntry, Vault};
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::{SecretBinding, SecretName};
use serde_json::{Value, json};

use super::{CommandContext, runtime, vault};
use crate::args::{GlobalArgs, SecretBindArgs, SecretCommand, SecretSetArgs};
use crate::hidden_input::{HiddenInput, ask_hidden, read_stdin, read_value};
use crate::output::{CliError, CommandOutput, DIM, NAME, styled};

pub fn run(global: &GlobalArgs, command: &SecretCommand) -> Result<CommandOutput, CliError> {
    let context = CommandContext::load(global)?;
    let secrets = context.stores.vault()?;
    let vault = secrets.vault();
    runtime()?.block_on(async {
        match command {
            SecretCommand::Set(args) => set(vault, args).await,
            SecretCommand::List => list(vault).await,
            SecretCommand::Remove { names } => remove(vault, names).await,
            SecretCommand::Bind(args) => bind(vault, args).await,
        }
    })
}

pub(super) fn parse_name(name: &str) -> Result<SecretName, CliError> {
    SecretName::new(name).map_err(|error| CliError::usage(error.to_string()))
}

async fn set(vault: &Vault, args: &SecretSetArgs) -> Result<CommandOutput, CliError> {
    let name = parse_name(&args.name)?;
    let change = BindingChange::from_lists(&args.tool, &args.host);
    // Wrong hosts are reported before the value is typed.
    change.check()?;
    open_at_terminal(vault).await?;
    let value = value(&name, args).await?;
    let principal = Principal::local();
    let stored = vault.set_secret(&principal, &name, &value, &change).await?;
    let entry = vault.secret(&principal, &name).await?;
    let action = if stored.is_replaced {
        "Replaced"
    } else {
        "Stored"
    };
    let plain = format!(
        "{action} {}. Models refer to it as {{{{secret:{name}}}}}.\n{}\n",
        styled(NAME, &name),
        styled(DIM, describe_binding(&entry.binding))
    );
    let mut json = entry_json(&entry);
    json["replaced"] = stored.is_replaced.into();
    let warnings = match stored.is_redacted {
        true => Vec::new(),
        false => vec!["the value is so short that it is not removed from texts".to_owned()],
    };
    Ok(CommandOutput::new(plain, json).with_warnings(warnings))
}

/// Opens a locked vault, if the passphrase can be typed. A pipe holds the value of the secret.
async fn open_at_terminal(vault: &Vault) -> Result<(), CliError> {
    match std::io::stdin().is_terminal() {
        true => vault::open(vault, &mut HiddenInput::Terminal).await,
        false => Ok(()),
    }
}

async fn value(name: &SecretName, args: &SecretSetArgs) -> Result<Secret, CliError> {
    if let Some(path) = &args.from_file {
        let display = path.display().to_string();
        let file = std::fs::File::open(path)
            .map_err(|error| CliError::usage(format!("cannot read {display}: {error}")))?;
        return read_value(file, &display);
    }
    if !std::io::stdin().is_terminal() {
        return read_stdin();
    }
    let typed = ask_hidden(&format!("Value of {name} (not shown):")).await;
    typed.ok_or_else(|| CliError::cancelled("cancelled; nothing was stored"))
}

async fn list(vault: &Vault) -> Result<CommandOutput, CliError> {
    let entries = vault.secrets(&Principal::local()).await?;
    let mut plain = String::new();
    for entry in &entries {
        let used = entry.used.map_or("never used".to_owned(), |at| {
            format!("used {}", at.strftime("%Y-%m-%d %H:%M"))
        });
        let _ = writeln!(
            plain,
            "{}  {}  {}",
            styled(NAME, &entry.name),
            describe_binding(&entry.binding),
            styled(DIM, used)
        );
    }
    if entries.is_empty() {
        plain.push_str("There are no secrets. Store one with `lango secret set NAME`.\n");
    }
    let items: Vec<Value> = entries.iter().map(entry_json).collect();
    Ok(CommandOutput::new(plain, json!({ "items": items })))
}

async fn remove(vault: &Vault, names: &[String]) -> Result<CommandOutput, CliError> {
    let principal = Principal::local();
    let names: Vec<SecretName> = names
        .iter()
        .map(|name| parse_name(name))
        .collect::<Result<_, _>>()?;
    // All names are checked before one is removed.
    for name in &names {
        vault.secret(&principal, name).await?;
    }
    for name in &names {
        vault.remove_secret(&principal, name).await?;
    }
    let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
    let plain = format!("Removed: {}.\n", names.join(", "));
    Ok(CommandOutput::new(plain, json!({ "removed": names })))
}

async fn bind(vault: &Vault, args: &SecretBindArgs) -> Result<CommandOutput, CliError> {
    let name = parse_name(&args.name)?;
    let mut change = BindingChange::from_lists(&args.tool, &args.host);
    if args.any_host {
        change.hosts = Some(Vec::new());
    }
    if args.any_tool {
        change.tools = Some(Vec::new());
    }
    if change == BindingChange::default() {
        let hint = "pass --host, --tool, --any-host or --any-tool";
        return Err(CliError::usage("there is nothing to change").with_hint(hint));
    }
    let principal = Principal::local();
    open_at_terminal(vault).await?;
    vault.bind_secret(&principal, &name, &change).await?;
    let entry = vault.secret(&principal, &name).await?;
    let plain = format!(
        "{}  {}\n",
        styled(NAME, &name),
        describe_binding(&entry.binding)
    );
    Ok(CommandOutput::new(plain, entry_json(&entry)))
}

fn describe_binding(binding: &SecretBinding) -> String {
    let list = |names: &[String], all: &str| match names {
        [] => all.to_owned(),
        names => names.join(", "),
    };
    format!(
        "for {} at {}",
        list(&binding.tools, "every tool"),
        list(&binding.hosts, "every host")
    )
}

fn entry_json(entry: &SecretEntry) -> Value {
    json!({
        "name": entry.name,
        "created": entry.created,
        "used": entry.used,
        "tools": entry.binding.tools,
        "hosts": entry.binding.hosts,
    })
}
