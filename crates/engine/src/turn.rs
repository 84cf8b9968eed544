//! A whole turn, from its request to its last event.

use std::sync::Arc;

use lango_domain::StoreError;
use lango_domain::event::{Author, Branch, EventBody, Update};
use lango_domain::failure::{FailureCode, FailureFamily, NotDoneReason};
use tokio::sync::mpsc::UnboundedSender;

use crate::agent_loop::AgentOutcome;
use crate::driver::{ActiveAgent, Driver, STOP_GRACE_PERIOD};
use crate::not_done::ended_denied;
use crate::progress_summary::progress_summary;
use crate::request::NewRequest;
use crate::tool_execution::AbortOnDrop;
use crate::turn_error::TurnError;
use crate::turn_log::LogEntry;

/// The way a turn starts.
pub(crate) enum StartMode {
    /// With a new request.
    New(NewRequest),
    /// At the point where an unfinished turn stopped.
    Resume,
}

pub(crate) fn store_timeout() -> StoreError {
    StoreError::Other("the store does not respond".to_owned())
}

impl Driver {
    /// Runs the whole turn. It always ends with an answer or with a failure that has a code (B59),
    /// and it ends when it is stopped, whatever it is waiting for (B104).
    pub(crate) async fn run(self: Arc<Self>, start: StartMode, updates: &UnboundedSender<Update>) {
        let root = self.team.root().clone();
        let active = Arc::new(ActiveAgent {
            branch: Branch::root(&root),
            agent: root,
            is_streamed: true,
        });
        let work = {
            let (driver, active) = (Arc::clone(&self), Arc::clone(&active));
            AbortOnDrop(tokio::spawn(async move {
                driver.answer_request(&active, start).await
            }))
        };
        let clock = async {
            self.clock.wait_until(self.limits.turn_timeout()).await;
            self.stop
                .stop_with(TurnError::limit(FailureCode::LimitTime));
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            biased;
            result = work => result.unwrap_or_else(|error| Err(TurnError::from_join_error(error))),
            () = clock => Ok(None),
            () = self.stop.wait_until_overdue() => Err(self.stop.cause()),
        };
        if let Err(error) = self.close(&active, result).await {
            let _ = updates.send(Update::StoreFailed(error));
        }
    }

    /// Appends the last events of the turn. A store that does not respond cannot keep the turn from
    /// ending.
    async fn close(
        &self,
        active: &ActiveAgent,
        result: Result<Option<NotDoneReason>, TurnError>,
    ) -> Result<(), StoreError> {
        let last = match result {
            Ok(not_done) => Some(EventBody::TurnDone {
                reason: not_done.or_else(|| self.log.read(|log| ended_denied(log, &self.log.turn))),
            }),
            Err(failure)
                if failure.code == FailureCode::Cancelled && self.suspend.is_cancelled() =>
            {
                None
            }
            Err(failure) => Some(self.failure_body(failure)),
        };
        let entries = match last {
            None => Vec::new(),
            Some(body) => {
                // Work that had to be aborted has left calls without results.
                let unfinished = self.log.read(|log| self.team.find_unfinished_turn(log));
                let mut entries = unfinished.map_or_else(Vec::new, |turn| turn.closing_entries);
                let author = Author::Agent(active.agent.clone());
                entries.push(LogEntry::plain(author, active.branch.clone(), body));
                entries
            }
        };
        let closed = tokio::time::timeout(STOP_GRACE_PERIOD, self.log.close(entries)).await;
        closed.unwrap_or_else(|_| Err(store_timeout()))
    }

    async fn answer_request(
        self: &Arc<Self>,
        active: &Arc<ActiveAgent>,
        start: StartMode,
    ) -> Result<Option<NotDoneReason>, TurnError> {
        if let StartMode::New(request) = start {
            self.record_request(active, request).await?;
        }
        match self.run_agent(active).await? {
            AgentOutcome::Answered {
                author,
                content,
                label,
                not_done,
            } if author == active.agent => {
                let answer = vec![EventBody::Answer(content)];
                self.append(active, &label, answer).await.map(|()| not_done)
            }
            // The specialist's answer is already in its own branch.
            AgentOutcome::Answered { not_done, .. } => Ok(not_done),
            AgentOutcome::Rejected { reason, .. } => Err(TurnError::internal(&reason)),
            AgentOutcome::Failed(failure) => Err(failure),
        }
    }

    fn failure_body(&self, failure: TurnError) -> EventBody {
        tracing::warn!(code = %failure.code, detail = failure.detail, "the turn failed");
        let summary = self.log.read(|log| progress_summary(log, &self.log.turn));
        let message = match failure.code.family() {
            FailureFamily::Limit => format!("{} {summary}", failure.message),
            _ => failure.message,
        };
        let hint = if self.budget.has_set(failure.code, &self.limits) {
            "The budget of this turn sets the limit.".to_owned()
        } else {
            failure.hint
        };
        EventBody::TurnFailed {
            code: failure.code,
            message,
            hint,
        }
    }
}
