//! Settings that name a secret of the vault: `vault:NAME` in place of a key, token or password.

use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::secret_reference::{CONFIGURATION, InvalidSecretName};
use lango_domain::{SecretError, SecretName, SecretReference, SecretSource, SecretUse};
use lango_net::parse_url;

use crate::config::{ConfigError, LoadedConfig};
use crate::settings::Settings;

const PREFIX: &str = "vault:";

/// A setting that may name a secret.
struct SecretSetting<'s> {
    key: String,
    /// The address that receives the value, if a setting names it.
    address: Option<String>,
    value: &'s mut Option<Secret>,
}

impl LoadedConfig {
    /// Returns true if a setting names a secret of the vault.
    pub fn has_vault_settings(&mut self) -> bool {
        let mut is_used = false;
        visit(&mut self.settings, &mut |setting| {
            is_used |= vault_reference(&setting).is_some();
        });
        is_used
    }

    /// Returns the first setting whose secret could not be read.
    pub(crate) fn check_resolved(&self) -> Result<(), ConfigError> {
        self.unresolved
            .first()
            .map_or(Ok(()), |error| Err(error.clone()))
    }
}

/// Puts the values of the vault into the settings that name them. A setting whose secret cannot be read
/// is removed; commands that need it fail with the reason, and all others still work.
pub async fn resolve_vault_settings(loaded: &mut LoadedConfig, source: Option<&dyn SecretSource>) {
    let mut named = Vec::new();
    visit(&mut loaded.settings, &mut |setting| {
        if let Some(name) = vault_reference(&setting) {
            named.push((setting.key, setting.address, name));
        }
    });
    let mut resolved = Vec::new();
    for (key, address, name) in named {
        let value = match name {
            Ok(name) => resolve(source, name, address.as_deref()).await,
            Err(error) => Err(SecretError::Unreadable(error.to_string())),
        };
        let value = value.map_err(|error| {
            loaded
                .unresolved
                .push(ConfigError::new(format!("{key}: {error}")));
        });
        resolved.push((key, value.ok()));
    }
    visit(&mut loaded.settings, &mut |setting| {
        if let Some((_, value)) = resolved.iter().find(|(key, _)| *key == setting.key) {
            *setting.value = value.clone();
        }
    });
}

async fn resolve(
    source: Option<&dyn SecretSource>,
    name: SecretName,
    address: Option<&str>,
) -> Result<Secret, SecretError> {
    let source = source.ok_or(SecretError::NoVault)?;
    let hosts = address.map(|address| match parse_url(address) {
        Ok(url) => url.host_str().unwrap_or_default().to_owned(),
        Err(_) => address.to_owned(),
    });
    let usage = SecretUse {
        principal: Principal::local(),
        tool: CONFIGURATION.to_owned(),
        hosts: hosts.into_iter().collect(),
    };
    source.resolve(&SecretReference::Secret(name), &usage).await
}

/// Returns the name in `vault:NAME`, or `None` for any other text.
pub(crate) fn vault_name(text: &str) -> Option<Result<SecretName, InvalidSecretName>> {
    text.trim().strip_prefix(PREFIX).map(SecretName::new)
}

fn vault_reference(setting: &SecretSetting<'_>) -> Option<Result<SecretName, InvalidSecretName>> {
    setting
        .value
        .as_ref()
        .and_then(|value| vault_name(value.expose()))
}

/// Calls a function with every setting that holds a secret. A test compares the list with the schema.
fn visit(settings: &mut Settings, on_setting: &mut dyn FnMut(SecretSetting<'_>)) {
    for (id, provider) in &mut settings.providers {
        let (key, address) = (format!("providers.{id}"), provider.base_url.clone());
        visit_one(
            on_setting,
            format!("{key}.apiKey"),
            &address,
            &mut provider.api_key,
        );
        let headers = ("headers", &mut provider.headers);
        visit_map(on_setting, &key, &address, headers);
    }
    let embedding = &mut settings.embedding;
    let (key, address) = ("embedding.apiKey".to_owned(), embedding.base_url.clone());
    visit_one(on_setting, key, &address, &mut embedding.api_key);
    for (index, engine) in settings.search.engines.iter_mut().enumerate() {
        let (key, address) = (
            format!("search.engines[{index}].apiKey"),
            engine.base_url.clone(),
        );
        visit_one(on_setting, key, &address, &mut engine.api_key);
    }
    for remote in &mut settings.a2a.remote_agents {
        let key = format!("a2a.remoteAgents.{}", remote.name);
        let address = Some(remote.agent_card_url.clone());
        visit_one(
            on_setting,
            format!("{key}.token"),
            &address,
            &mut remote.token,
        );
        visit_map(on_setting, &key, &address, ("headers", &mut remote.headers));
    }
    visit_servers(settings, on_setting);
    let credentials = &mut settings.browser.credentials;
    credentials.retain(|host, value| {
        let mut given = Some(value.clone());
        let key = format!("browser.credentials.{host}");
        // The vault compares names of hosts, without a port.
        let name = host
            .rsplit_once(':')
            .map_or(host.as_str(), |(name, _)| name);
        visit_one(on_setting, key, &Some(name.to_owned()), &mut given);
        given.is_some_and(|given| {
            *value = given;
            true
        })
    });
    let (smtp, webhook) = (
        &mut settings.automation.smtp,
        &mut settings.automation.webhook,
    );
    let (key, address) = (
        "automation.smtp.password".to_owned(),
        Some(smtp.host.clone()),
    );
    visit_one(on_setting, key, &address, &mut smtp.password);
    let key = "automation.webhook.secret".to_owned();
    visit_one(on_setting, key, &None, &mut webhook.secret);
}

fn visit_servers(settings: &mut Settings, on_setting: &mut dyn FnMut(SecretSetting<'_>)) {
    for (id, server) in &mut settings.mcp.servers {
        let (key, address) = (format!("mcp.servers.{id}"), server.url.clone());
        visit_one(
            on_setting,
            format!("{key}.token"),
            &address,
            &mut server.token,
        );
        visit_map(on_setting, &key, &address, ("headers", &mut server.headers));
        visit_map(on_setting, &key, &None, ("env", &mut server.env));
    }
}

fn visit_one(
    on_setting: &mut dyn FnMut(SecretSetting<'_>),
    key: String,
    address: &Option<String>,
    value: &mut Option<Secret>,
) {
    on_setting(SecretSetting {
        key,
        address: address.clone(),
        value,
    });
}

/// Visits the values of a table, which has the name of its setting.
fn visit_map(
    on_setting: &mut dyn FnMut(SecretSetting<'_>),
    key: &str,
    address: &Option<String>,
    (setting, values): (&str, &mut std::collections::BTreeMap<String, Secret>),
) {
    values.retain(|name, header| {
        let mut value = Some(header.clone());
        visit_one(
            on_setting,
            format!("{key}.{setting}.{name}"),
            address,
            &mut value,
        );
        value.is_some_and(|value| {
            *header = value;
            true
        })
    });
}
