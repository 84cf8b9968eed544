//! The capabilities of the assistant: their tools and their checks.

use futures::future::BoxFuture;
use lango_domain::Tool;
use lango_graph::LazyGraph;

use crate::automation::{automation_checks, automation_tools};
use crate::browser::{browser_checks, browser_tools};
use crate::config::{ConfigError, LoadedConfig};
use crate::doctor::{DoctorCheck, check_operator};
use crate::documents::{document_tools, web_tools};
use crate::environment::Environment;
use crate::graph::{graph_tools, lazy_graph};
use crate::knowledge_base::knowledge_base_tools;
use crate::lazy_stores::LazyStores;
use crate::mcp::{mcp_checks, mcp_tools};
use crate::memory::memory_tools;
use crate::payments::{payment_checks, payment_tools};
use crate::toolset::Toolset;
use crate::vault::{vault_checks, vault_tools};

/// Everything from which capabilities build their tools.
pub struct CapabilityContext<'a> {
    pub(crate) loaded: &'a LoadedConfig,
    pub(crate) environment: &'a Environment,
    pub(crate) toolset: &'a Toolset,
    pub(crate) stores: &'a LazyStores,
    /// Shared, because it holds all facts in memory.
    pub(crate) graph: LazyGraph,
}

impl<'a> CapabilityContext<'a> {
    pub fn new(
        loaded: &'a LoadedConfig,
        environment: &'a Environment,
        toolset: &'a Toolset,
        stores: &'a LazyStores,
    ) -> Self {
        Self {
            loaded,
            environment,
            toolset,
            stores,
            graph: lazy_graph(stores),
        }
    }
}

struct Capability {
    /// Returns the tools that the settings enable.
    tools: fn(&CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError>,
    checks: ChecksFn,
}

type ChecksFn = for<'a> fn(&'a LoadedConfig, &'a Environment) -> BoxFuture<'a, Vec<DoctorCheck>>;

/// All capabilities, in the order of their tools. A new one is a line here and a field in `Settings`;
/// its settings are guarded in project files unless `config/project.rs` allows them.
const CAPABILITIES: [Capability; 11] = [
    Capability {
        tools: |context| Ok(context.toolset.tools()),
        checks: check_operator,
    },
    Capability {
        tools: web_tools,
        checks: no_checks,
    },
    Capability {
        tools: browser_tools,
        checks: browser_checks,
    },
    Capability {
        tools: graph_tools,
        checks: no_checks,
    },
    Capability {
        tools: document_tools,
        checks: no_checks,
    },
    Capability {
        tools: memory_tools,
        checks: no_checks,
    },
    Capability {
        tools: knowledge_base_tools,
        checks: no_checks,
    },
    Capability {
        tools: automation_tools,
        checks: automation_checks,
    },
    Capability {
        tools: vault_tools,
        checks: vault_checks,
    },
    Capability {
        tools: payment_tools,
        checks: payment_checks,
    },
    Capability {
        tools: mcp_tools,
        checks: mcp_checks,
    },
];

/// Returns the tools of all capabilities that the settings enable.
pub fn capability_tools(context: &CapabilityContext<'_>) -> Result<Vec<Tool>, ConfigError> {
    let mut tools = Vec::new();
    for capability in &CAPABILITIES {
        tools.extend((capability.tools)(context)?);
    }
    Ok(tools)
}

/// Runs the checks of all capabilities.
pub(crate) async fn capability_checks(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    for capability in &CAPABILITIES {
        checks.extend((capability.checks)(loaded, environment).await);
    }
    checks
}

fn no_checks<'a>(_: &'a LoadedConfig, _: &'a Environment) -> BoxFuture<'a, Vec<DoctorCheck>> {
    Box::pin(async { Vec::new() })
}
