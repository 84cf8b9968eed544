//! The confirmed tools of servers as tools of agents.

use std::sync::Arc;

use lango_domain::flow::ANY_ADDRESS;
use lango_domain::{
    Destination, Intent, OutgoingData, Safety, Tool, ToolContext, ToolError, ToolOutput,
};
use lango_text::suggest;
use lango_text::token_estimate;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::definition::ToolDefinition;
use crate::launch::ServerAddress;
use crate::server::McpServer;
use crate::tool_name::{tool_name, tool_prefix};
use crate::trust::{TrustChange, TrustState};

/// With more tools, or with definitions of more tokens, an agent gets a search instead of all definitions.
pub const MAX_LISTED_TOOLS: usize = 40;
const MAX_LISTED_TOKENS: usize = 12_000;
const MAX_FOUND: usize = 8;

/// Returns the tools of a server that the user has confirmed and that have not changed since.
pub fn trusted_definitions(server: &McpServer) -> Vec<ToolDefinition> {
    let trust = server.files().trust();
    if trust.state(&server.key, &server.launch()) != TrustState::Trusted {
        return Vec::new();
    }
    let Some(manifest) = server.manifest() else {
        return Vec::new();
    };
    let compared = trust.compare(&server.key, &manifest).into_iter();
    let same = compared.filter(|(_, change)| *change == TrustChange::Same);
    same.map(|(tool, _)| tool.clone()).collect()
}

/// Returns the tools of a server for an agent.
pub fn server_tools(server: &Arc<McpServer>, definitions: Vec<ToolDefinition>) -> Vec<Tool> {
    let tokens = |tool: &ToolDefinition| {
        let schema = tool.input_schema.to_string();
        token_estimate::estimate(&tool.description) + token_estimate::estimate(&schema)
    };
    let total: usize = definitions.iter().map(tokens).sum();
    if definitions.is_empty() {
        return Vec::new();
    }
    if definitions.len() > MAX_LISTED_TOOLS || total > MAX_LISTED_TOKENS {
        let definitions: Arc<[ToolDefinition]> = definitions.into();
        return vec![
            find_tool(server, Arc::clone(&definitions)),
            call_tool(server, definitions),
        ];
    }
    definitions
        .into_iter()
        .map(|definition| listed_tool(server, definition))
        .collect()
}

fn listed_tool(server: &Arc<McpServer>, definition: ToolDefinition) -> Tool {
    let name = tool_name(&server.key, &definition.name);
    let description = definition.model_description();
    let level = server.settings.level(&definition.name);
    let (own, parameters) = (Arc::clone(server), definition.input_schema.clone());
    let (tool, fingerprint) = (definition.name.clone(), definition.fingerprint());
    let run = move |context: ToolContext, args: Value| {
        let (server, tool, fingerprint) = (Arc::clone(&own), tool.clone(), fingerprint.clone());
        async move { run_call(&server, (&tool, &fingerprint), args, context).await }
    };
    let mut built = Tool::new(name, description, level, run)
        .with_untrusted_output()
        .with_private_output();
    built.parameters = parameters;
    with_outgoing(built, server)
}

async fn run_call(
    server: &McpServer,
    tool: (&str, &str),
    args: Value,
    context: ToolContext,
) -> Result<ToolOutput, ToolError> {
    let arguments = match args {
        Value::Object(arguments) => arguments,
        Value::Null => Map::new(),
        _ => return Err(ToolError("the arguments must be an object".to_owned())),
    };
    let called = server.call(tool, arguments, context.output_sink).await;
    match called {
        Ok(content) => Ok(content.into()),
        Err(error) => Err(ToolError(error.to_string())),
    }
}

/// Declares where the arguments of a call go.
fn with_outgoing(tool: Tool, server: &McpServer) -> Tool {
    let to = match server.address() {
        ServerAddress::Program(program) if !program.has_network() => return tool,
        ServerAddress::Program(_) => Destination::Host(ANY_ADDRESS.to_owned()),
        ServerAddress::Url { url, .. } => {
            Destination::Configured(vec![url.host_str().unwrap_or_default().to_owned()])
        }
    };
    tool.with_outgoing(move |args: Value| OutgoingData {
        to: to.clone(),
        data: args.to_string(),
    })
}

