//! Everything that can be asked for.

use lango_store::TokenScope::{self, Admin, Approve, Chat, Read};
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};

use super::shapes::{ChatFrame, Document, Health, Readiness, TurnFrame, UsageReport};
use super::{Gives, Operation, Takes, of};
use crate::api::{approvals, usage_audit, sessions, team, turns};
use crate::openai::{self, completion, chat};

pub(super) fn operations() -> Vec<Operation> {
    let mut all = asking();
    all.extend(answering());
    all.extend(looking());
    all.extend(for_openai());
    all.extend(about_itself());
    all
}

fn asking() -> Vec<Operation> {
    vec![
        Op("post", "/api/turns", "Asks the team; the events of the turn come as they happen.")
            .with(&[Chat], Takes::Body(of::<turns::TurnBody>), Gives::Events(of::<TurnFrame>))
            .failing(&[404, 409, 503]),
        Op("get", "/api/sessions", "Lists your sessions, the one used last first.").with(
            &[Read],
            Takes::Nothing,
            Gives::Json(of::<sessions::Items<sessions::SessionItem>>),
        ),
        Op("get", "/api/sessions/{session}", "Shows a session and its events.")
            .with(&[Read], Takes::Query(fields::<sessions::EventRange>), Gives::Json(of::<sessions::SessionBody>))
            .failing(&[404]),
        Op("delete", "/api/sessions/{session}", "Deletes a session for good.")
            .with(&[Admin], Takes::Nothing, Gives::Nothing)
            .failing(&[404, 409]),
        Op(
            "get",
            "/api/sessions/{session}/events",
            "Follows a session: what is kept behind `Last-Event-ID`, then what happens.",
        )
        .with(
            &[Chat, Read, Approve],
            Takes::Query(fields::<turns::FollowQuery>),
            Gives::Events(of::<TurnFrame>),
        )
        .heeding(
            "Last-Event-ID",
            "The number of the last event that is known. What is no number has no effect.",
        )
        .failing(&[404]),
        Op("post", "/api/sessions/{session}/cancel", "Ends the running turn of a session.")
            .with(&[Chat], Takes::Nothing, Gives::Json(of::<turns::CancelResponse>))
            .failing(&[404]),
    ]
}

fn answering() -> Vec<Operation> {
    vec![
        Op("get", "/api/approvals", "Lists questions about calls that wait for an answer.").with(
            &[Approve],
            Takes::Nothing,
            Gives::Json(of::<sessions::Items<approvals::ApprovalItem>>),
        ),
        Op("post", "/api/approvals", "Answers such a question.")
            .with(&[Approve], Takes::Body(of::<approvals::ApprovalAnswerBody>), Gives::Nothing)
            .failing(&[404]),
    ]
}

fn looking() -> Vec<Operation> {
    vec![
        Op("get", "/api/agents", "Lists the team.").with(
            &[Chat, Read, Approve],
            Takes::Nothing,
            Gives::Json(of::<team::AgentList>),
        ),
        Op("post", "/api/route", "Says which agent a request's words point to.").with(
            &[Chat, Read, Approve],
            Takes::Body(of::<team::RouteBody>),
            Gives::Json(of::<team::RouteResponse>),
        ),
        Op("get", "/api/usage", "Adds up what models took.")
            .with(&[Read], Takes::Query(fields::<usage_audit::UsageOf>), Gives::Json(of::<UsageReport>))
            .failing(&[404]),
        Op("get", "/api/audit", "Lists what tools did and who allowed it.")
            .with(
                &[Read],
                Takes::Query(fields::<usage_audit::CallsOf>),
                Gives::Json(of::<sessions::Items<usage_audit::AuditItem>>),
            )
            .failing(&[404]),
        Op("get", "/api/openapi.json", "This description.").with(
            &[Chat, Read, Approve],
            Takes::Nothing,
            Gives::Json(of::<Document>),
        ),
    ]
}

fn for_openai() -> Vec<Operation> {
    vec![
        Op("get", "/v1/models", "Lists the models: the team, and each of its agents alone.").with(
            &[Chat],
            Takes::Nothing,
            Gives::Json(of::<openai::ModelList>),
        ),
        Op("get", "/v1/models/{model}", "Shows a model.")
            .with(&[Chat], Takes::Nothing, Gives::Json(of::<openai::ModelItem>))
            .failing(&[404]),
        Op("post", "/v1/chat/completions", "Answers a conversation, whole or as it comes.")
            .with(
                &[Chat],
                Takes::Body(of::<chat::ChatBody>),
                Gives::JsonOrEvents(of::<completion::CompletionBody>, of::<ChatFrame>),
            )
            .failing(&[404, 422, 502, 503]),
    ]
}

fn about_itself() -> Vec<Operation> {
    vec![
        Op("get", "/health", "Whether the server is there.").with(
            &[],
            Takes::Nothing,
            Gives::Json(of::<Health>),
        ),
        Op("get", "/ready", "Whether it takes new turns.")
            .with(&[], Takes::Nothing, Gives::Json(of::<Readiness>))
            .failing(&[503]),
        Op("get", "/metrics", "What it counts, for Prometheus.").with(&[Admin], Takes::Nothing, Gives::Text),
    ]
}

/// The fields of a query, where they are needed one by one.
fn fields<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

/// The beginning of an operation.
struct Op(&'static str, &'static str, &'static str);

impl Op {
    fn with(self, scopes: &'static [TokenScope], takes: Takes, gives: Gives) -> Operation {
        let Self(method, path, summary) = self;
        Operation { method, path, summary, scopes, takes, gives, heeds: None, fails: &[] }
    }
}

impl Operation {
    fn failing(mut self, statuses: &'static [u16]) -> Self {
        self.fails = statuses;
        self
    }

    fn heeding(mut self, header: &'static str, effect: &'static str) -> Self {
        self.heeds = Some((header, effect));
        self
    }
}
