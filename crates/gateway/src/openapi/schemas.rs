//! Schemas of responses that have no Rust type of their own.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

use crate::error::ErrorBody;
use crate::openai::completion::ChunkBody;

/// An event of a session, as printed by `lango ask --json`. Further fields depend on its type.
#[derive(JsonSchema)]
#[schemars(rename = "Event")]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) struct EventSchema {
    /// The version of the event format.
    v: u8,
    /// The sequence number in the session, starting at 1.
    #[schemars(range(min = 1))]
    seq: u64,
    turn: String,
    session: String,
    /// `user` or the name of an agent.
    author: String,
    branch: String,
    #[schemars(extend("format" = "date-time"))]
    at: String,
    #[schemars(extend("enum" = [
        "user", "context", "digest", "thought", "note", "transfer", "transfer_result", "tool_call", "tool_result",
        "approval", "rejected", "report", "answer", "usage", "turn_done", "turn_failed",
    ]))]
    r#type: String,
}

/// A piece of text as it is generated. The final text may differ.
#[derive(JsonSchema)]
#[schemars(rename = "TextDelta")]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) struct DeltaSchema {
    #[schemars(extend("const" = "delta"))]
    r#type: String,
    author: String,
    text: String,
}

/// Output of a tool call while it runs.
#[derive(JsonSchema)]
#[schemars(rename = "ToolOutputDelta")]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) struct PrintedSchema {
    #[schemars(extend("const" = "printed"))]
    r#type: String,
    author: String,
    /// The id of the tool call.
    id: String,
    text: String,
}

/// The end of a turn that is not in the log of its session, so it has no sequence number.
#[derive(JsonSchema)]
#[schemars(rename = "UnstoredEnd")]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) struct UnstoredEndSchema {
    #[schemars(extend("const" = "turn_failed"))]
    r#type: String,
    code: String,
    message: String,
    hint: String,
}

/// The data of a server-sent event of a turn.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) enum TurnFrame {
    Event(EventSchema),
    Delta(DeltaSchema),
    Printed(PrintedSchema),
    UnstoredEnd(UnstoredEndSchema),
}

/// The data of a server-sent event of a chat completion, except the last one.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) enum ChatFrame {
    Chunk(ChunkBody),
    Failure(ErrorBody),
}

#[derive(JsonSchema)]
#[schemars(rename = "UsageReport")]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) struct UsageReportSchema {
    #[schemars(flatten)]
    all: UsageTotalsSchema,
    by_agent: Vec<AgentUsageSchema>,
    by_turn: Vec<TurnUsageSchema>,
}

#[derive(JsonSchema)]
#[schemars(rename = "UsageTotals")]
#[expect(dead_code, reason = "used for the schema only")]
struct UsageTotalsSchema {
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
    cached: u64,
    /// The cost in US dollars; null if the price of a model is unknown.
    cost_usd: Option<f64>,
}

#[derive(JsonSchema)]
#[schemars(rename = "AgentUsage")]
#[expect(dead_code, reason = "used for the schema only")]
struct AgentUsageSchema {
    #[schemars(flatten)]
    sum: UsageTotalsSchema,
    agent: String,
}

#[derive(JsonSchema)]
#[schemars(rename = "TurnUsage")]
#[expect(dead_code, reason = "used for the schema only")]
struct TurnUsageSchema {
    #[schemars(flatten)]
    sum: UsageTotalsSchema,
    turn: String,
    delegations: Vec<DelegationUsageSchema>,
}

#[derive(JsonSchema)]
#[schemars(rename = "DelegationUsage")]
#[expect(dead_code, reason = "used for the schema only")]
struct DelegationUsageSchema {
    #[schemars(flatten)]
    sum: UsageTotalsSchema,
    agent: String,
    branch: String,
}

/// An OpenAPI document.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) struct OpenApiDocument {
    openapi: String,
    #[schemars(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) struct HealthStatus {
    #[schemars(extend("const" = "ok"))]
    status: String,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "used for the schema only")]
pub(crate) struct ReadyStatus {
    #[schemars(extend("const" = "ready"))]
    status: String,
}
