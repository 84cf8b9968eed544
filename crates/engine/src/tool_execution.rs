//! Executes one tool call, with a timeout, protection from panics and a cap for its output.

use std::time::Duration;

use lango_domain::content::MAX_ATTACHMENTS;
use lango_domain::event::{EventBody, Principal, ToolCode};
use lango_domain::markers::CALL_NOT_RUN;
use lango_domain::model::ToolCall;
use lango_domain::redaction::Redact;
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::{Content, Label, Tool, ToolContext, ToolOutput, ToolOutputSink, Trust};
use serde_json::Value;

use crate::approval::PendingCall;
use crate::driver::{ActiveAgent, Driver};
use crate::flow::{UserText, cite_call};
use crate::secrets::{LiveOutput, ReferencedSecret};
use crate::turn_error::TurnError;

/// The result of a tool call, as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolOutcome {
    Succeeded {
        content: Content,
        origin: ContentOrigin,
    },
    Failed {
        code: ToolCode,
        reason: String,
        origin: ContentOrigin,
        advice: Option<String>,
    },
}

/// The origin of the text in a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentOrigin {
    pub trust: Trust,
    pub label: Label,
}

impl ToolOutcome {
    pub fn failed(code: ToolCode, reason: impl Into<String>) -> Self {
        Self::Failed {
            code,
            reason: reason.into(),
            origin: ContentOrigin::default(),
            advice: None,
        }
    }

    pub fn into_body(self, call: &ToolCall) -> (EventBody, Label) {
        let id = call.id.clone();
        match self {
            Self::Succeeded { content, origin } => {
                let body = EventBody::ToolResult {
                    id,
                    ok: true,
                    content: content.text,
                    attachments: content.attachments,
                    error: None,
                    code: None,
                    untrusted: origin.trust == Trust::Untrusted,
                    advice: None,
                };
                (body, origin.label)
            }
            Self::Failed {
                code,
                reason,
                origin,
                advice,
            } => {
                let body = EventBody::ToolResult {
                    id,
                    ok: false,
                    content: String::new(),
                    attachments: Vec::new(),
                    error: Some(reason),
                    code: Some(code),
                    untrusted: origin.trust == Trust::Untrusted,
                    advice,
                };
                (body, origin.label)
            }
        }
    }
}

impl Redact for ToolOutcome {
    fn redact(&mut self, redactor: &SecretRedactor) {
        match self {
            Self::Succeeded { content, origin } => {
                content.redact(redactor);
                origin.label.redact(redactor);
            }
            Self::Failed {
                reason,
                origin,
                advice,
                ..
            } => {
                reason.redact(redactor);
                origin.label.redact(redactor);
                advice.redact(redactor);
            }
        }
    }
}

impl Driver {
    /// Runs the call. A failure of the call is an outcome; only a failure to append events is an error.
    pub(crate) async fn run_tool(
        &self,
        active: &ActiveAgent,
        call: &ToolCall,
        read_label: &Label,
    ) -> Result<ToolOutcome, TurnError> {
        let Some(tool) = self.team.tool(&active.agent, &call.name) else {
            return Ok(ToolOutcome::failed(
                ToolCode::Unknown,
                "there is no such tool",
            ));
        };
        if self.stop.token.is_cancelled() {
            return Ok(self.interrupted_outcome());
        }
        let user_text = self.log.read(UserText::from_log);
        // Arguments that the user typed are trusted, whatever the agent has read.
        let label = if user_text.contains_args(&call.arguments) {
            Label::default()
        } else {
            read_label.clone()
        };
        let typed_addresses = match self.log.principal == Principal::local() {
            true => user_text.addresses(),
            false => Vec::new(),
        };
        let context = ToolContext {
            typed_addresses,
            ..self.tool_context(active, call, label)
        };
        let secrets = match self.log.secrets.referenced(tool, call, &context).await {
            Ok(secrets) => secrets,
            Err(refused) => return Ok(refused),
        };
        let pending = PendingCall {
            tool,
            call,
            context: &context,
            user_text: &user_text,
            read_label,
            secrets: &secrets,
        };
        if let Some(mut denied) = self.check_approval(active, pending).await? {
            self.release(pending, &denied).await;
            self.log.secrets.redact(&mut denied);
            return Ok(self.with_advice(call, denied).await);
        }
        if !self.may_start(tool, call).await {
            return Ok(ToolOutcome::failed(ToolCode::Interrupted, CALL_NOT_RUN));
        }
        // A result that is ready counts, even if the turn is stopped at the same time.
        let outcome = tokio::select! {
            biased;
            outcome = self.run_with_secrets(tool, call, context, &secrets) => outcome,
            () = self.stop.token.cancelled() => self.interrupted_outcome(),
        };
        Ok(self.with_advice(call, outcome).await)
    }

