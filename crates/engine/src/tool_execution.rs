//! Running one call of a tool: time, panic, and the size of what comes back.

use std::time::Duration;

use lango_domain::event::{EventBody, ToolCode};
use lango_domain::model::ToolCall;
use lango_domain::{Label, Tool, ToolContext, ToolOutput, ToolOutputSink, Trust};

use crate::approval::PendingCall;
use crate::driver::{ActiveAgent, Driver};
use crate::flow::{UserText, cite_call};
use crate::turn_error::TurnError;

/// What a call gave, for the model to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolOutcome {
    Succeeded {
        text: String,
        origin: ContentOrigin,
    },
    Failed {
        code: ToolCode,
        reason: String,
        origin: ContentOrigin,
        advice: Option<String>,
    },
}

/// Whose words an answer holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentOrigin {
    pub trust: Trust,
    pub label: Label,
}

impl ToolOutcome {
    pub fn failed(code: ToolCode, why: impl Into<String>) -> Self {
        Self::Failed {
            code,
            reason: why.into(),
            origin: ContentOrigin::default(),
            advice: None,
        }
    }

    pub fn into_body(self, call: &ToolCall) -> (EventBody, Label) {
        let id = call.id.clone();
        match self {
            Self::Succeeded {
                text,
                origin: words,
            } => {
                let untrusted = words.trust == Trust::Untrusted;
                let (error, code, advice) = (None, None, None);
                let body = EventBody::ToolResult {
                    id,
                    ok: true,
                    content: text,
                    error,
                    code,
                    untrusted,
                    advice,
                };
                (body, words.label)
            }
            Self::Failed {
                code,
                reason: why,
                origin: words,
                advice,
            } => {
                let (content, untrusted) = (String::new(), words.trust == Trust::Untrusted);
                let (error, code) = (Some(why), Some(code));
                (
                    EventBody::ToolResult {
                        id,
                        ok: false,
                        content,
                        error,
                        code,
                        untrusted,
                        advice,
                    },
                    words.label,
                )
            }
        }
    }
}

impl Driver {
    /// Runs the call; whatever happens to it is an answer. Only a log that cannot be written is a failure.
    pub(crate) async fn run_tool(
        &self,
        seat: &ActiveAgent,
        call: &ToolCall,
        read: &Label,
    ) -> Result<ToolOutcome, TurnError> {
        let Some(tool) = self.team.tool(&seat.agent, &call.name) else {
            return Ok(ToolOutcome::failed(
                ToolCode::Unknown,
                "there is no such tool",
            ));
        };
        if self.stop.token.is_cancelled() {
            return Ok(self.interrupted_outcome());
        }
        let words = self.log.read(UserText::from_log);
        // What the user asked for in these very words is the user's, whatever the agent has read.
        let label = if words.contains_args(&call.arguments) {
            Label::default()
        } else {
            read.clone()
        };
        let context = self.tool_context(seat, call, label);
        let asked = PendingCall {
            tool,
            call,
            context: &context,
            user_text: &words,
            read_label: read,
        };
        if let Some(refused) = self.check_approval(seat, asked).await? {
            return Ok(self.with_advice(call, refused).await);
        }
        // A result that is there is kept, even when the turn is stopped at that moment.
        let answer = tokio::select! {
            biased;
            answer = self.run_with_timeout(tool, call, context) => answer,
            () = self.stop.token.cancelled() => self.interrupted_outcome(),
        };
        Ok(self.with_advice(call, answer).await)
    }

    pub(crate) fn interrupted_outcome(&self) -> ToolOutcome {
        ToolOutcome::failed(
            ToolCode::Interrupted,
            format!("interrupted: {}", self.stop.cause().message),
        )
    }

    /// The call on a task of its own: a panic stays there, and giving up on it does not wait for it.
    async fn run_with_timeout(
        &self,
        tool: &Tool,
        call: &ToolCall,
        context: ToolContext,
    ) -> ToolOutcome {
        let (tool_name, time) = (&tool.name, self.limits.tool_timeout());
        let running = tool.call(context, call.arguments.clone());
        let task = AbortOnDrop(tokio::spawn(running));
        match tokio::time::timeout(time, task).await {
            Ok(Ok(Ok(ToolOutput { text, label }))) => ToolOutcome::Succeeded {
                text,
                origin: output_origin(tool, call, label),
            },
            Ok(Ok(Err(failure))) => {
                let words = failure_origin(tool, call);
                ToolOutcome::Failed {
                    code: ToolCode::Failed,
                    reason: failure.0,
                    origin: words,
                    advice: None,
                }
            }
            Ok(Err(_panic)) => ToolOutcome::failed(
                ToolCode::Panicked,
                format!("{tool_name} broke; this is a mistake in the tool"),
            ),
            Err(_) => ToolOutcome::failed(
                ToolCode::Timeout,
                format!("{tool_name} did not finish within {}", format_seconds(time)),
            ),
        }
    }

    /// Who calls, and where what it prints is shown.
    fn tool_context(&self, seat: &ActiveAgent, call: &ToolCall, label: Label) -> ToolContext {
        ToolContext {
            session: self.log.session.clone(),
            principal: self.log.principal.clone(),
            turn: self.log.turn.clone(),
            agent: seat.agent.clone(),
            call: call.id.clone(),
            label,
            output_sink: if seat.is_streamed {
                self.log.output_sink(&seat.agent, &call.id)
            } else {
                ToolOutputSink::disconnected()
            },
        }
    }

    /// A model reads at most so much of a result: its beginning and its end (B41).
    pub(crate) fn truncate_output(&self, answer: ToolOutcome) -> ToolOutcome {
        let most = self.limits.tool_output_bytes.get();
        match answer {
            ToolOutcome::Succeeded {
                text,
                origin: words,
            } => ToolOutcome::Succeeded {
                text: truncate_middle(text, most),
                origin: words,
            },
            ToolOutcome::Failed {
                code,
                reason: why,
                origin: words,
                advice,
            } => ToolOutcome::Failed {
                code,
                reason: truncate_middle(why, most),
                origin: words,
                advice,
            },
        }
    }
}

/// What a tool gives back is labelled by itself where it knows better, else by its declaration.
fn output_origin(tool: &Tool, call: &ToolCall, label: Option<Label>) -> ContentOrigin {
    let label = label.unwrap_or_else(|| tool.label(&cite_call(&tool.name, &call.arguments)));
    ContentOrigin {
        trust: tool.trust,
        label,
    }
}

/// A failure may quote anything: names of files, what is known instead.
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

/// Three quarters of what is kept are the beginning, the rest is the end.
pub(crate) fn truncate_middle(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let head = text.floor_char_boundary(most / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - most / 4);
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

/// A task that ends when nobody waits for it any more.
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
    fn a_long_result_keeps_its_beginning_and_its_end() {
        let text = format!("START{}ENDE", "é".repeat(1_000_000));
        let kept = truncate_middle(text, 1_000);
        assert!(
            kept.starts_with("STARTé")
                && kept.ends_with("éENDE")
                && kept.contains("bytes left out")
        );
        assert!(kept.len() < 1_100);
        assert_eq!(truncate_middle("short".into(), 1_000), "short");
    }
}
