//! Approval questions that wait for an answer over HTTP, and the link between turns and their
//! HTTP clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use lango_domain::Clock;
use lango_domain::Stores;
use lango_domain::access_tokens::TokenScope;
use lango_domain::approval::{ApprovalDecision, ApprovalQuestion, ApprovalScope, Approver};
use lango_domain::event::{CallId, Decider, Principal, SessionId};
use lango_domain::hooks::ContextSource;
use tokio::sync::{Notify, oneshot};

use crate::client_context::ClientContext;

/// Connects turns to the HTTP clients that started them: approvals and client context. Cheap to
/// clone.
#[derive(Clone)]
pub struct ClientBridge {
    queue: Arc<ApprovalQueue>,
    client_context: ClientContext,
}

struct ApprovalQueue {
    stores: Stores,
    now: Clock,
    open: Mutex<HashMap<ApprovalKey, OpenApproval>>,
    /// Notified when a question is opened.
    question_opened: Notify,
}

/// Identifies a question. Call ids are unique within a session.
type ApprovalKey = (Principal, SessionId, CallId);

struct OpenApproval {
    question: ApprovalQuestion,
    asked_at: Timestamp,
    responder: oneshot::Sender<ApprovalDecision>,
}

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingApproval {
    pub question: ApprovalQuestion,
    pub asked_at: Timestamp,
}

/// The reason why an answer was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// No such question is pending for this principal.
    NotPending,
    /// The question offers no pattern to approve.
    NoPattern,
}

impl ClientBridge {
    pub fn new(stores: Stores, now: Clock) -> Self {
        Self {
            queue: Arc::new(ApprovalQueue {
                stores,
                now,
                open: Mutex::default(),
                question_opened: Notify::new(),
            }),
            client_context: ClientContext::default(),
        }
    }

    /// Returns the approver for the runtime.
    pub fn approver(&self) -> Arc<dyn Approver> {
        Arc::new(self.clone())
    }

    /// Returns the context source for the runner.
    pub fn context_source(&self) -> Arc<dyn ContextSource> {
        Arc::new(self.client_context.clone())
    }

    pub fn client_context(&self) -> &ClientContext {
        &self.client_context
    }

    /// Returns the principal's pending questions, oldest first.
    pub fn pending(&self, principal: &Principal) -> Vec<PendingApproval> {
        let open = self.queue.open_approvals();
        let own = open
            .values()
            .filter(|open| open.question.principal == *principal);
        let mut own: Vec<PendingApproval> = own
            .map(|open| PendingApproval {
                question: open.question.clone(),
                asked_at: open.asked_at,
            })
            .collect();
        own.sort_by(|a, b| (a.asked_at, &a.question.call).cmp(&(b.asked_at, &b.question.call)));
        own
    }

    /// Returns once a question about this call is pending.
    pub async fn wait_until_open(&self, principal: &Principal, session: &SessionId, call: &CallId) {
        let key = (principal.clone(), session.clone(), call.clone());
        loop {
            let opened = self.queue.question_opened.notified();
            if self.queue.open_approvals().contains_key(&key) {
                return;
            }
            opened.await;
        }
    }

    pub fn pending_count(&self) -> usize {
        self.queue.open_approvals().len()
    }

    /// Answers a pending question of the principal.
    pub fn answer(
        &self,
        principal: &Principal,
        session: &SessionId,
        call: &CallId,
        decision: ApprovalDecision,
    ) -> Result<(), AnswerError> {
        let key = (principal.clone(), session.clone(), call.clone());
        let mut open = self.queue.open_approvals();
        let approval = open.get(&key).ok_or(AnswerError::NotPending)?;
        let wants_pattern = matches!(
            decision,
            ApprovalDecision::Approved {
                scope: ApprovalScope::Pattern,
                ..
            }
        );
        if wants_pattern && approval.question.intent.pattern.is_none() {
            return Err(AnswerError::NoPattern);
        }
        let approval = open.remove(&key).ok_or(AnswerError::NotPending)?;
        approval
            .responder
            .send(decision)
            .map_err(|_| AnswerError::NotPending)
    }
}

