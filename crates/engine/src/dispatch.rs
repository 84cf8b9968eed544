//! Running one call of a tool: time, panic, and the size of what comes back.

use std::time::Duration;

use lango_domain::event::{Body, ToolCode};
use lango_domain::model::Call;
use lango_domain::{Live, Tool, ToolContext, Trust};

use crate::driver::{Driver, Seat};
use crate::failure::Failure;

/// What a call gave, for the model to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolAnswer {
    Worked { text: String, trust: Trust },
    Failed { code: ToolCode, why: String, trust: Trust, advice: Option<String> },
}

impl ToolAnswer {
    pub fn failed(code: ToolCode, why: impl Into<String>) -> Self {
        Self::Failed { code, why: why.into(), trust: Trust::Own, advice: None }
    }

    pub fn into_body(self, call: &Call) -> Body {
        let id = call.id.clone();
        match self {
            Self::Worked { text, trust } => {
                let untrusted = trust == Trust::Untrusted;
                let (error, code, advice) = (None, None, None);
                Body::ToolResult { id, ok: true, content: text, error, code, untrusted, advice }
            }
            Self::Failed { code, why, trust, advice } => {
                let (content, untrusted) = (String::new(), trust == Trust::Untrusted);
                let (error, code) = (Some(why), Some(code));
                Body::ToolResult { id, ok: false, content, error, code, untrusted, advice }
            }
        }
    }
}

impl Driver {
    /// Runs the call; whatever happens to it is an answer. Only a log that cannot be written is a failure.
    pub(crate) async fn run_tool(&self, seat: &Seat, call: &Call) -> Result<ToolAnswer, Failure> {
        let Some(tool) = self.crew.tool(&seat.agent, &call.name) else {
            return Ok(ToolAnswer::failed(ToolCode::Unknown, "there is no such tool"));
        };
        if self.stop.token.is_cancelled() {
            return Ok(self.interrupted());
        }
        if let Some(refused) = self.permission(seat, tool, call).await? {
            return Ok(self.advised(call, refused).await);
        }
        // A result that is there is kept, even when the turn is stopped at that moment.
        let answer = tokio::select! {
            biased;
            answer = self.bounded(seat, tool, call) => answer,
            () = self.stop.token.cancelled() => self.interrupted(),
        };
        Ok(self.advised(call, answer).await)
    }

    pub(crate) fn interrupted(&self) -> ToolAnswer {
        ToolAnswer::failed(ToolCode::Interrupted, format!("interrupted: {}", self.stop.cause().message))
    }

    /// The call on a task of its own: a panic stays there, and giving up on it does not wait for it.
    async fn bounded(&self, seat: &Seat, tool: &Tool, call: &Call) -> ToolAnswer {
        let context = self.context(seat, call);
        let (tool_name, time) = (&tool.name, self.limits.tool_time());
        let running = tool.call(context, call.arguments.clone());
        let task = AbortOnDrop(tokio::spawn(running));
        match tokio::time::timeout(time, task).await {
            Ok(Ok(Ok(output))) => ToolAnswer::Worked { text: output.text, trust: tool.trust },
            Ok(Ok(Err(failure))) => {
                ToolAnswer::Failed { code: ToolCode::Failed, why: failure.0, trust: tool.trust, advice: None }
            }
            Ok(Err(_panic)) => ToolAnswer::failed(
                ToolCode::Panicked,
                format!("{tool_name} broke; this is a mistake in the tool"),
            ),
            Err(_) => ToolAnswer::failed(
                ToolCode::Timeout,
                format!("{tool_name} did not finish within {}", seconds(time)),
            ),
        }
    }

    /// Who calls, and where what it prints is shown.
    pub(crate) fn context(&self, seat: &Seat, call: &Call) -> ToolContext {
        ToolContext {
            session: self.record.session.clone(),
            principal: self.record.principal.clone(),
            turn: self.record.turn.clone(),
            agent: seat.agent.clone(),
            call: call.id.clone(),
            live: if seat.is_shown { self.record.live(&seat.agent, &call.id) } else { Live::nobody() },
        }
    }

    /// A model reads at most so much of a result: its beginning and its end (B41).
    pub(crate) fn cap(&self, answer: ToolAnswer) -> ToolAnswer {
        let most = self.limits.tool_output_bytes.get();
        match answer {
            ToolAnswer::Worked { text, trust } => {
                ToolAnswer::Worked { text: without_middle(text, most), trust }
            }
            ToolAnswer::Failed { code, why, trust, advice } => {
                ToolAnswer::Failed { code, why: without_middle(why, most), trust, advice }
            }
        }
    }
}

/// Three quarters of what is kept are the beginning, the rest is the end.
pub(crate) fn without_middle(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let head = text.floor_char_boundary(most / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - most / 4);
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

fn seconds(time: Duration) -> String {
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
        let kept = without_middle(text, 1_000);
        assert!(kept.starts_with("STARTé") && kept.ends_with("éENDE") && kept.contains("bytes left out"));
        assert!(kept.len() < 1_100);
        assert_eq!(without_middle("short".into(), 1_000), "short");
    }
}