    /// Lets a tool give up what the question about a call has reserved, if the call was refused. A suspended
    /// turn asks again, so it keeps that.
    async fn release(&self, pending: PendingCall<'_>, outcome: &ToolOutcome) {
        let is_refused = matches!(
            outcome,
            ToolOutcome::Failed {
                code: ToolCode::Denied | ToolCode::Interrupted,
                ..
            }
        );
        if !is_refused || self.suspend.is_cancelled() {
            return;
        }
        let PendingCall { tool, call, .. } = pending;
        let release = tool.release(pending.context.clone(), call.arguments.clone());
        let released = tokio::time::timeout(self.limits.tool_timeout(), release).await;
        if released.is_err() {
            tracing::warn!(
                tool = tool.name,
                "the refused call still holds what it reserved"
            );
        }
    }

    /// Asks the guard of the turn about a call with an effect. If it forbids the call, the turn is suspended.
    async fn may_start(&self, tool: &Tool, call: &ToolCall) -> bool {
        let Some(guard) = self
            .guard
            .as_ref()
            .filter(|_| !tool.is_read_only(&call.arguments))
        else {
            return true;
        };
        let may_start = guard.may_start().await;
        if !may_start {
            self.suspend.cancel();
            self.stop.token.cancel();
        }
        may_start
    }

    pub(crate) fn interrupted_outcome(&self) -> ToolOutcome {
        ToolOutcome::failed(
            ToolCode::Interrupted,
            format!("interrupted: {}", self.stop.cause().message),
        )
    }

    /// Runs the call with the values of the secrets that it refers to, and redacts them in its outcome.
    async fn run_with_secrets(
        &self,
        tool: &Tool,
        call: &ToolCall,
        mut context: ToolContext,
        referenced: &[ReferencedSecret],
    ) -> ToolOutcome {
        let secrets = &self.log.secrets;
        let arguments = match secrets.resolve(tool, call, &context, referenced).await {
            Ok(arguments) => arguments,
            Err(refused) => return refused,
        };
        context.redactor = secrets.redactor();
        let live_output = LiveOutput::new(context.output_sink, &context.redactor);
        context.output_sink = live_output.sink();
        let mut outcome = self.run_with_timeout(tool, call, context, arguments).await;
        live_output.finish();
        if !tool.is_read_only(&call.arguments) {
            self.log.learn_secrets().await;
        }
        secrets.redact(&mut outcome);
        outcome
    }

