//! Secrets in recordings: a recording has no values, and a replay needs none.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::event::Principal;
use lango_domain::secret::Secret;
use lango_domain::secret_reference::{SecretRedactor, hidden_mark};
use lango_domain::{
    SecretBinding, SecretError, SecretName, SecretReference, SecretSource, SecretUse,
};

use super::Recorder;

impl Recorder {
    /// Reads the values to redact, so that the request has none of them either.
    pub async fn learn_secrets(
        &self,
        source: Option<&dyn SecretSource>,
        principal: &Principal,
    ) -> Result<(), SecretError> {
        if let Some(source) = source {
            self.learn((*source.redactor(principal).await?).clone());
        }
        Ok(())
    }

    pub(super) fn wrap_secrets(
        self: &Arc<Self>,
        source: Arc<dyn SecretSource>,
    ) -> Arc<dyn SecretSource> {
        let recorder = Arc::clone(self);
        Arc::new(RecordedSecrets { source, recorder })
    }
}

/// Tells the recorder each value before a tool receives it.
struct RecordedSecrets {
    source: Arc<dyn SecretSource>,
    recorder: Arc<Recorder>,
}

impl SecretSource for RecordedSecrets {
    fn resolve<'a>(
        &'a self,
        reference: &'a SecretReference,
        usage: &'a SecretUse,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        async move {
            let value = self.source.resolve(reference, usage).await?;
            let known = self.recorder.redactor();
            self.recorder
                .learn(known.with_secret(&reference.label(), value.clone()));
            Ok(value)
        }
        .boxed()
    }

    fn binding<'a>(
        &'a self,
        principal: &'a Principal,
        name: &'a SecretName,
    ) -> BoxFuture<'a, Result<Option<SecretBinding>, SecretError>> {
        self.source.binding(principal, name)
    }

    fn redactor<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<SecretRedactor>, SecretError>> {
        async move {
            let redactor = self.source.redactor(principal).await?;
            self.recorder.learn((*redactor).clone());
            Ok(redactor)
        }
        .boxed()
    }
}

/// Resolves each reference to the mark that a recording has in place of its value.
pub(super) struct ReplayedSecrets;

impl SecretSource for ReplayedSecrets {
    fn resolve<'a>(
        &'a self,
        reference: &'a SecretReference,
        _: &'a SecretUse,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        ready(Ok(Secret::new(hidden_mark(&reference.label())))).boxed()
    }

    fn binding<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a SecretName,
    ) -> BoxFuture<'a, Result<Option<SecretBinding>, SecretError>> {
        ready(Ok(Some(SecretBinding::default()))).boxed()
    }

    fn redactor<'a>(
        &'a self,
        _: &'a Principal,
    ) -> BoxFuture<'a, Result<Arc<SecretRedactor>, SecretError>> {
        ready(Ok(Arc::default())).boxed()
    }
}
