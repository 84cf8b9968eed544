//! What stands beside a turn: what it is told, what it is advised, and who is told of its end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use futures::join;
use lango_domain::event::{Author, EventBody, ToolCode};
use lango_domain::hooks::{
    Advisor, AfterTurn, ContextError, ContextRequest, ContextSource, DigestSource, FailedCall,
};
use lango_domain::model::{ModelError, ToolCall};
use lango_domain::session::SessionKey;
use lango_domain::{Label, LabeledText, token_estimate};

use crate::driver::{ActiveAgent, Driver};
use crate::request::NewRequest;
use crate::tool_execution::{ContentOrigin, ToolOutcome};
use crate::turn_error::{TurnError, panic_message};
use crate::turn_log::LogEntry;

/// What takes longer is left out of this turn.
const CONTEXT_TIMEOUT: Duration = Duration::from_secs(5);
const ADVICE_TIMEOUT: Duration = Duration::from_millis(500);

/// No window holds more.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// A model reads at most so many tokens of these (B41).
const MAX_DIGEST_TOKENS: usize = 60_000;
const MAX_ADVICE_TOKENS: usize = 300;
const MAX_ATTACHMENT_TOKENS: usize = 60_000;

/// Without anything a turn knows only its session.
#[derive(Clone, Default)]
pub struct TurnHooks {
    /// What helps with a request.
    pub context_sources: Vec<Arc<dyn ContextSource>>,
    /// What stands for the earlier part of a session.
    pub digest_source: Option<Arc<dyn DigestSource>>,
    /// What helped when a call failed.
    pub advisor: Option<Arc<dyn Advisor>>,
    pub after_turn: Vec<Arc<dyn AfterTurn>>,
}

impl Driver {
    pub(crate) async fn record_request(
        &self,
        seat: &ActiveAgent,
        request: NewRequest,
    ) -> Result<(), TurnError> {
        let (text, is_too_long) = truncate_request(&request.text);
        let asked = LogEntry {
            label: request.label,
            ..LogEntry::plain(Author::User, seat.branch.clone(), EventBody::User { text })
        };
        self.log.append(vec![asked]).await?;
        if is_too_long {
            return Err(ModelError::TooLong.into());
        }
        let (digest, context) = self
            .wait(async { join!(self.digest(), self.gather()) })
            .await?;
        let attached = request.attachments.into_iter().map(|(source, attached)| {
            (
                EventBody::Context {
                    source,
                    text: truncate_attachment(attached.text.trim()),
                },
                attached.label,
            )
        });
        let told = attached.chain(context).chain(digest);
        let author = Author::Agent(seat.agent.clone());
        let entry = |(body, label)| LogEntry {
            author: author.clone(),
            branch: seat.branch.clone(),
            label,
            body,
        };
        self.log.append(told.map(entry).collect()).await
    }

    /// What every source has to say about the request, within its cap; one that fails or is slow is left out.
    async fn gather(&self) -> Vec<(EventBody, Label)> {
        let ask = |source: &Arc<dyn ContextSource>| {
            let source = Arc::clone(source);
            let (session, principal) = (self.log.session.clone(), self.log.principal.clone());
            let asked = source.gather(ContextRequest {
                session,
                principal,
                text: self.request.clone(),
            });
            async move {
                let found = with_timeout(source.name(), asked).await;
                let LabeledText { text, label } = found?;
                let text = token_estimate::truncate(text.trim(), source.max_tokens()).to_owned();
                (!text.is_empty()).then(|| {
                    (
                        EventBody::Context {
                            source: source.name().to_owned(),
                            text,
                        },
                        label,
                    )
                })
            }
        };
        join_all(self.hooks.context_sources.iter().map(ask))
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    /// The digest of the session, where it is another one than the log has.
    async fn digest(&self) -> Option<(EventBody, Label)> {
        let digests = self.hooks.digest_source.as_ref()?;
        let (session, principal) = (self.log.session.clone(), self.log.principal.clone());
        let digest =
            with_timeout("digest", digests.digest(SessionKey { session, principal })).await?;
        let text = token_estimate::truncate(digest.text.trim(), MAX_DIGEST_TOKENS).to_owned();
        let is_known = self.log.read(|log| {
            let known = log.iter().rev().find_map(|event| match &event.body {
                EventBody::Digest { through, text } => Some((*through, text)),
                _ => None,
            });
            known == Some((digest.through, &text))
        });
        (!is_known).then_some((
            EventBody::Digest {
                through: digest.through,
                text,
            },
            digest.label,
        ))
    }

    /// A call that did not work is answered with what helped before, where something did.
    pub(crate) async fn with_advice(&self, call: &ToolCall, answer: ToolOutcome) -> ToolOutcome {
        let Some(advisor) = &self.hooks.advisor else {
            return answer;
        };
        let ToolOutcome::Failed {
            code: code @ (ToolCode::Failed | ToolCode::Timeout),
            reason: why,
            origin: words,
            ..
        } = answer
        else {
            return answer;
        };
        let about = FailedCall {
            session: self.log.session.clone(),
            principal: self.log.principal.clone(),
            tool: call.name.clone(),
            args: call.arguments.clone(),
            error: why.clone(),
        };
        let asked = AssertUnwindSafe(advisor.advice(about)).catch_unwind();
        let advice = tokio::time::timeout(ADVICE_TIMEOUT, asked).await;
        let advice = advice.ok().and_then(|advice| advice.unwrap_or_default());
        let Some(LabeledText { text, label }) = advice else {
            return ToolOutcome::Failed {
                code,
                reason: why,
                origin: words,
                advice: None,
            };
        };
        let advice = Some(token_estimate::truncate(text.trim(), MAX_ADVICE_TOKENS).to_owned())
            .filter(|advice| !advice.is_empty());
        let words = ContentOrigin {
            label: words.label.joined(&label),
            ..words
        };
        ToolOutcome::Failed {
            code,
            reason: why,
            origin: words,
            advice,
        }
    }
}

/// What a source has to say; one that fails, breaks or is slow says nothing.
async fn with_timeout<T>(
    name: &str,
    asked: BoxFuture<'static, Result<Option<T>, ContextError>>,
) -> Option<T> {
    match tokio::time::timeout(CONTEXT_TIMEOUT, AssertUnwindSafe(asked).catch_unwind()).await {
        Ok(Ok(Ok(found))) => found,
        Ok(Ok(Err(error))) => {
            tracing::warn!(source = name, %error, "no context from this source");
            None
        }
        Ok(Err(payload)) => {
            tracing::error!(
                source = name,
                detail = panic_message(&*payload),
                "a source of context broke"
            );
            None
        }
        Err(_) => {
            tracing::warn!(source = name, "this source of context took too long");
            None
        }
    }
}

/// As much of an attachment as a request holds, and how much is missing.
fn truncate_attachment(text: &str) -> String {
    let kept = token_estimate::truncate(text, MAX_ATTACHMENT_TOKENS);
    match text.len() - kept.len() {
        0 => text.to_owned(),
        missing => format!("{kept}\n[… {missing} bytes left out …]"),
    }
}

/// A request that no model can read is kept by its beginning.
fn truncate_request(request: &str) -> (String, bool) {
    let end = request.floor_char_boundary(MAX_REQUEST_BYTES.min(request.len()));
    (request[..end].to_owned(), end < request.len())
}
