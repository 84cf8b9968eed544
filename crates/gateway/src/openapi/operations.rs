//! The operations of the API.

use lango_domain::access_tokens::TokenScope::{self, Admin, Approve, Chat, Read};
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};

use super::schemas::{
    ChatFrame, HealthStatus, OpenApiDocument, ReadyStatus, TurnFrame, UsageReportSchema,
};
use super::{Operation, RequestInput, ResponseOutput, subschema_for};
use crate::api::{approvals, sessions, team, turns, usage_audit};
use crate::openai::{self, chat, completion};

pub(super) fn operations() -> Vec<Operation> {
    let mut all = turn_operations();
    all.extend(session_operations());
    all.extend(approval_operations());
    all.extend(read_operations());
    all.extend(openai_operations());
    all.extend(meta_operations());
    all
}

fn turn_operations() -> Vec<Operation> {
    vec![
        OperationStart(
            "post",
            "/api/turns",
            "Starts a turn and streams its events.",
        )
        .with(
            &[Chat],
            RequestInput::Body(subschema_for::<turns::TurnBody>),
            ResponseOutput::Events(subschema_for::<TurnFrame>),
        )
        .with_failures(&[404, 409, 503]),
    ]
}

fn session_operations() -> Vec<Operation> {
    vec![
        OperationStart(
            "get",
            "/api/sessions",
            "Lists your sessions, most recently used first.",
        )
        .with(
            &[Read],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<sessions::Items<sessions::SessionItem>>),
        ),
        OperationStart(
            "get",
            "/api/sessions/{session}",
            "Returns a session and its events.",
        )
        .with(
            &[Read],
            RequestInput::Query(inline_schema::<sessions::EventRange>),
            ResponseOutput::Json(subschema_for::<sessions::SessionBody>),
        )
        .with_failures(&[404]),
        OperationStart(
            "delete",
            "/api/sessions/{session}",
            "Deletes a session permanently.",
        )
        .with(&[Admin], RequestInput::Nothing, ResponseOutput::Nothing)
        .with_failures(&[404, 409]),
        OperationStart(
            "get",
            "/api/sessions/{session}/events",
            "Follows a session: streams the stored events after `Last-Event-ID`, then new ones.",
        )
        .with(
            &[Chat, Read, Approve],
            RequestInput::Query(inline_schema::<turns::FollowQuery>),
            ResponseOutput::Events(subschema_for::<TurnFrame>),
        )
        .with_header(
            "Last-Event-ID",
            "The sequence number of the last event received. Values that are not numbers are ignored.",
        )
        .with_failures(&[404]),
        OperationStart(
            "post",
            "/api/sessions/{session}/cancel",
            "Cancels the running turn of a session.",
        )
        .with(
            &[Chat],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<turns::CancelResponse>),
        )
        .with_failures(&[404]),
    ]
}

fn approval_operations() -> Vec<Operation> {
    vec![
        OperationStart(
            "get",
            "/api/approvals",
            "Lists the pending approval questions.",
        )
        .with(
            &[Approve],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<sessions::Items<approvals::ApprovalItem>>),
        ),
        OperationStart("post", "/api/approvals", "Answers an approval question.")
            .with(
                &[Approve],
                RequestInput::Body(subschema_for::<approvals::ApprovalAnswerBody>),
                ResponseOutput::Nothing,
            )
            .with_failures(&[404]),
    ]
}

fn read_operations() -> Vec<Operation> {
    vec![
        OperationStart("get", "/api/agents", "Lists the agents of the team.").with(
            &[Chat, Read, Approve],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<team::AgentList>),
        ),
        OperationStart(
            "post",
            "/api/route",
            "Returns the agent that the offline router selects for a request.",
        )
        .with(
            &[Chat, Read, Approve],
            RequestInput::Body(subschema_for::<team::RouteBody>),
            ResponseOutput::Json(subschema_for::<team::RouteResponse>),
        ),
        OperationStart(
            "get",
            "/api/usage",
            "Returns the token usage and cost of model calls.",
        )
        .with(
            &[Read],
            RequestInput::Query(inline_schema::<usage_audit::UsageQuery>),
            ResponseOutput::Json(subschema_for::<UsageReportSchema>),
        )
        .with_failures(&[404]),
        OperationStart(
            "get",
            "/api/audit",
            "Lists tool calls and how they were approved.",
        )
        .with(
            &[Read],
            RequestInput::Query(inline_schema::<usage_audit::AuditQuery>),
            ResponseOutput::Json(subschema_for::<sessions::Items<usage_audit::AuditItem>>),
        )
        .with_failures(&[404]),
        OperationStart("get", "/api/openapi.json", "Returns this document.").with(
            &[Chat, Read, Approve],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<OpenApiDocument>),
        ),
    ]
}

fn openai_operations() -> Vec<Operation> {
    vec![
        OperationStart(
            "get",
            "/v1/models",
            "Lists the models: the team and each of its agents.",
        )
        .with(
            &[Chat],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<openai::ModelList>),
        ),
        OperationStart("get", "/v1/models/{model}", "Returns a model.")
            .with(
                &[Chat],
                RequestInput::Nothing,
                ResponseOutput::Json(subschema_for::<openai::ModelItem>),
            )
            .with_failures(&[404]),
        OperationStart(
            "post",
            "/v1/chat/completions",
            "Answers a conversation, as one response or as a stream.",
        )
        .with(
            &[Chat],
            RequestInput::Body(subschema_for::<chat::ChatBody>),
            ResponseOutput::JsonOrEvents(
                subschema_for::<completion::CompletionBody>,
                subschema_for::<ChatFrame>,
            ),
        )
        .with_failures(&[404, 422, 502, 503]),
    ]
}

fn meta_operations() -> Vec<Operation> {
    vec![
        OperationStart("get", "/health", "Reports that the server is running.").with(
            &[],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<HealthStatus>),
        ),
        OperationStart(
            "get",
            "/ready",
            "Reports whether the server accepts new turns.",
        )
        .with(
            &[],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<ReadyStatus>),
        )
        .with_failures(&[503]),
        OperationStart("get", "/metrics", "Returns metrics for Prometheus.").with(
            &[Admin],
            RequestInput::Nothing,
            ResponseOutput::Text,
        ),
    ]
}

/// Returns the schema of a query inline, because its fields become separate parameters.
fn inline_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

/// The method, path and summary of an operation.
struct OperationStart(&'static str, &'static str, &'static str);

impl OperationStart {
    fn with(
        self,
        scopes: &'static [TokenScope],
        input: RequestInput,
        output: ResponseOutput,
    ) -> Operation {
        let Self(method, path, summary) = self;
        Operation {
            method,
            path,
            summary,
            scopes,
            input,
            output,
            header: None,
            failure_statuses: &[],
        }
    }
}

impl Operation {
    fn with_failures(mut self, statuses: &'static [u16]) -> Self {
        self.failure_statuses = statuses;
        self
    }

    fn with_header(mut self, name: &'static str, description: &'static str) -> Self {
        self.header = Some((name, description));
        self
    }
}