#[derive(Deserialize, JsonSchema)]
struct FindArgs {
    /// The task of the tool, in a few words.
    query: String,
}

/// Searches the definitions of a server with many tools.
fn find_tool(server: &Arc<McpServer>, definitions: Arc<[ToolDefinition]>) -> Tool {
    let (name, count) = (
        format!("{}find", tool_prefix(&server.key)),
        definitions.len(),
    );
    let description = format!(
        "Finds tools of the server {} by words; it has {count}. Returns their names, descriptions and arguments for {}call.",
        server.key,
        tool_prefix(&server.key)
    );
    let run = move |_: ToolContext, args: FindArgs| {
        let found = find(&definitions, &args.query);
        async move { Ok(found) }
    };
    Tool::new(name, description, Safety::Safe, run).with_untrusted_output()
}

/// Returns the best matching definitions as JSON lines.
fn find(definitions: &[ToolDefinition], query: &str) -> String {
    let texts = definitions.iter().enumerate().map(|(number, tool)| {
        let text = format!("{} {} {}", tool.name, tool.capability(), tool.description);
        (number as u64, text)
    });
    let index = lango_text::short_text_index::ShortTextIndex::from_texts(texts);
    let found: Vec<String> = index
        .search(query, MAX_FOUND)
        .into_iter()
        .filter_map(|(number, _)| definitions.get(usize::try_from(number).ok()?))
        .map(|tool| {
            json!({
                "tool": tool.name,
                "description": tool.model_description(),
                "arguments": tool.input_schema,
            })
            .to_string()
        })
        .collect();
    if found.is_empty() {
        return "No tool matches; try other words.".to_owned();
    }
    found.join("\n")
}

#[derive(Deserialize, JsonSchema)]
struct CallArgs {
    /// The name of the tool, as found.
    tool: String,
    /// The arguments of the tool.
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// Calls any tool of a server with many tools.
fn call_tool(server: &Arc<McpServer>, definitions: Arc<[ToolDefinition]>) -> Tool {
    let prefix = tool_prefix(&server.key);
    let description = format!(
        "Calls a tool of the server {} that {prefix}find has found.",
        server.key
    );
    let (own, known) = (Arc::clone(server), Arc::clone(&definitions));
    let run = move |context: ToolContext, args: CallArgs| {
        let (server, found) = (Arc::clone(&own), definition_of(&known, &args.tool));
        async move {
            let tool = found?;
            let arguments = Value::Object(args.arguments);
            run_call(
                &server,
                (&tool.name, &tool.fingerprint()),
                arguments,
                context,
            )
            .await
        }
    };
    let own = Arc::clone(server);
    let intent = move |_: ToolContext, args: CallArgs| {
        let intent = definition_of(&definitions, &args.tool).map(|tool| {
            let arguments = Value::Object(args.arguments);
            Intent {
                level: own.settings.level(&tool.name),
                shows: format!("{} {arguments:#}", tool_name(&own.key, &tool.name)),
                subject: format!("{} {arguments}", tool.name),
                pattern: None,
            }
        });
        async move { intent }
    };
    let tool = Tool::new(format!("{prefix}call"), description, Safety::Dangerous, run)
        .with_intent(intent)
        .with_untrusted_output()
        .with_private_output();
    with_outgoing(tool, server)
}

fn definition_of(definitions: &[ToolDefinition], name: &str) -> Result<ToolDefinition, ToolError> {
    let found = definitions.iter().find(|tool| tool.name == name);
    found.cloned().ok_or_else(|| {
        let names = definitions.iter().map(|tool| tool.name.as_str());
        let hint = suggest::did_you_mean(name, names);
        let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
        ToolError(format!("there is no tool `{name}`{hint}"))
    })
}
