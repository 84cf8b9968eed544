//! Hooks around a turn: context, digest, advice, and notification of its end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use futures::join;
use lango_domain::content::MAX_ATTACHMENTS;
use lango_domain::event::{Author, EventBody, ToolCode};
use lango_domain::hooks::{
    Advisor, AfterTurn, ContextError, ContextRequest, ContextSource, DigestSource, FailedCall,
};
use lango_domain::model::{ModelError, ToolCall};
use lango_domain::session::SessionKey;
use lango_domain::{Attachment, Content, Label, LabeledText};
use lango_text::token_estimate;

use crate::driver::{ActiveAgent, Driver};
use crate::request::NewRequest;
use crate::tool_execution::{ContentOrigin, ToolOutcome};
use crate::turn_error::{TurnError, panic_message};
use crate::turn_log::LogEntry;

/// Timeouts for hooks. The turn continues without a hook that takes longer.
const CONTEXT_TIMEOUT: Duration = Duration::from_secs(5);
const ADVICE_TIMEOUT: Duration = Duration::from_millis(500);

/// More than any model's window holds.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// Caps for the text of hooks that a model reads (B41).
const MAX_DIGEST_TOKENS: usize = 60_000;
const MAX_ADVICE_TOKENS: usize = 300;
const MAX_CONTEXT_TOKENS: usize = 16_000;

/// Optional hooks around a turn. With none set, a turn sees only its session.
#[derive(Clone, Default)]
pub struct TurnHooks {
    /// Provide context for a request.
    pub context_sources: Vec<Arc<dyn ContextSource>>,
    /// Provides a digest that replaces the earlier part of a session.
    pub digest_source: Option<Arc<dyn DigestSource>>,
    /// Provides advice for failed calls.
    pub advisor: Option<Arc<dyn Advisor>>,
    /// Run after a turn has ended.
    pub after_turn: Vec<Arc<dyn AfterTurn>>,
}

impl Driver {
    /// Appends the request of a turn, then its context and digest.
    pub(crate) async fn record_request(
        &self,
        active: &ActiveAgent,
        request: NewRequest,
    ) -> Result<(), TurnError> {
        let (text, is_too_long) = truncate_request(&request.content.text);
        let mut attachments = request.content.attachments;
        attachments.truncate(MAX_ATTACHMENTS);
        let text_files: Vec<_> = attachments.iter().filter_map(text_file).collect();
        let content = Content { text, attachments };
        let user_entry = LogEntry {
            label: request.label,
            ..LogEntry::plain(
                Author::User,
                active.branch.clone(),
                EventBody::User(content),
            )
        };
        self.log.append(vec![user_entry]).await?;
        if is_too_long {
            return Err(ModelError::TooLong.into());
        }
        let (digest, context) = self
            .wait(async { join!(self.digest(), self.gather()) })
            .await?;
        let given = request.context.into_iter().chain(text_files);
        let given = given.map(|(source, attached)| {
            let text = truncate_context(attached.text.trim());
            (EventBody::Context { source, text }, attached.label)
        });
        let bodies = given.chain(context).chain(digest);
        let entries = bodies.map(|(body, label)| active.entry(&label, body));
        self.log.append(entries.collect()).await
    }

    /// Returns the context of every source, within its cap. A source that fails or times out is
    /// skipped.
    async fn gather(&self) -> Vec<(EventBody, Label)> {
        let gather_one = |source: &Arc<dyn ContextSource>| {
            let source = Arc::clone(source);
            let gathering = source.gather(ContextRequest {
                session: self.log.session.clone(),
                principal: self.log.principal.clone(),
                text: self.request.clone(),
            });
            async move {
                let context = with_timeout(source.name(), gathering).await;
                let LabeledText { mut text, label } = context?;
                self.log.secrets.redact(&mut text);
                let text = token_estimate::truncate(text.trim(), source.max_tokens()).to_owned();
                let source = source.name().to_owned();
                (!text.is_empty()).then_some((EventBody::Context { source, text }, label))
            }
        };
        let gathered = join_all(self.hooks.context_sources.iter().map(gather_one)).await;
        gathered.into_iter().flatten().collect()
    }

