//! Running one call of a tool: permission, time, panic, and the size of what comes back.

use std::time::Duration;

use lango_domain::event::{ApprovalState, Author, Body, ToolCode};
use lango_domain::model::Call;
use lango_domain::seams::{Decision, Question};
use lango_domain::{Safety, Tool, ToolContext};

use crate::driver::{Driver, Seat};
use crate::failure::Failure;

/// What a call gave, for the model to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolAnswer {
    Worked(String),
    Failed { code: ToolCode, why: String },
}

impl ToolAnswer {
    pub fn failed(code: ToolCode, why: impl Into<String>) -> Self {
        Self::Failed { code, why: why.into() }
    }

    pub fn into_body(self, call: &Call) -> Body {
        let id = call.id.clone();
        match self {
            Self::Worked(content) => Body::ToolResult { id, ok: true, content, error: None, code: None },
            Self::Failed { code, why } => {
                Body::ToolResult { id, ok: false, content: String::new(), error: Some(why), code: Some(code) }
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
            return Ok(refused);
        }
        // A result that is there is kept, even when the turn is stopped at that moment.
        Ok(tokio::select! {
            biased;
            answer = self.bounded(seat, tool, call) => answer,
            () = self.stop.token.cancelled() => self.interrupted(),
        })
    }

    fn interrupted(&self) -> ToolAnswer {
        ToolAnswer::failed(ToolCode::Interrupted, format!("interrupted: {}", self.stop.cause().message))
    }

    /// The call on a task of its own: a panic stays there, and giving up on it does not wait for it.
    async fn bounded(&self, seat: &Seat, tool: &Tool, call: &Call) -> ToolAnswer {
        let context = ToolContext {
            session: self.record.session.clone(),
            principal: self.record.principal.clone(),
            agent: seat.agent.clone(),
            call: call.id.clone(),
        };
        let (tool_name, time) = (&tool.name, self.limits.tool_time());
        let running = tool.call(context, call.arguments.clone());
        let task = AbortOnDrop(tokio::spawn(running));
        match tokio::time::timeout(time, task).await {
            Ok(Ok(Ok(output))) => ToolAnswer::Worked(output.text),
            Ok(Ok(Err(failure))) => ToolAnswer::failed(ToolCode::Failed, failure.0),
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

    /// Asks where the call can do harm. The same call is not asked about twice in a turn once it was refused.
    async fn permission(&self, seat: &Seat, tool: &Tool, call: &Call) -> Result<Option<ToolAnswer>, Failure> {
        if tool.safety != Safety::Dangerous {
            return Ok(None);
        }
        // One question at a time, so that a second call of the same kind knows the first answer.
        let _turn = self.approvals.lock().await;
        if self.was_denied(call) {
            return Ok(Some(ToolAnswer::failed(
                ToolCode::Denied,
                "denied before; it stays denied in this turn",
            )));
        }
        let approval = |state| Body::Approval {
            id: call.id.clone(),
            tool: tool.name.clone(),
            level: tool.safety,
            state,
        };
        let author = Author::Agent(seat.agent.clone());
        self.record.keep(&author, &seat.branch, vec![approval(ApprovalState::Asked)]).await?;
        let (state, why) = match self.decision(seat, tool, call).await {
            Some(Decision::Approved) => (ApprovalState::Approved, None),
            Some(Decision::Denied) => (ApprovalState::Denied, Some("the user denied this call")),
            Some(Decision::TimedOut) => {
                (ApprovalState::TimedOut, Some("the question about this call was not answered in time"))
            }
            Some(Decision::NobodyThere) => {
                (ApprovalState::NobodyThere, Some("nobody is there who could allow this call"))
            }
            None => (ApprovalState::Interrupted, None),
        };
        self.record.keep(&author, &seat.branch, vec![approval(state)]).await?;
        if state == ApprovalState::Interrupted {
            return Ok(Some(self.interrupted()));
        }
        Ok(why.map(|why| {
            self.remember_denied(call);
            ToolAnswer::failed(ToolCode::Denied, why)
        }))
    }

    /// Nothing when the turn ended meanwhile.
    async fn decision(&self, seat: &Seat, tool: &Tool, call: &Call) -> Option<Decision> {
        let Some(approver) = &self.approver else { return Some(Decision::NobodyThere) };
        let question = Question {
            call: call.id.clone(),
            principal: self.record.principal.clone(),
            session: self.record.session.clone(),
            agent: seat.agent.clone(),
            tool: tool.name.clone(),
            args: call.arguments.clone(),
            level: tool.safety,
        };
        self.wait(approver.ask(question)).await.ok()
    }

    /// A model reads at most so much of a result: its beginning and its end (B41).
    pub(crate) fn cap(&self, answer: ToolAnswer) -> ToolAnswer {
        let most = self.limits.tool_output_bytes.get();
        match answer {
            ToolAnswer::Worked(text) => ToolAnswer::Worked(without_middle(text, most)),
            ToolAnswer::Failed { code, why } => ToolAnswer::Failed { code, why: without_middle(why, most) },
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
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

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
