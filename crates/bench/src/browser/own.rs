//! Lango's tools, called as the engine calls them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use lango_browser::{
    BrowserOptions, BrowserSettings, Navigator, NavigatorParts, find_browser, tools,
};
use lango_domain::{Tool, ToolContext};
use lango_net::AddressPolicy;
use lango_testkit::tool_context_for;
use serde_json::{Value, json};

pub struct Own {
    navigator: Arc<Navigator>,
    tools: Vec<Tool>,
    context: ToolContext,
}

/// Returns the browser that all programs of the benchmark use.
pub fn browser_path() -> Result<PathBuf> {
    let path = std::env::var_os("PATH");
    Ok(find_browser(&BrowserSettings::default(), path.as_deref())?.path)
}

impl Own {
    pub fn new() -> Self {
        let navigator = Navigator::new(NavigatorParts {
            options: BrowserOptions {
                settings: BrowserSettings::default(),
                policy: AddressPolicy::Anywhere,
                variables: std::env::vars_os().collect(),
                temp_folder: std::env::temp_dir(),
            },
            read_file: Arc::new(|_| Err("no files".to_owned())),
            read_pdf: Arc::new(|_| Err("no PDF files".to_owned())),
        });
        Self {
            tools: tools(&navigator),
            navigator,
            context: tool_context_for("navigator"),
        }
    }

    pub async fn open(&self, url: &str) -> Result<String> {
        self.call("browser_navigate", json!({ "url": url })).await
    }

    pub async fn click(&self, element: &str) -> Result<String> {
        let args = json!({ "action": "click", "ref": element });
        self.call("browser_action", args).await
    }

    pub async fn look(&self) -> Result<String> {
        self.call("browser_observe", json!({})).await
    }

    pub async fn close(self) {
        self.navigator.close().await;
    }

    async fn call(&self, name: &str, args: Value) -> Result<String> {
        let mut tools = self.tools.iter();
        let tool = tools
            .find(|tool| tool.name == name)
            .with_context(|| format!("there is no tool {name}"))?;
        let output = tool.call(self.context.clone(), args).await;
        output
            .map(|output| output.content.text)
            .map_err(|failure| anyhow!(failure.0))
    }
}