    /// Runs the call on its own task, so that a panic stays there and a timeout does not wait for it.
    async fn run_with_timeout(
        &self,
        tool: &Tool,
        call: &ToolCall,
        context: ToolContext,
        arguments: Value,
    ) -> ToolOutcome {
        let (tool_name, timeout) = (&tool.name, self.limits.tool_timeout());
        let running = tool.call(context, arguments);
        let task = AbortOnDrop(tokio::spawn(running));
        match tokio::time::timeout(timeout, task).await {
            Ok(Ok(Ok(ToolOutput { content, label }))) => ToolOutcome::Succeeded {
                content,
                origin: output_origin(tool, call, label),
            },
            Ok(Ok(Err(error))) => ToolOutcome::Failed {
                code: ToolCode::Failed,
                reason: error.0,
                origin: failure_origin(tool, call),
                advice: None,
            },
            Ok(Err(_panic)) => ToolOutcome::failed(
                ToolCode::Panicked,
                format!("{tool_name} panicked; this is a bug in the tool"),
            ),
            Err(_) => ToolOutcome::failed(
                ToolCode::Timeout,
                format!(
                    "{tool_name} did not finish within {}",
                    format_seconds(timeout)
                ),
            ),
        }
    }

    /// Returns the caller of a call, and the sink for its output.
    fn tool_context(&self, active: &ActiveAgent, call: &ToolCall, label: Label) -> ToolContext {
        ToolContext {
            session: self.log.session.clone(),
            principal: self.log.principal.clone(),
            turn: self.log.turn.clone(),
            agent: active.agent.clone(),
            call: call.id.clone(),
            label,
            typed_addresses: Vec::new(),
            output_sink: if active.is_streamed {
                self.log.output_sink(&active.agent, &call.id)
            } else {
                ToolOutputSink::disconnected()
            },
            redactor: self.log.secrets.redactor(),
        }
    }

    /// Truncates a result to the bytes that a model may read, keeping its beginning and end (B41).
    pub(crate) fn truncate_output(&self, outcome: ToolOutcome) -> ToolOutcome {
        let max_bytes = self.limits.tool_output_bytes.get();
        match outcome {
            ToolOutcome::Succeeded {
                mut content,
                origin,
            } => {
                content.text = truncate_middle(content.text, max_bytes);
                content.attachments.truncate(MAX_ATTACHMENTS);
                ToolOutcome::Succeeded { content, origin }
            }
            ToolOutcome::Failed {
                code,
                reason,
                origin,
                advice,
            } => ToolOutcome::Failed {
                code,
                reason: truncate_middle(reason, max_bytes),
                origin,
                advice,
            },
        }
    }
}

/// Returns the origin of a tool's output: the label that the call returned, else the tool's own.
fn output_origin(tool: &Tool, call: &ToolCall, label: Option<Label>) -> ContentOrigin {
    let label = label.unwrap_or_else(|| tool.label(&cite_call(&tool.name, &call.arguments)));
    ContentOrigin {
        trust: tool.trust,
        label,
    }
}

/// Returns the origin of a tool's error text. An error may quote anything, such as file names.
pub(crate) fn failure_origin(tool: &Tool, call: &ToolCall) -> ContentOrigin {
    let source = cite_call(&tool.name, &call.arguments);
    match tool.trust {
        Trust::Untrusted => output_origin(tool, call, None),
        Trust::Own => {
            let label = Label::untrusted(&source).joined(&Label::private(&source));
            ContentOrigin {
                trust: Trust::Own,
                label,
            }
        }
    }
}

/// Truncates the middle of a text. Three quarters of the result are its beginning, one its end.
pub(crate) fn truncate_middle(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let head = text.floor_char_boundary(max_bytes / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - max_bytes / 4);
    format!(
        "{}\n[… {} bytes left out …]\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
}

fn format_seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

/// A task that is aborted when its handle is dropped.
pub(crate) struct AbortOnDrop<T>(pub tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B41
    #[test]
    fn truncation_keeps_the_beginning_and_the_end() {
        let text = format!("START{}ENDE", "é".repeat(1_000_000));
        let truncated = truncate_middle(text, 1_000);
        assert!(truncated.starts_with("STARTé") && truncated.ends_with("éENDE"));
        assert!(truncated.contains("bytes left out"));
        assert!(truncated.len() < 1_100);
        assert_eq!(truncate_middle("short".into(), 1_000), "short");
    }
}
