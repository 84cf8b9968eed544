//! The orchestrator's only tool: `transfer_to_agent`.

use lango_domain::AgentName;
use lango_domain::markers::TRANSFER_TOOL;
use lango_domain::model::ToolDeclaration;
use serde_json::{Value, json};

/// The argument names that models use for the task.
const TASK_KEYS: [&str; 6] = [
    "task",
    "message",
    "prompt",
    "request",
    "user_request",
    "input",
];

/// Returns the tool declaration. Its enum allows only the names of the team's agents (B53).
pub(crate) fn transfer_declaration(agents: &[AgentName]) -> ToolDeclaration {
    ToolDeclaration {
        name: TRANSFER_TOOL.to_owned(),
        description: "Hands the work to a specialist.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "agent_name": { "type": "string", "enum": agents, "description": "Exact name of the specialist." },
                "task": { "type": "string", "description": "What to do, with every detail it needs." },
                "report_back": {
                    "type": "boolean",
                    "default": false,
                    "description": "true: its answer returns to you; false: its answer goes to the user."
                }
            },
            "required": ["agent_name"]
        }),
        phrases: Vec::new(),
    }
}

/// The arguments of a transfer, parsed leniently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransferRequest {
    /// The name as the model wrote it.
    pub agent: String,
    pub task: Option<String>,
    pub report_back: bool,
}

impl TransferRequest {
    pub fn parse(arguments: &Value) -> Self {
        let text = |key: &str| {
            arguments
                .get(key)
                .and_then(Value::as_str)
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let report_back = match arguments.get("report_back") {
            Some(Value::Bool(truth)) => *truth,
            Some(Value::String(truth)) => truth.trim().eq_ignore_ascii_case("true"),
            _ => false,
        };
        Self {
            agent: text("agent_name")
                .or_else(|| text("agent"))
                .unwrap_or_default()
                .to_owned(),
            task: TASK_KEYS.into_iter().find_map(text).map(str::to_owned),
            report_back,
        }
    }
}

/// Finds the agent that a name refers to. Ignores case, surrounding white space and an `_agent`
/// suffix, but does not accept abbreviations (B53).
pub(crate) fn resolve_agent<'a>(
    written: &str,
    agents: impl IntoIterator<Item = &'a AgentName>,
) -> Option<&'a AgentName> {
    let name = written.trim().to_lowercase();
    let stripped = name
        .strip_suffix("_agent")
        .or_else(|| name.strip_suffix("-agent"))
        .unwrap_or(&name);
    let agents: Vec<&AgentName> = agents.into_iter().collect();
    let find = |name: &str| agents.iter().copied().find(|agent| **agent == *name);
    find(&name).or_else(|| find(stripped))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B53
    #[test]
    fn resolves_small_differences_but_no_abbreviations() {
        let agents = ["operator", "vault", "lango-agent"].map(|name| AgentName::new(name).unwrap());
        let resolve = |written| resolve_agent(written, &agents).map(AgentName::as_str);
        for written in [
            "operator",
            " Operator\n",
            "OPERATOR",
            "operator_agent",
            "Operator-Agent",
        ] {
            assert_eq!(resolve(written), Some("operator"), "{written}");
        }
        assert_eq!(resolve("lango-agent"), Some("lango-agent"));
        for written in [
            "",
            "op",
            "oper",
            "exec",
            "operator agent",
            "browser_agent",
            "_agent",
        ] {
            assert_eq!(resolve(written), None, "{written}");
        }
    }

    #[test]
    fn parses_arguments_leniently() {
        let request = TransferRequest::parse(
            &json!({ "agent_name": " vault ", "prompt": "pay", "report_back": "True", "why": 1 }),
        );
        assert_eq!(
            request,
            TransferRequest {
                agent: "vault".into(),
                task: Some("pay".into()),
                report_back: true
            }
        );
        for odd in [
            json!(null),
            json!("vault"),
            json!([]),
            json!({ "agent_name": 7, "task": {} }),
        ] {
            assert_eq!(
                TransferRequest::parse(&odd),
                TransferRequest {
                    agent: String::new(),
                    task: None,
                    report_back: false
                }
            );
        }
    }
}
