//! Starts the fixture as a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lango_domain::event::{CallId, Principal, SessionId, TurnId};
use lango_domain::secret_reference::SecretRedactor;
use lango_domain::{
    AgentName, Generation, Label, Tool, ToolContext, ToolError, ToolOutput, ToolOutputSink,
};
use lango_mcp::{
    LaunchEnvironment, McpServer, McpServerSettings, ServerAddress, ServerFiles, ServerKey,
    server_tools, trusted_definitions,
};
use serde_json::Value;

pub const FIXTURE: &str = env!("CARGO_BIN_EXE_mcp-fixture");

pub struct Harness {
    pub folder: tempfile::TempDir,
    pub generation: Generation,
}

impl Harness {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            generation: Generation::default(),
        }
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the settings of a kind of fixture.
    pub fn settings(args: &[&str]) -> McpServerSettings {
        McpServerSettings {
            command: Some(FIXTURE.to_owned()),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            ..McpServerSettings::default()
        }
    }

    pub fn server(&self, settings: McpServerSettings) -> Arc<McpServer> {
        std::fs::create_dir_all(self.data()).unwrap();
        let environment = LaunchEnvironment {
            helper: PathBuf::from(FIXTURE),
            variables: std::env::vars().collect(),
            hidden: vec![self.data().canonicalize().unwrap()],
            exec: lango_tools::shell::ExecSettings::default(),
            temp_folder: std::env::temp_dir(),
        };
        let address = ServerAddress::new(&settings, Path::to_path_buf).unwrap();
        let key = ServerKey::parse("fixture").unwrap();
        let files = ServerFiles::new(&self.data());
        let generation = self.generation.clone();
        Arc::new(McpServer::new(
            (key, settings),
            address,
            environment,
            files,
            generation,
        ))
    }

    /// Starts a server and confirms all of its tools.
    pub async fn trusted(&self, settings: McpServerSettings) -> Arc<McpServer> {
        let server = self.server(settings);
        let manifest = server.refresh().await.unwrap();
        server
            .files()
            .trust()
            .confirm(&server.key, &manifest)
            .unwrap();
        server
    }
}

pub fn tools(server: &Arc<McpServer>) -> Vec<Tool> {
    server_tools(server, trusted_definitions(server))
}

pub fn tool_names(server: &Arc<McpServer>) -> Vec<String> {
    tools(server).into_iter().map(|tool| tool.name).collect()
}

pub async fn call(
    server: &Arc<McpServer>,
    name: &str,
    args: Value,
) -> Result<ToolOutput, ToolError> {
    let tools = tools(server);
    let tool = tools.iter().find(|tool| tool.name == name).unwrap();
    tool.call(context(), args).await
}

pub fn context() -> ToolContext {
    ToolContext {
        session: SessionId::new("s"),
        principal: Principal::local(),
        turn: TurnId::new("t1"),
        agent: AgentName::new("fixture").unwrap(),
        call: CallId::new("c1"),
        label: Label::default(),
        typed_addresses: Vec::new(),
        output_sink: ToolOutputSink::disconnected(),
        redactor: SecretRedactor::default(),
    }
}
