//! What a caller brings along for a turn beside its request: data that is read with it, never instructions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::hooks::{ContextError, ContextRequest, ContextSource};
use lango_domain::session::SessionKey;
use lango_domain::{Label, LabeledText, token_estimate};

/// The name under which it stands in the log.
pub(crate) const SOURCE_NAME: &str = "client";
/// A model reads at most so many tokens of it (B41).
const TOKEN_CAP: usize = 6_000;

#[derive(Clone, Default)]
pub(crate) struct ClientContext {
    texts: Arc<Mutex<HashMap<SessionKey, String>>>,
}

/// Holds what was brought for as long as the turn needs it.
pub(crate) struct ClientContextGuard {
    contexts: ClientContext,
    key: SessionKey,
}

impl ClientContext {
    pub fn insert(&self, key: &SessionKey, text: String) -> ClientContextGuard {
        self.texts().insert(key.clone(), text);
        ClientContextGuard {
            contexts: self.clone(),
            key: key.clone(),
        }
    }

    fn texts(&self) -> std::sync::MutexGuard<'_, HashMap<SessionKey, String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As much of a text as is read.
pub(crate) fn truncate(text: &str) -> String {
    token_estimate::truncate(text.trim(), TOKEN_CAP).to_owned()
}

impl Drop for ClientContextGuard {
    fn drop(&mut self) {
        self.contexts.texts().remove(&self.key);
    }
}

impl ContextSource for ClientContext {
    fn name(&self) -> &str {
        SOURCE_NAME
    }

    fn max_tokens(&self) -> usize {
        TOKEN_CAP
    }

    fn gather(
        &self,
        request: ContextRequest,
    ) -> BoxFuture<'static, Result<Option<LabeledText>, ContextError>> {
        let key = SessionKey {
            principal: request.principal,
            session: request.session,
        };
        // A client's program writes this, often with words of pages and files in it.
        let source = "what the client sent along";
        let label = Label::untrusted(source).joined(&Label::private(source));
        let text = self.texts().get(&key).cloned();
        ready(Ok(text.map(|text| LabeledText { text, label }))).boxed()
    }
}
