//! Context that the client sends with a request. The model reads it as data, never as instructions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use lango_domain::hooks::{ContextError, ContextRequest, ContextSource};
use lango_domain::session::SessionKey;
use lango_domain::{Label, LabeledText};
use lango_text::token_estimate;

/// The source name of client context in the event log.
pub const SOURCE_NAME: &str = "client";
/// Maximum number of tokens that a model reads (B41).
const TOKEN_CAP: usize = 6_000;

/// The context of running turns by session.
#[derive(Clone, Default)]
pub struct ClientContext {
    texts: Arc<Mutex<HashMap<SessionKey, String>>>,
}

/// Removes the context of a session when dropped.
pub struct ClientContextGuard {
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

/// Truncates a text to the part that a model reads.
pub fn truncate(text: &str) -> String {
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
        // Client programs often put text from web pages and files into this.
        let source = "context sent by the client";
        let label = Label::untrusted(source).joined(&Label::private(source));
        let text = self.texts().get(&key).cloned();
        ready(Ok(text.map(|text| LabeledText { text, label }))).boxed()
    }
}
