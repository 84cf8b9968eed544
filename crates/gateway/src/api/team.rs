//! The team and the offline routing of requests.

use axum::Json;
use axum::extract::State;
use lango_models::offline::{Routing, RoutingDecision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::extract::JsonBody;
use crate::gateway::Gateway;

/// The agents of the team.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentList {
    #[schemars(extend("enum" = ["multi", "single"]))]
    pub mode: &'static str,
    pub agents: Vec<AgentItem>,
    /// Configured agents that are not part of the team.
    pub skipped: Vec<SkippedItem>,
    /// Tools that are not assigned to any agent.
    pub unmatched: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentItem {
    pub name: String,
    pub description: String,
    pub capabilities: Vec<String>,
    pub keywords: Vec<String>,
    pub tools: Vec<String>,
    /// True if the agent is a remote agent.
    pub remote: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SkippedItem {
    pub name: String,
    pub reason: String,
}

pub(crate) async fn agents(State(gateway): State<Gateway>) -> Json<AgentList> {
    Json(gateway.team().list())
}

/// A request to route.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteBody {
    pub text: String,
}

/// The result of offline routing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RouteResponse {
    /// `agent` if an agent was selected, `direct` if no tool is needed, `none` if no agent matches.
    #[schemars(extend("enum" = ["agent", "direct", "none"]))]
    pub decision: &'static str,
    pub agent: Option<String>,
    /// The agent that would match but is not part of the team.
    pub absent: Option<String>,
    pub confidence: f64,
    pub ranking: Vec<RankedAgent>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RankedAgent {
    pub agent: String,
    pub score: f64,
    /// The terms of the request that match the agent.
    pub matched: Vec<String>,
}

impl From<&Routing> for RouteResponse {
    fn from(routing: &Routing) -> Self {
        let (decision, agent, absent) = match &routing.decision {
            RoutingDecision::Agent(agent) => ("agent", Some(agent.clone()), None),
            RoutingDecision::Direct => ("direct", None, None),
            RoutingDecision::NoAgent { absent } => ("none", None, absent.map(str::to_owned)),
        };
        let ranking = routing.ranking.iter().map(|ranked| RankedAgent {
            agent: ranked.agent.clone(),
            score: round_score(ranked.score),
            matched: ranked.matched.clone(),
        });
        let (confidence, ranking) = (round_score(routing.confidence), ranking.collect());
        Self {
            decision,
            agent,
            absent,
            confidence,
            ranking,
        }
    }
}

fn round_score(score: f32) -> f64 {
    (f64::from(score) * 1_000.0).round() / 1_000.0
}

pub(crate) async fn route(
    State(gateway): State<Gateway>,
    JsonBody(body): JsonBody<RouteBody>,
) -> Json<RouteResponse> {
    Json(RouteResponse::from(
        &gateway.team().router.route(&body.text),
    ))
}