    /// Returns the digest of the session, unless the log already has the same one.
    async fn digest(&self) -> Option<(EventBody, Label)> {
        let source = self.hooks.digest_source.as_ref()?;
        let key = SessionKey {
            session: self.log.session.clone(),
            principal: self.log.principal.clone(),
        };
        let mut digest = with_timeout("digest", source.digest(key)).await?;
        self.log.secrets.redact(&mut digest.text);
        let through = digest.through;
        let text = token_estimate::truncate(digest.text.trim(), MAX_DIGEST_TOKENS).to_owned();
        let is_logged = self.log.read(|log| {
            let newest = log.iter().rev().find_map(|event| match &event.body {
                EventBody::Digest { through, text } => Some((*through, text)),
                _ => None,
            });
            newest == Some((through, &text))
        });
        (!is_logged).then_some((EventBody::Digest { through, text }, digest.label))
    }

    /// Adds advice to the outcome of a failed call, if the advisor has any.
    pub(crate) async fn with_advice(&self, call: &ToolCall, outcome: ToolOutcome) -> ToolOutcome {
        let Some(advisor) = &self.hooks.advisor else {
            return outcome;
        };
        let ToolOutcome::Failed {
            code: code @ (ToolCode::Failed | ToolCode::Timeout),
            reason,
            origin,
            ..
        } = outcome
        else {
            return outcome;
        };
        let failed_call = FailedCall {
            session: self.log.session.clone(),
            principal: self.log.principal.clone(),
            tool: call.name.clone(),
            args: call.arguments.clone(),
            error: reason.clone(),
        };
        let advising = AssertUnwindSafe(advisor.advice(failed_call)).catch_unwind();
        let advice = tokio::time::timeout(ADVICE_TIMEOUT, advising).await;
        let advice = advice.ok().and_then(|advice| advice.unwrap_or_default());
        let Some(LabeledText { text, label }) = advice else {
            return ToolOutcome::Failed {
                code,
                reason,
                origin,
                advice: None,
            };
        };
        let advice = Some(token_estimate::truncate(text.trim(), MAX_ADVICE_TOKENS).to_owned())
            .filter(|advice| !advice.is_empty());
        let origin = ContentOrigin {
            label: origin.label.joined(&label),
            ..origin
        };
        ToolOutcome::Failed {
            code,
            reason,
            origin,
            advice,
        }
    }
}

/// Returns the output of a hook, or `None` if it fails, panics or times out.
async fn with_timeout<T>(
    name: &str,
    future: BoxFuture<'static, Result<Option<T>, ContextError>>,
) -> Option<T> {
    match tokio::time::timeout(CONTEXT_TIMEOUT, AssertUnwindSafe(future).catch_unwind()).await {
        Ok(Ok(Ok(output))) => output,
        Ok(Ok(Err(error))) => {
            tracing::warn!(source = name, %error, "the context source failed");
            None
        }
        Ok(Err(payload)) => {
            tracing::error!(
                source = name,
                detail = panic_message(&*payload),
                "the context source panicked"
            );
            None
        }
        Err(_) => {
            tracing::warn!(source = name, "the context source timed out");
            None
        }
    }
}

/// Returns the text of an attached text file as context, with its label.
fn text_file(attachment: &Attachment) -> Option<(String, LabeledText)> {
    let source = format!("file {}", attachment.name);
    let text = attachment.text()?;
    let label = Label::attachment(&attachment.name);
    Some((source, LabeledText { text, label }))
}

/// Truncates text that came with the request to its cap and appends the number of omitted bytes.
fn truncate_context(text: &str) -> String {
    let truncated = token_estimate::truncate(text, MAX_CONTEXT_TOKENS);
    match text.len() - truncated.len() {
        0 => text.to_owned(),
        omitted => format!("{truncated}\n[… {omitted} bytes left out …]"),
    }
}

/// Truncates a request that no model can read. Returns true with it if it was too long.
fn truncate_request(request: &str) -> (String, bool) {
    let end = request.floor_char_boundary(MAX_REQUEST_BYTES.min(request.len()));
    (request[..end].to_owned(), end < request.len())
}
