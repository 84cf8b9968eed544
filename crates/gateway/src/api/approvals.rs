//! Approval questions and their answers.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lango_domain::Safety;
use lango_domain::approval::ApprovalScope;
use lango_domain::event::CallId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sessions::Items;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{JsonBody, SessionName, parse_session_id, string_enum};
use crate::gateway::Gateway;
use lango_runtime::approvals::{AnswerError, PendingApproval, decision};

/// A pending approval question.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ApprovalItem {
    pub session: String,
    /// The id of the tool call.
    pub call: String,
    pub agent: String,
    pub tool: String,
    pub args: Value,
    #[schemars(with = "String", extend("enum" = ["safe", "moderate", "dangerous"]))]
    pub level: Safety,
    /// Description of the effect of the call.
    pub shows: String,
    /// The calls that an approval with reach `pattern` would cover; null if the question offers no
    /// pattern.
    pub pattern: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub asked: String,
}

impl From<PendingApproval> for ApprovalItem {
    fn from(PendingApproval { question, asked_at }: PendingApproval) -> Self {
        Self {
            session: question.session.to_string(),
            call: question.call.to_string(),
            agent: question.agent.to_string(),
            tool: question.tool,
            args: question.args,
            level: question.intent.level,
            shows: question.intent.shows,
            pattern: question.intent.pattern,
            asked: asked_at.to_string(),
        }
    }
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
) -> Json<Items<ApprovalItem>> {
    let pending = gateway.client_bridge().pending(caller.principal());
    Json(Items {
        items: pending.into_iter().map(ApprovalItem::from).collect(),
    })
}

/// The answer to an approval question.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalAnswerBody {
    #[schemars(with = "SessionName")]
    pub session: String,
    /// The id of the tool call, as listed in the question.
    pub call: String,
    #[serde(deserialize_with = "string_enum")]
    pub decision: ApprovalChoice,
    /// The calls that an approval covers. `pattern` is valid only if the question offers one.
    #[serde(default, deserialize_with = "string_enum")]
    pub reach: ApprovalReach,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalChoice {
    Approve,
    Deny,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalReach {
    /// This call only.
    #[default]
    Once,
    /// Identical calls for the rest of the session.
    SameCall,
    /// Calls that match the pattern of the question for the rest of the session.
    Pattern,
}

pub(crate) async fn answer(
    State(gateway): State<Gateway>,
    caller: Caller,
    JsonBody(body): JsonBody<ApprovalAnswerBody>,
) -> Result<StatusCode, ApiError> {
    let session = parse_session_id(&body.session)?;
    let scope = match body.reach {
        ApprovalReach::Once => ApprovalScope::Once,
        ApprovalReach::SameCall => ApprovalScope::SameCall,
        ApprovalReach::Pattern => ApprovalScope::Pattern,
    };
    let decision = decision(body.decision == ApprovalChoice::Approve, scope);
    let result = gateway.client_bridge().answer(
        caller.principal(),
        &session,
        &CallId::new(body.call),
        decision,
    );
    match result {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(AnswerError::NoPattern) => Err(ApiError::bad_request(
            "this question offers no pattern to approve",
            "answer with `once` or `same_call`",
        )),
        Err(AnswerError::NotPending) => Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "no such question is pending",
            "GET /api/approvals lists the pending questions",
        )),
    }
}
