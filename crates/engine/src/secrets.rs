//! The secrets of a turn: references are resolved here and at no other place, and known values are
//! redacted from everything that leaves the turn (B130).

mod arguments;
mod output;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use lango_domain::event::{Principal, ToolCode};
use lango_domain::model::ToolCall;
use lango_domain::redaction::Redact;
use lango_domain::secret::Secret;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::{
    Intent, Safety, SecretBinding, SecretError, SecretReference, SecretSource, SecretUse,
    StoreError, Tool, ToolContext,
};
use serde_json::Value;

use crate::runner::Runner;
use crate::tool_execution::ToolOutcome;
use arguments::{find_references, put_in_values};
pub(crate) use output::{LiveOutput, ShownText};

/// Resolves references for one turn and knows the values to redact.
pub(crate) struct TurnSecrets {
    source: Option<Arc<dyn SecretSource>>,
    principal: Principal,
    known: RwLock<KnownValues>,
}

#[derive(Default)]
struct KnownValues {
    redactor: SecretRedactor,
    /// Values that this turn has used. The source may forget them, for example when it is locked.
    used: Vec<(String, Secret)>,
}

/// A secret that a call refers to.
pub(crate) struct ReferencedSecret {
    reference: SecretReference,
    binding: SecretBinding,
    /// True if the hosts that the call contacts are known.
    has_known_hosts: bool,
}

impl TurnSecrets {
    /// Reads the values to redact. Without a source there are none.
    pub async fn load(
        source: Option<Arc<dyn SecretSource>>,
        principal: Principal,
    ) -> Result<Self, StoreError> {
        let secrets = Self {
            source,
            principal,
            known: RwLock::default(),
        };
        match secrets.refresh().await {
            Err(SecretError::Store(error)) => Err(error),
            Err(error) => {
                tracing::warn!(%error, "the values of secrets cannot be read; none can be used");
                Ok(secrets)
            }
            Ok(_) => Ok(secrets),
        }
    }

    /// Reads the values to redact again: a call may have stored a secret. Returns true if there is a new
    /// value.
    pub async fn refresh(&self) -> Result<bool, SecretError> {
        let Some(source) = &self.source else {
            return Ok(false);
        };
        let current = source.redactor(&self.principal).await?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let has_new_value = !known.redactor.knows_all_of(&current);
        let used = known.used.iter();
        known.redactor = used.fold((*current).clone(), |redactor, (name, value)| {
            redactor.with_secret(name, value.clone())
        });
        Ok(has_new_value)
    }

    pub fn redactor(&self) -> SecretRedactor {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.redactor.clone()
    }

    /// Redacts a value in place.
    pub fn redact(&self, value: &mut (impl Redact + ?Sized)) {
        let redactor = self.redactor();
        if !redactor.is_empty() {
            value.redact(&redactor);
        }
    }

    /// Returns the secrets that a call refers to, or the outcome of a call that may not use them.
    pub async fn referenced(
        &self,
        tool: &Tool,
        call: &ToolCall,
        context: &ToolContext,
    ) -> Result<Vec<ReferencedSecret>, ToolOutcome> {
        let references = find_references(tool, &call.arguments)
            .map_err(|reason| ToolOutcome::failed(ToolCode::Arguments, reason))?;
        let mut referenced = Vec::new();
        let usage = self.usage(tool, call, context);
        for reference in references {
            let binding = self.checked_binding(&reference, &usage).await;
            referenced.push(ReferencedSecret {
                reference,
                binding: binding.map_err(failed)?,
                has_known_hosts: !usage.hosts.is_empty(),
            });
        }
        Ok(referenced)
    }

