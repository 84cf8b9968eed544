//! The record of a route. The router and the OpenAPI document are both built from these records.

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{self, MethodRouter};
use lango_domain::access_tokens::TokenScope;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};

use crate::a2a::A2aSettings;
use crate::gateway::Gateway;
use crate::{a2a, api, auth, openai, status};

/// One route: the request that it matches, the callers that may use it, the function that responds,
/// and its description.
pub(crate) struct Route {
    pub endpoint: RouteEndpoint,
    pub path: &'static str,
    pub access: RouteAccess,
    pub description: RouteDescription,
}

/// A method and the function that responds to it, from [`get`], [`post`], [`delete`] or [`any`].
pub(crate) struct RouteEndpoint {
    /// The method as OpenAPI spells it; [`ANY_METHOD`] for every method.
    pub method: &'static str,
    responder: MethodRouter<Gateway>,
}

/// The callers that may use a route.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum RouteAccess {
    /// Everyone, without a token.
    Public,
    /// Callers with a valid token.
    AnyToken,
    /// Callers whose token has one of these scopes.
    Scopes(&'static [TokenScope]),
}

pub(crate) enum RouteDescription {
    OpenApi(Operation),
    /// The route is not in the OpenAPI document, for this reason.
    Omitted(#[expect(dead_code, reason = "for readers of the code")] &'static str),
}

/// The OpenAPI description of a route, except for its method, path and scopes.
pub(crate) struct Operation {
    pub summary: &'static str,
    pub input: RequestInput,
    pub output: ResponseOutput,
    /// Error statuses in addition to those of every operation of this kind.
    pub failure_statuses: &'static [u16],
}

pub(crate) type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

pub(crate) enum RequestInput {
    Nothing,
    Body(SchemaFn),
    Query(SchemaFn),
    QueryAndHeader(SchemaFn, HeaderParameter),
}

/// An optional request header.
pub(crate) struct HeaderParameter {
    pub name: &'static str,
    pub description: &'static str,
}

pub(crate) enum ResponseOutput {
    Json(SchemaFn),
    /// Server-sent events with this schema for their data.
    Events(SchemaFn),
    /// JSON or server-sent events, depending on the request.
    JsonOrEvents(SchemaFn, SchemaFn),
    Text,
    Nothing,
}

/// The method of a route that responds to every method. OpenAPI has no such method.
pub(crate) const ANY_METHOD: &str = "any";

/// Returns the records of all routes, in the order of the OpenAPI document.
pub(crate) fn all_routes(settings: &A2aSettings) -> Vec<Route> {
    let mut all = api::routes();
    all.extend(openai::routes());
    all.extend(status::routes());
    all.extend(a2a::routes(settings));
    all
}

impl Route {
    /// Adds the route to the router, behind the checks of its access: first the token and its rate
    /// limit, then the scopes.
    pub fn add_to(self, router: Router<Gateway>, gateway: &Gateway) -> Router<Gateway> {
        let responder = self.endpoint.responder;
        let authenticate = from_fn_with_state(gateway.clone(), auth::authenticate);
        let responder = match self.access {
            RouteAccess::Public => responder,
            RouteAccess::AnyToken => responder.layer(authenticate),
            RouteAccess::Scopes(scopes) => responder
                .layer(from_fn_with_state(scopes, auth::require_scope))
                .layer(authenticate),
        };
        router.route(self.path, responder)
    }
}

pub(crate) fn get<H: Handler<T, Gateway>, T: 'static>(respond: H) -> RouteEndpoint {
    RouteEndpoint {
        method: "get",
        responder: routing::get(respond),
    }
}

pub(crate) fn post<H: Handler<T, Gateway>, T: 'static>(respond: H) -> RouteEndpoint {
    RouteEndpoint {
        method: "post",
        responder: routing::post(respond),
    }
}

pub(crate) fn delete<H: Handler<T, Gateway>, T: 'static>(respond: H) -> RouteEndpoint {
    RouteEndpoint {
        method: "delete",
        responder: routing::delete(respond),
    }
}

pub(crate) fn any<H: Handler<T, Gateway>, T: 'static>(respond: H) -> RouteEndpoint {
    RouteEndpoint {
        method: ANY_METHOD,
        responder: routing::any(respond),
    }
}

/// Returns a reference to the schema of a body, which is defined in `components`.
pub(crate) fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Returns the schema of a query inline, because its fields become separate parameters.
pub(crate) fn parameters_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

impl RequestInput {
    pub fn body(&self) -> Option<SchemaFn> {
        match self {
            Self::Body(body) => Some(*body),
            Self::Nothing | Self::Query(_) | Self::QueryAndHeader(..) => None,
        }
    }

    pub fn query(&self) -> Option<SchemaFn> {
        match self {
            Self::Query(query) | Self::QueryAndHeader(query, _) => Some(*query),
            Self::Nothing | Self::Body(_) => None,
        }
    }

    pub fn header(&self) -> Option<&HeaderParameter> {
        match self {
            Self::QueryAndHeader(_, header) => Some(header),
            Self::Nothing | Self::Body(_) | Self::Query(_) => None,
        }
    }
}
