//! Shapes of answers that are not made of one type.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

use crate::error::ErrorBody;
use crate::openai::completion::ChunkBody;

/// An event of a session, as `lango ask --json` prints it; what else it has depends on its type.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "stands for the events in the description only")]
pub(crate) struct EventSchema {
    /// The version of the event's form.
    v: u8,
    /// Its number in the session, from 1.
    #[schemars(range(min = 1))]
    seq: u64,
    turn: String,
    session: String,
    /// `user`, or an agent's name.
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

/// Text as it comes; it may still change.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
pub(super) struct DeltaSchema {
    #[schemars(extend("const" = "delta"))]
    r#type: String,
    author: String,
    text: String,
}

/// What a call prints while it runs.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
pub(super) struct PrintedSchema {
    #[schemars(extend("const" = "printed"))]
    r#type: String,
    author: String,
    /// The call.
    id: String,
    text: String,
}

/// The end of a turn that is not in its session's log, so that it has no number.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
pub(super) struct UnstoredEndSchema {
    #[schemars(extend("const" = "turn_failed"))]
    r#type: String,
    code: String,
    message: String,
    hint: String,
}

/// What one server-sent event of a turn carries.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "part of the description only")]
pub(super) enum TurnFrame {
    Event(EventSchema),
    Delta(DeltaSchema),
    Printed(PrintedSchema),
    UnstoredEnd(UnstoredEndSchema),
}

/// What one server-sent event of a chat carries, except the last one.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "part of the description only")]
pub(super) enum ChatFrame {
    Chunk(ChunkBody),
    Failure(ErrorBody),
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
pub(super) struct UsageReportSchema {
    #[schemars(flatten)]
    all: UsageTotalsSchema,
    by_agent: Vec<AgentUsageSchema>,
    by_turn: Vec<TurnUsageSchema>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
struct UsageTotalsSchema {
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
    cached: u64,
    /// Null where a price is not known.
    cost_usd: Option<f64>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
struct AgentUsageSchema {
    #[schemars(flatten)]
    sum: UsageTotalsSchema,
    agent: String,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
struct TurnUsageSchema {
    #[schemars(flatten)]
    sum: UsageTotalsSchema,
    turn: String,
    delegations: Vec<DelegationUsageSchema>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
struct DelegationUsageSchema {
    #[schemars(flatten)]
    sum: UsageTotalsSchema,
    agent: String,
    branch: String,
}

/// An OpenAPI document.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
pub(super) struct OpenApiDocument {
    openapi: String,
    #[schemars(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
pub(super) struct HealthStatus {
    #[schemars(extend("const" = "ok"))]
    status: String,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "part of the description only")]
pub(super) struct ReadyStatus {
    #[schemars(extend("const" = "ready"))]
    status: String,
}
