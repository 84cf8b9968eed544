//! Everything that can be asked for.

use lango_store::TokenScope::{self, Admin, Approve, Chat, Read};
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
            "Asks the team; the events of the turn come as they happen.",
        )
        .with(
            &[Chat],
            RequestInput::Body(subschema_for::<turns::TurnBody>),
            ResponseOutput::Events(subschema_for::<TurnFrame>),
        )
        .with_failures(&[404, 409, 503]),
        OperationStart(
            "get",
            "/api/sessions",
            "Lists your sessions, the one used last first.",
        )
        .with(
            &[Read],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<sessions::Items<sessions::SessionItem>>),
        ),
        OperationStart(
            "get",
            "/api/sessions/{session}",
            "Shows a session and its events.",
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
            "Deletes a session for good.",
        )
        .with(&[Admin], RequestInput::Nothing, ResponseOutput::Nothing)
        .with_failures(&[404, 409]),
        OperationStart(
            "get",
            "/api/sessions/{session}/events",
            "Follows a session: what is kept behind `Last-Event-ID`, then what happens.",
        )
        .with(
            &[Chat, Read, Approve],
            RequestInput::Query(inline_schema::<turns::FollowQuery>),
            ResponseOutput::Events(subschema_for::<TurnFrame>),
        )
        .with_header(
            "Last-Event-ID",
            "The number of the last event that is known. What is no number has no effect.",
        )
        .with_failures(&[404]),
        OperationStart(
            "post",
            "/api/sessions/{session}/cancel",
            "Ends the running turn of a session.",
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
            "Lists questions about calls that wait for an answer.",
        )
        .with(
            &[Approve],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<sessions::Items<approvals::ApprovalItem>>),
        ),
        OperationStart("post", "/api/approvals", "Answers such a question.")
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
        OperationStart("get", "/api/agents", "Lists the team.").with(
            &[Chat, Read, Approve],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<team::AgentList>),
        ),
        OperationStart(
            "post",
            "/api/route",
            "Says which agent a request's words point to.",
        )
        .with(
            &[Chat, Read, Approve],
            RequestInput::Body(subschema_for::<team::RouteBody>),
            ResponseOutput::Json(subschema_for::<team::RouteResponse>),
        ),
        OperationStart("get", "/api/usage", "Adds up what models took.")
            .with(
                &[Read],
                RequestInput::Query(inline_schema::<usage_audit::UsageQuery>),
                ResponseOutput::Json(subschema_for::<UsageReportSchema>),
            )
            .with_failures(&[404]),
        OperationStart(
            "get",
            "/api/audit",
            "Lists what tools did and who allowed it.",
        )
        .with(
            &[Read],
            RequestInput::Query(inline_schema::<usage_audit::AuditQuery>),
            ResponseOutput::Json(subschema_for::<sessions::Items<usage_audit::AuditItem>>),
        )
        .with_failures(&[404]),
        OperationStart("get", "/api/openapi.json", "This description.").with(
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
            "Lists the models: the team, and each of its agents alone.",
        )
        .with(
            &[Chat],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<openai::ModelList>),
        ),
        OperationStart("get", "/v1/models/{model}", "Shows a model.")
            .with(
                &[Chat],
                RequestInput::Nothing,
                ResponseOutput::Json(subschema_for::<openai::ModelItem>),
            )
            .with_failures(&[404]),
        OperationStart(
            "post",
            "/v1/chat/completions",
            "Answers a conversation, whole or as it comes.",
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
        OperationStart("get", "/health", "Whether the server is there.").with(
            &[],
            RequestInput::Nothing,
            ResponseOutput::Json(subschema_for::<HealthStatus>),
        ),
        OperationStart("get", "/ready", "Whether it takes new turns.")
            .with(
                &[],
                RequestInput::Nothing,
                ResponseOutput::Json(subschema_for::<ReadyStatus>),
            )
            .with_failures(&[503]),
        OperationStart("get", "/metrics", "What it counts, for Prometheus.").with(
            &[Admin],
            RequestInput::Nothing,
            ResponseOutput::Text,
        ),
    ]
}

/// The fields of a query, where they are needed one by one.
fn inline_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

/// The beginning of an operation.
struct OperationStart(&'static str, &'static str, &'static str);

impl OperationStart {
    fn with(
        self,
        scopes: &'static [TokenScope],
        takes: RequestInput,
        gives: ResponseOutput,
    ) -> Operation {
        let Self(method, path, summary) = self;
        Operation {
            method,
            path,
            summary,
            scopes,
            input: takes,
            output: gives,
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

    fn with_header(mut self, header: &'static str, effect: &'static str) -> Self {
        self.header = Some((header, effect));
        self
    }
}
