//! The tools `secrets_*`. No value leaves them: they return names and references.

use std::fmt::Write as _;

use lango_domain::secret::Secret;
use lango_domain::{
    Intent, Safety, SecretBinding, SecretName, SecretReference, Tool, ToolContext, ToolError,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{VaultTools, parse_name, phrases, tool_error};
use crate::secrets::{BindingChange, SecretEntry, StoredSecret};

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ValueOrigin {
    /// The user types it at the terminal.
    Prompt,
}

#[derive(Deserialize, JsonSchema)]
struct StoreArgs {
    /// A letter or `_`, then letters, digits, `_`, `.` and `-`.
    name: String,
    /// The value, only if it is already in the conversation. Prefer `from`.
    value: Option<Secret>,
    /// `prompt`, the default: the user types the value, and you never see it.
    from: Option<ValueOrigin>,
    /// Tools that may use it. Default: every tool that accepts references.
    #[serde(default)]
    tools: Vec<String>,
    /// Hosts that may receive it, such as api.github.com or *.example.com. Default: every host.
    #[serde(default)]
    hosts: Vec<String>,
}

/// A call of `secrets_store` that was checked.
struct StoreRequest {
    name: SecretName,
    /// `None` if the user types it.
    value: Option<Secret>,
    change: BindingChange,
    binding: SecretBinding,
}

impl StoreArgs {
    fn check(self) -> Result<StoreRequest, ToolError> {
        if self.value.is_some() && self.from.is_some() {
            return Err(ToolError("give either `value` or `from`".to_owned()));
        }
        let change = BindingChange::from_lists(&self.tools, &self.hosts);
        Ok(StoreRequest {
            name: parse_name(&self.name)?,
            value: self.value,
            binding: change.check().map_err(tool_error)?,
            change,
        })
    }
}

pub(super) fn secrets_store(parts: VaultTools) -> Tool {
    let description = "Stores a secret, such as a token or password, encrypted. By default the user types the value \
        at the terminal, so that you never see it.";
    let describing = parts.clone();
    Tool::new(
        "secrets_store",
        description,
        Safety::Dangerous,
        move |context, args: StoreArgs| {
            let parts = parts.clone();
            async move { store(&parts, &context, args.check()?).await }
        },
    )
    .with_intent(move |context, args: StoreArgs| {
        let parts = describing.clone();
        async move { describe_store(&parts, &context, &args.check()?).await }
    })
    .with_phrases(phrases::STORE)
}

async fn describe_store(
    parts: &VaultTools,
    context: &ToolContext,
    request: &StoreRequest,
) -> Result<Intent, ToolError> {
    let name = &request.name;
    if request.value.is_none() && parts.prompt.get().is_none() {
        return Err(no_terminal(name));
    }
    let vault = parts.secrets().await?.vault();
    let listed = vault
        .secrets(&context.principal)
        .await
        .map_err(tool_error)?;
    let is_known = listed.iter().any(|entry| entry.name == name.as_str());
    let action = if is_known { "replaces" } else { "stores" };
    let origin = match request.value {
        Some(_) => "with a value from this conversation",
        None => "with a value that you type next; no model sees it",
    };
    Ok(Intent {
        level: Safety::Dangerous,
        shows: format!(
            "{action} the secret `{name}`, {origin}\n{}",
            describe_binding(&request.binding)
        ),
        subject: name.to_string(),
        pattern: None,
    })
}

fn no_terminal(name: &SecretName) -> ToolError {
    ToolError(format!(
        "there is no terminal here to type the value at; the user can run `lango secret set {name}`"
    ))
}

async fn store(
    parts: &VaultTools,
    context: &ToolContext,
    request: StoreRequest,
) -> Result<String, ToolError> {
    let StoreRequest {
        name,
        value,
        change,
        ..
    } = request;
    let is_typed = value.is_none();
    let value = match value {
        Some(value) => value,
        None => {
            let prompt = parts.prompt.get().ok_or_else(|| no_terminal(&name))?;
            let typed = prompt
                .ask(format!("Value of the secret {name} (not shown):"))
                .await;
            typed.ok_or_else(|| {
                ToolError("the user typed no value; nothing was stored".to_owned())
            })?
        }
    };
    let secrets = parts.secrets().await?;
    secrets.expect_value(&context.principal, &name, &value);
    let stored = secrets
        .vault()
        .set_secret(&context.principal, &name, &value, &change)
        .await
        .map_err(tool_error)?;
    Ok(report_stored(&name, stored, is_typed))
}

fn report_stored(name: &SecretName, stored: StoredSecret, is_typed: bool) -> String {
    let action = if stored.is_replaced {
        "Replaced"
    } else {
        "Stored"
    };
    let reference = SecretReference::Secret(name.clone());
    let mut text = format!("{action} the secret `{name}`. Use it as {reference}.");
    if !stored.is_redacted {
        text.push_str(" It is so short that it is not removed from texts.");
    }
    if !is_typed {
        let _ = write!(
            text,
            " Its value was part of the conversation, so the model has read it. Tell the user to replace it where it \
            is used, and to enter the new one with `lango secret set {name}`."
        );
    }
    text
}

fn describe_binding(binding: &SecretBinding) -> String {
    let list = |names: &[String], all: &str| match names {
        [] => all.to_owned(),
        names => names.join(", "),
    };
    let tools = list(&binding.tools, "every tool that accepts references");
    let hosts = list(&binding.hosts, "every host");
    format!("for tools: {tools}; for hosts: {hosts}")
}

#[derive(Deserialize, JsonSchema)]
struct NameArgs {
    /// The name of a stored secret.
    name: String,
}

pub(super) fn secrets_get(parts: VaultTools) -> Tool {
    let description = "Returns the reference to a secret, such as {{secret:NAME}}, never its value. Tools that accept \
        references put the value in.";
    Tool::new(
        "secrets_get",
        description,
        Safety::Moderate,
        move |context, args: NameArgs| {
            let parts = parts.clone();
            async move {
                let name = parse_name(&args.name)?;
                let vault = parts.secrets().await?.vault();
                let entry = vault.secret(&context.principal, &name).await.map_err(tool_error)?;
                Ok(format!(
                    "{}\n{}\nThe value is set and never shown. Write the reference in a field that accepts references, \
                    such as `env` of exec_shell.",
                    SecretReference::Secret(name),
                    describe_binding(&entry.binding)
                ))
            }
        },
    )
    .with_phrases(phrases::GET)
}

#[derive(Deserialize, JsonSchema)]
struct ListArgs {}

pub(super) fn secrets_list(parts: VaultTools) -> Tool {
    Tool::new(
        "secrets_list",
        "Lists the names of the stored secrets with their tools and hosts, never their values.",
        Safety::Safe,
        move |context, _args: ListArgs| {
            let parts = parts.clone();
            async move {
                let vault = parts.secrets().await?.vault();
                let entries = vault
                    .secrets(&context.principal)
                    .await
                    .map_err(tool_error)?;
                Ok(list_entries(&entries))
            }
        },
    )
    .with_private_output()
    .with_phrases(phrases::LIST)
}

fn list_entries(entries: &[SecretEntry]) -> String {
    if entries.is_empty() {
        return "There are no secrets. The user can store one with `lango secret set NAME`."
            .to_owned();
    }
    let lines = entries.iter().map(|entry| {
        let used = match entry.used {
            Some(at) => format!("last used {}", at.strftime("%Y-%m-%d")),
            None => "never used".to_owned(),
        };
        format!(
            "{} ({used}; {})",
            entry.name,
            describe_binding(&entry.binding)
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn secrets_delete(parts: VaultTools) -> Tool {
    let describing = parts.clone();
    Tool::new(
        "secrets_delete",
        "Deletes a stored secret. Its value cannot be restored.",
        Safety::Dangerous,
        move |context, args: NameArgs| {
            let parts = parts.clone();
            async move {
                let name = parse_name(&args.name)?;
                let vault = parts.secrets().await?.vault();
                vault
                    .remove_secret(&context.principal, &name)
                    .await
                    .map_err(tool_error)?;
                Ok(format!("Deleted the secret `{name}`."))
            }
        },
    )
    .with_intent(move |context, args: NameArgs| {
        let parts = describing.clone();
        async move {
            let name = parse_name(&args.name)?;
            let vault = parts.secrets().await?.vault();
            let entry = vault
                .secret(&context.principal, &name)
                .await
                .map_err(tool_error)?;
            Ok(Intent {
                level: Safety::Dangerous,
                shows: format!(
                    "deletes the secret `{name}`\n{}",
                    describe_binding(&entry.binding)
                ),
                subject: name.to_string(),
                pattern: None,
            })
        }
    })
    .with_phrases(phrases::DELETE)
}