/// Returns the decision of a user: approval with a scope, or denial.
pub fn decision(is_approved: bool, scope: ApprovalScope) -> ApprovalDecision {
    if is_approved {
        ApprovalDecision::Approved {
            scope,
            by: Decider::User,
        }
    } else {
        ApprovalDecision::Denied
    }
}

impl Approver for ClientBridge {
    /// Waits until the engine gives up. If no token of the principal can approve, returns
    /// [`ApprovalDecision::NobodyThere`] immediately.
    fn ask(&self, question: ApprovalQuestion) -> BoxFuture<'static, ApprovalDecision> {
        let queue = Arc::clone(&self.queue);
        async move {
            if !queue.has_approver(&question.principal).await {
                return ApprovalDecision::NobodyThere;
            }
            let (responder, response) = oneshot::channel();
            let asked_at = (queue.now)();
            let key = (
                question.principal.clone(),
                question.session.clone(),
                question.call.clone(),
            );
            queue.open_approvals().insert(
                key.clone(),
                OpenApproval {
                    question,
                    asked_at,
                    responder,
                },
            );
            queue.question_opened.notify_waiters();
            let _guard = OpenApprovalGuard {
                queue: Arc::clone(&queue),
                key,
            };
            response.await.unwrap_or(ApprovalDecision::NobodyThere)
        }
        .boxed()
    }
}

impl ApprovalQueue {
    fn open_approvals(&self) -> std::sync::MutexGuard<'_, HashMap<ApprovalKey, OpenApproval>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn has_approver(&self, principal: &Principal) -> bool {
        let now = (self.now)();
        let tokens = self.stores.access_tokens.tokens().await.unwrap_or_default();
        tokens.iter().any(|token| {
            token.principal == *principal
                && token.allows(TokenScope::Approve)
                && !token.is_expired(now)
        })
    }
}

/// Removes a question when the turn stops waiting for it.
struct OpenApprovalGuard {
    queue: Arc<ApprovalQueue>,
    key: ApprovalKey,
}

impl Drop for OpenApprovalGuard {
    fn drop(&mut self) {
        self.queue.open_approvals().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_domain::access_tokens::{AccessToken, token_value};
    use lango_domain::{AgentName, Intent, Safety};
    use lango_store::{SqliteStore, StoreLocation};
    use serde_json::json;

    #[tokio::test]
    async fn rejects_pattern_approval_without_pattern() {
        let stores = SqliteStore::open(StoreLocation::Memory).unwrap().stores();
        let ann = Principal::new("ann");
        let token = AccessToken {
            name: "ann".into(),
            principal: ann.clone(),
            scopes: [TokenScope::Admin].into(),
            created: Timestamp::UNIX_EPOCH,
            expires: None,
            used: None,
        };
        stores
            .access_tokens
            .add_token(token, &token_value(&[7; 32]))
            .await
            .unwrap();
        let bridge = ClientBridge::new(stores, Arc::new(|| Timestamp::UNIX_EPOCH));
        let intent = Intent {
            level: Safety::Dangerous,
            shows: "rm".into(),
            subject: "rm".into(),
            pattern: None,
        };
        let (session, call) = (SessionId::new("s"), CallId::new("c"));
        let asking = tokio::spawn(bridge.ask(ApprovalQuestion {
            call: call.clone(),
            session: session.clone(),
            principal: ann.clone(),
            agent: AgentName::new("operator").unwrap(),
            tool: "exec_shell".into(),
            args: json!({}),
            intent,
        }));
        while bridge.pending_count() == 0 {
            tokio::task::yield_now().await;
        }
        let answer = |scope| bridge.answer(&ann, &session, &call, decision(true, scope));
        assert_eq!(answer(ApprovalScope::Pattern), Err(AnswerError::NoPattern));
        assert_eq!(answer(ApprovalScope::SameCall), Ok(()));
        assert_eq!(
            answer(ApprovalScope::SameCall),
            Err(AnswerError::NotPending)
        );
        let approved = ApprovalDecision::Approved {
            scope: ApprovalScope::SameCall,
            by: Decider::User,
        };
        assert_eq!(asking.await.unwrap(), approved);
    }
}
