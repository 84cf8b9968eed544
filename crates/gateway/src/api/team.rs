//! Who is there, and who would get a request.

use axum::Json;
use axum::extract::State;
use lango_models::offline::{Routing, RoutingDecision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::extract::JsonBody;
use crate::gateway::Gateway;

/// The team.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentList {
    #[schemars(extend("enum" = ["multi", "single"]))]
    pub mode: &'static str,
    pub agents: Vec<AgentItem>,
    /// Who was left out.
    pub skipped: Vec<SkippedItem>,
    /// Tools that nobody holds.
    pub unmatched: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgentItem {
    pub name: String,
    pub description: String,
    pub capabilities: Vec<String>,
    pub keywords: Vec<String>,
    pub tools: Vec<String>,
    /// Whether it works in another process.
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

/// A request to look at.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteBody {
    pub text: String,
}

/// Who should get a request, as the offline router sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RouteResponse {
    /// `direct`: no tool is needed.
    #[schemars(extend("enum" = ["agent", "direct", "none"]))]
    pub decision: &'static str,
    pub agent: Option<String>,
    /// Who would be right and is not there.
    pub absent: Option<String>,
    pub confidence: f64,
    pub ranking: Vec<RankedAgent>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RankedAgent {
    pub agent: String,
    pub score: f64,
    /// What speaks for it.
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

fn round_score(share: f32) -> f64 {
    (f64::from(share) * 1_000.0).round() / 1_000.0
}

pub(crate) async fn route(
    State(gateway): State<Gateway>,
    JsonBody(body): JsonBody<RouteBody>,
) -> Json<RouteResponse> {
    Json(RouteResponse::from(
        &gateway.team().router.route(&body.text),
    ))
}