    /// Returns the arguments of a call with the values in them. From now on they are redacted.
    pub async fn resolve(
        &self,
        tool: &Tool,
        call: &ToolCall,
        context: &ToolContext,
        referenced: &[ReferencedSecret],
    ) -> Result<Value, ToolOutcome> {
        let mut arguments = call.arguments.clone();
        if referenced.is_empty() {
            return Ok(arguments);
        }
        let source = self.source.as_ref().ok_or(SecretError::NoVault);
        let source = source.map_err(failed)?;
        let usage = self.usage(tool, call, context);
        let mut values = BTreeMap::new();
        for ReferencedSecret { reference, .. } in referenced {
            let value = source.resolve(reference, &usage).await.map_err(failed)?;
            values.insert(reference.clone(), value);
        }
        self.remember(&values);
        put_in_values(tool, &mut arguments, &values).map_err(failed)?;
        Ok(arguments)
    }

    fn usage(&self, tool: &Tool, call: &ToolCall, context: &ToolContext) -> SecretUse {
        let outgoing = tool.outgoing(context, &call.arguments);
        SecretUse {
            principal: self.principal.clone(),
            tool: tool.name.clone(),
            hosts: outgoing.map_or_else(Vec::new, |outgoing| outgoing.to.known_hosts()),
        }
    }

    async fn checked_binding(
        &self,
        reference: &SecretReference,
        usage: &SecretUse,
    ) -> Result<SecretBinding, SecretError> {
        let source = self.source.as_ref().ok_or(SecretError::NoVault)?;
        let SecretReference::Secret(name) = reference else {
            return Ok(SecretBinding::default());
        };
        let Some(binding) = source.binding(&self.principal, name).await? else {
            // The source knows similar names.
            let error = source.resolve(reference, usage).await.err();
            return Err(error.unwrap_or_else(|| SecretError::Unknown {
                name: name.to_string(),
                suggestion: None,
            }));
        };
        binding.check(name, usage)?;
        Ok(binding)
    }

    fn remember(&self, values: &BTreeMap<SecretReference, Secret>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for (reference, value) in values {
            if !known.redactor.knows(value.expose()) {
                let label = reference.label();
                known.redactor = known.redactor.with_secret(&label, value.clone());
            }
            if !known.used.iter().any(|(_, used)| used == value) {
                known.used.push((reference.label(), value.clone()));
            }
        }
    }
}

impl Runner {
    /// Removes the values of a principal's secrets from something that is stored without a turn.
    pub async fn redact(
        &self,
        principal: &Principal,
        value: &mut (impl Redact + ?Sized),
    ) -> Result<(), StoreError> {
        let source = self.inner.secrets.clone();
        let secrets = TurnSecrets::load(source, principal.clone()).await?;
        secrets.redact(value);
        Ok(())
    }
}

fn failed(error: SecretError) -> ToolOutcome {
    ToolOutcome::failed(ToolCode::Failed, error.to_string())
}

/// Returns the intent of a call that uses secrets. It is dangerous, and the question names them.
pub(crate) fn with_secrets(intent: Intent, referenced: &[ReferencedSecret]) -> Intent {
    if referenced.is_empty() {
        return intent;
    }
    let lines: String = referenced.iter().map(describe_secret).collect();
    Intent {
        level: Safety::Dangerous,
        shows: format!("{lines}{}", intent.shows),
        pattern: None,
        ..intent
    }
}

fn describe_secret(secret: &ReferencedSecret) -> String {
    let ReferencedSecret {
        reference,
        binding,
        has_known_hosts,
    } = secret;
    let name = match reference {
        SecretReference::Secret(name) => format!("the secret {name}"),
        SecretReference::Decrypted(id) => format!("the decrypted text {id}"),
    };
    match (binding.hosts.is_empty(), has_known_hosts) {
        (true, _) => format!("uses {name}, which is not limited to a host\n"),
        (false, true) => format!("uses {name}, meant for {}\n", binding.hosts.join(", ")),
        (false, false) => format!(
            "uses {name}, meant for {}; where this call sends it cannot be checked\n",
            binding.hosts.join(", ")
        ),
    }
}
