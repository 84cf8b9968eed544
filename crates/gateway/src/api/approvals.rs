//! Questions about calls, and their answers.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lango_domain::Safety;
use lango_domain::event::CallId;
use lango_domain::seams::ApprovalScope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sessions::Items;
use crate::approvals::{NotAnswered, Waiting, decision};
use crate::gate::Caller;
use crate::gateway::Gateway;
use crate::reading::{Sent, SessionName, session_named, word};
use crate::refusal::Refusal;

/// A question that waits for an answer.
#[derive(Serialize, JsonSchema)]
pub(crate) struct QuestionItem {
    pub session: String,
    /// The call that it is about.
    pub call: String,
    pub agent: String,
    pub tool: String,
    pub args: Value,
    #[schemars(with = "String", extend("enum" = ["safe", "moderate", "dangerous"]))]
    pub level: Safety,
    /// What exactly will happen.
    pub shows: String,
    /// What a permission for `pattern` would cover.
    pub pattern: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub asked: String,
}

impl From<Waiting> for QuestionItem {
    fn from(Waiting { question, asked }: Waiting) -> Self {
        Self {
            session: question.session.to_string(),
            call: question.call.to_string(),
            agent: question.agent.to_string(),
            tool: question.tool,
            args: question.args,
            level: question.intent.level,
            shows: question.intent.shows,
            pattern: question.intent.pattern,
            asked: asked.to_string(),
        }
    }
}

pub(crate) async fn waiting(State(gateway): State<Gateway>, caller: Caller) -> Json<Items<QuestionItem>> {
    let waiting = gateway.lobby().waiting(caller.principal());
    Json(Items { items: waiting.into_iter().map(QuestionItem::from).collect() })
}

/// An answer to a question.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    #[schemars(with = "SessionName")]
    pub session: String,
    /// The call, as the question names it.
    pub call: String,
    #[serde(deserialize_with = "word")]
    pub decision: Choice,
    /// How far a permission reaches; `pattern` only where the question offers one.
    #[serde(default, deserialize_with = "word")]
    pub reach: Reach,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Choice {
    Approve,
    Deny,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reach {
    /// This call.
    #[default]
    Once,
    /// The very same call, for the rest of the session.
    SameCall,
    /// Calls that the question's pattern fits, for the rest of the session.
    Pattern,
}

pub(crate) async fn answer(
    State(gateway): State<Gateway>,
    caller: Caller,
    Sent(body): Sent<AnswerBody>,
) -> Result<StatusCode, Refusal> {
    let session = session_named(&body.session)?;
    let scope = match body.reach {
        Reach::Once => ApprovalScope::Once,
        Reach::SameCall => ApprovalScope::SameCall,
        Reach::Pattern => ApprovalScope::Pattern,
    };
    let decision = decision(body.decision == Choice::Approve, scope);
    let answered = gateway.lobby().answer(caller.principal(), &session, &CallId::new(body.call), decision);
    match answered {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(NotAnswered::NoPattern) => {
            Err(Refusal::bad_request("this question offers no pattern", "answer with `once` or `same_call`"))
        }
        Err(NotAnswered::NotWaiting) => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "no such question waits for an answer",
            "GET /api/approvals lists those that do",
        )),
    }
}
