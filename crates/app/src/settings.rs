//! All settings, composed of the settings of each crate.
//!
//! These types define the schema and serialization. Deserialization happens group by group, so that
//! an invalid value is reported with its own key.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use lango_engine::{ApprovalPolicy, TurnLimits};
use lango_models::{Price, Providers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The team and its turns.
    pub agent: AgentSettings,
    /// Model providers.
    pub providers: Providers,
    /// US dollars per million tokens, by model name prefix; override the built-in table.
    pub prices: BTreeMap<String, Price>,
    /// The HTTP server (`lango serve`).
    pub server: lango_gateway::ServerSettings,
    /// The store of sessions.
    pub store: lango_store::StoreSettings,
    /// Approval of tool calls, and the vault.
    pub security: SecuritySettings,
    /// The workspace and commands.
    pub tools: lango_tools::ToolsSettings,
    /// Embeddings of documents.
    pub embedding: lango_documents::embedding::EmbeddingSettings,
    /// Document search.
    pub rag: lango_documents::RagSettings,
    /// The knowledge graph.
    pub graph: lango_graph::GraphSettings,
    /// Conversation memory.
    pub observational_memory: lango_memory::observational_memory::MemorySettings,
    /// The knowledge base and learnings.
    pub knowledge: lango_memory::knowledge_base::KnowledgeSettings,
    /// Inquiries: questions for the user.
    pub librarian: lango_memory::inquiries::LibrarianSettings,
    /// Jobs with schedules.
    pub cron: lango_automation::CronSettings,
    /// Background tasks.
    pub background: lango_automation::BackgroundSettings,
    /// Workflows.
    pub workflow: lango_automation::WorkflowSettings,
    /// Deliveries of results.
    pub automation: lango_automation::delivery::DeliverySettings,
    /// Payments in USDC.
    pub payment: lango_payments::PaymentSettings,
    /// The browser.
    pub browser: lango_browser::BrowserSettings,
    /// Web search.
    pub search: lango_web::SearchSettings,
    /// Network access.
    pub net: lango_net::NetSettings,
    /// Remote agents (A2A).
    pub a2a: lango_remote::RemoteSettings,
    /// Tool servers (MCP).
    pub mcp: lango_mcp::McpSettings,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecuritySettings {
    /// The approval policy: which tool calls run, need approval, or are denied.
    pub approval: ApprovalPolicy,
    /// The vault: secrets, keys and cryptography.
    pub vault: lango_vault::VaultSettings,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSettings {
    #[serde(flatten)]
    pub team: lango_team::TeamSettings,
    #[serde(flatten)]
    pub engine: lango_engine::EngineSettings,
    #[serde(flatten)]
    pub models: lango_models::ModelSettings,
}

impl Settings {
    /// Returns the limits of a turn, including the delegation rounds.
    pub fn limits(&self) -> TurnLimits {
        let rounds = NonZeroU32::new(self.agent.team.delegation_rounds());
        TurnLimits {
            rounds: rounds.unwrap_or(TurnLimits::default().rounds),
            ..self.agent.engine.limits.clone()
        }
    }

    /// Returns the JSON Schema of a configuration file, which forbids unknown keys.
    pub fn schema() -> Value {
        let mut schema = schemars::schema_for!(Self).to_value();
        forbid_unknown_keys(&mut schema);
        schema
    }
}

/// Forbids additional keys in every table with named keys.
fn forbid_unknown_keys(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            map.values_mut().for_each(forbid_unknown_keys);
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_unknown_keys),
        _ => {}
    }
}
