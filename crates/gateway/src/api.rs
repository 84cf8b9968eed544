//! Lango's own API: turns as event streams, sessions, approvals, usage and audit.

pub(crate) mod approvals;
pub(crate) mod sessions;
pub(crate) mod team;
pub(crate) mod turns;
pub(crate) mod usage_audit;

use axum::Json;
use lango_domain::access_tokens::TokenScope::{self, Admin, Approve, Chat, Read};
use serde_json::Value;

use crate::openapi;
use crate::openapi::schemas::{OpenApiDocument, TurnFrame, UsageReportSchema};
use crate::route::{
    HeaderParameter, Operation, RequestInput, ResponseOutput, Route, RouteAccess, RouteDescription,
    delete, get, parameters_of, post, schema_of,
};
use sessions::Items;

const ANY_API_SCOPE: &[TokenScope] = &[Chat, Read, Approve];
const LAST_EVENT_ID: HeaderParameter = HeaderParameter {
    name: "Last-Event-ID",
    description: "The sequence number of the last event received. Values that are not numbers are ignored.",
};

/// Returns the records in the order of the OpenAPI document. `docs/serving.md` explains the scopes.
pub(crate) fn routes() -> Vec<Route> {
    let mut all = vec![start_turn_route()];
    all.extend(session_routes());
    all.extend(running_turn_routes());
    all.extend(approval_routes());
    all.extend(team_routes());
    all.extend(report_routes());
    all
}

fn start_turn_route() -> Route {
    Route {
        endpoint: post(turns::start),
        path: "/api/turns",
        access: RouteAccess::Scopes(&[Chat]),
        description: RouteDescription::OpenApi(Operation {
            summary: "Starts a turn and streams its events.",
            input: RequestInput::Body(schema_of::<turns::TurnBody>),
            output: ResponseOutput::Events(schema_of::<TurnFrame>),
            failure_statuses: &[404, 409, 503],
        }),
    }
}

fn session_routes() -> Vec<Route> {
    vec![
        Route {
            endpoint: get(sessions::list),
            path: "/api/sessions",
            access: RouteAccess::Scopes(&[Read]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Lists your sessions, most recently used first.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Json(schema_of::<Items<sessions::SessionItem>>),
                failure_statuses: &[],
            }),
        },
        Route {
            endpoint: get(sessions::show),
            path: "/api/sessions/{session}",
            access: RouteAccess::Scopes(&[Read]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Returns a session and its events.",
                input: RequestInput::Query(parameters_of::<sessions::EventRange>),
                output: ResponseOutput::Json(schema_of::<sessions::SessionBody>),
                failure_statuses: &[404],
            }),
        },
        Route {
            endpoint: delete(sessions::delete),
            path: "/api/sessions/{session}",
            access: RouteAccess::Scopes(&[Admin]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Deletes a session permanently.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Nothing,
                failure_statuses: &[404, 409],
            }),
        },
    ]
}

fn running_turn_routes() -> Vec<Route> {
    vec![
        Route {
            endpoint: get(turns::follow),
            path: "/api/sessions/{session}/events",
            access: RouteAccess::Scopes(ANY_API_SCOPE),
            description: RouteDescription::OpenApi(Operation {
                summary: "Follows a session: streams the stored events after `Last-Event-ID`, then new ones.",
                input: RequestInput::QueryAndHeader(
                    parameters_of::<turns::FollowQuery>,
                    LAST_EVENT_ID,
                ),
                output: ResponseOutput::Events(schema_of::<TurnFrame>),
                failure_statuses: &[404],
            }),
        },
        Route {
            endpoint: post(turns::cancel),
            path: "/api/sessions/{session}/cancel",
            access: RouteAccess::Scopes(&[Chat]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Cancels the running turn of a session.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Json(schema_of::<turns::CancelResponse>),
                failure_statuses: &[404],
            }),
        },
    ]
}

fn approval_routes() -> Vec<Route> {
    vec![
        Route {
            endpoint: get(approvals::list),
            path: "/api/approvals",
            access: RouteAccess::Scopes(&[Approve]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Lists the pending approval questions.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Json(schema_of::<Items<approvals::ApprovalItem>>),
                failure_statuses: &[],
            }),
        },
        Route {
            endpoint: post(approvals::answer),
            path: "/api/approvals",
            access: RouteAccess::Scopes(&[Approve]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Answers an approval question.",
                input: RequestInput::Body(schema_of::<approvals::ApprovalAnswerBody>),
                output: ResponseOutput::Nothing,
                failure_statuses: &[404],
            }),
        },
    ]
}

fn team_routes() -> Vec<Route> {
    vec![
        Route {
            endpoint: get(team::agents),
            path: "/api/agents",
            access: RouteAccess::Scopes(ANY_API_SCOPE),
            description: RouteDescription::OpenApi(Operation {
                summary: "Lists the agents of the team.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Json(schema_of::<team::AgentList>),
                failure_statuses: &[],
            }),
        },
        Route {
            endpoint: post(team::route),
            path: "/api/route",
            access: RouteAccess::Scopes(ANY_API_SCOPE),
            description: RouteDescription::OpenApi(Operation {
                summary: "Returns the agent that the offline router selects for a request.",
                input: RequestInput::Body(schema_of::<team::RouteBody>),
                output: ResponseOutput::Json(schema_of::<team::RouteResponse>),
                failure_statuses: &[],
            }),
        },
    ]
}

fn report_routes() -> Vec<Route> {
    vec![
        Route {
            endpoint: get(usage_audit::usage),
            path: "/api/usage",
            access: RouteAccess::Scopes(&[Read]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Returns the token usage and cost of model calls.",
                input: RequestInput::Query(parameters_of::<usage_audit::UsageQuery>),
                output: ResponseOutput::Json(schema_of::<UsageReportSchema>),
                failure_statuses: &[404],
            }),
        },
        Route {
            endpoint: get(usage_audit::audit),
            path: "/api/audit",
            access: RouteAccess::Scopes(&[Read]),
            description: RouteDescription::OpenApi(Operation {
                summary: "Lists tool calls and how they were approved.",
                input: RequestInput::Query(parameters_of::<usage_audit::AuditQuery>),
                output: ResponseOutput::Json(schema_of::<Items<usage_audit::AuditItem>>),
                failure_statuses: &[404],
            }),
        },
        Route {
            endpoint: get(openapi_json),
            path: "/api/openapi.json",
            access: RouteAccess::Scopes(ANY_API_SCOPE),
            description: RouteDescription::OpenApi(Operation {
                summary: "Returns this document.",
                input: RequestInput::Nothing,
                output: ResponseOutput::Json(schema_of::<OpenApiDocument>),
                failure_statuses: &[],
            }),
        },
    ]
}

async fn openapi_json() -> Json<Value> {
    Json(openapi::document())
}
