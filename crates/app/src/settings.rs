//! Every setting, put together from what each crate owns. The shape serves writing and the schema; reading goes
//! part by part, so that a wrong value is reported with its own key.

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
    /// The team and how it works.
    pub agent: AgentSettings,
    /// Where models are.
    pub providers: Providers,
    /// US dollars per million tokens, by the beginning of a model's name; stand before the built-in table.
    pub prices: BTreeMap<String, Price>,
    /// `lango serve`.
    pub server: lango_gateway::ServerSettings,
    /// Where sessions are kept.
    pub store: lango_store::StoreSettings,
    /// What may happen without a question.
    pub security: SecuritySettings,
    /// The workspace and commands.
    pub tools: lango_tools::ToolsSettings,
    /// How texts become vectors, for documents.
    pub embedding: lango_knowledge::embedding::EmbeddingSettings,
    /// How passages of documents are found.
    pub rag: lango_knowledge::RagSettings,
    /// The knowledge graph.
    pub graph: lango_knowledge::graph::GraphSettings,
    /// What is remembered of conversations.
    pub observational_memory: lango_knowledge::memory::MemorySettings,
    /// Facts, and what helped when something failed.
    pub knowledge: lango_knowledge::knowledge_base::KnowledgeSettings,
    /// Questions that are worth asking.
    pub librarian: lango_knowledge::inquiries::LibrarianSettings,
    /// Where the web is searched.
    pub search: lango_knowledge::web::SearchSettings,
    /// Which addresses may be fetched.
    pub net: lango_net::NetSettings,
    /// Agents in other processes.
    pub a2a: lango_remote::RemoteSettings,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecuritySettings {
    /// Which calls of tools run, which are asked about, which never run.
    pub approval: ApprovalPolicy,
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
    /// The limits of a turn, the delegation rounds among them.
    pub fn limits(&self) -> TurnLimits {
        let rounds = NonZeroU32::new(self.agent.team.delegation_rounds());
        TurnLimits {
            rounds: rounds.unwrap_or(TurnLimits::default().rounds),
            ..self.agent.engine.limits.clone()
        }
    }

    /// The JSON Schema of a configuration file; it knows every key there is.
    pub fn schema() -> Value {
        let mut schema = schemars::schema_for!(Self).to_value();
        forbid_unknown_keys(&mut schema);
        schema
    }
}

/// A table with named keys takes no others.
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
