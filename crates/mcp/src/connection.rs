//! One connection to a server.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use http::{HeaderName, HeaderValue};
use lango_domain::ToolOutputSink;
use lango_domain::secret::Secret;
use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientServiceExt, RoleClient, ServiceError};

use crate::bounded_lines::MAX_MESSAGE_BYTES;
use crate::client_side::ClientSide;
use crate::launch::{LaunchEnvironment, ProcessLife, ProgramAddress, ServerAddress};
use crate::listing::{ListingError, read_manifest};
use crate::manifest::Manifest;

pub(crate) struct Connection {
    service: RunningService<RoleClient, ClientSide>,
    side: ClientSide,
    /// The program, if Lango started it. It ends with the connection.
    life: Option<ProcessLife>,
}

impl Connection {
    /// Connects to a server. `revision` is the one that it used before.
    pub async fn open(
        address: &ServerAddress,
        (environment, log): (&LaunchEnvironment, &Path),
        revision: Option<&str>,
    ) -> Result<Self, String> {
        let side = ClientSide::default();
        let mode = lifecycle(revision);
        match address {
            ServerAddress::Program(program) => {
                Self::start(program, (environment, log), side, mode).await
            }
            ServerAddress::Url {
                url,
                token,
                headers,
            } => {
                let config = http_config(url, token.as_ref(), headers)?;
                lango_net::install_tls();
                let client = reqwest::Client::builder()
                    // A redirect would send the token to another host.
                    .redirect(reqwest::redirect::Policy::none())
                    .build()
                    .map_err(|error| error.to_string())?;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = side.clone().serve_with_lifecycle(transport, mode).await;
                Ok(Self {
                    service: service.map_err(|error| connect_error(&error))?,
                    side,
                    life: None,
                })
            }
        }
    }

    async fn start(
        program: &ProgramAddress,
        (environment, log): (&LaunchEnvironment, &Path),
        side: ClientSide,
        mode: ClientLifecycleMode,
    ) -> Result<Self, String> {
        let process = program.start(environment, log).await?;
        let transport = (process.output, process.input);
        let service = side.clone().serve_with_lifecycle(transport, mode).await;
        let life = process.life;
        match service {
            Ok(service) => Ok(Self {
                service,
                side,
                life: Some(life),
            }),
            Err(error) => Err(match life.wait_for_end().await {
                Some(reason) => reason,
                None => connect_error(&error),
            }),
        }
    }

    /// Returns the reason why the connection cannot be used any more.
    pub fn end(&self) -> Option<String> {
        let end = self.life.as_ref().and_then(ProcessLife::end);
        let closed = || {
            self.service
                .is_closed()
                .then(|| "it closed the connection".to_owned())
        };
        end.or_else(closed)
    }

    /// Returns the reason why a connection broke, once it has.
    pub async fn broken_reason(&self) -> String {
        let end = match &self.life {
            Some(life) => life.wait_for_end().await,
            None => None,
        };
        end.unwrap_or_else(|| "it closed the connection".to_owned())
    }

    pub async fn manifest(&self, launch: &str) -> Result<Manifest, ListingError> {
        read_manifest(self.service.peer(), launch).await
    }

    /// Returns true once after the server has announced other tools.
    pub fn has_other_tools(&self) -> bool {
        self.side.take_stale()
    }

    /// Calls a tool. Dropping the future cancels the call.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        sink: ToolOutputSink,
    ) -> Result<CallToolResult, ServiceError> {
        let _progress = self.side.show_progress(sink);
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.service.call_tool(params).await
    }
}

/// Asks for the revision that the server used before, or else finds out.
fn lifecycle(revision: Option<&str>) -> ClientLifecycleMode {
    let modern = || vec![ProtocolVersion::V_2026_07_28];
    match revision {
        Some(revision) if revision < ProtocolVersion::NO_INITIALIZE.as_str() => {
            ClientLifecycleMode::Initialize
        }
        Some(_) => ClientLifecycleMode::Discover {
            preferred_versions: modern(),
        },
        None => ClientLifecycleMode::Auto {
            preferred_versions: modern(),
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

fn connect_error(error: &ClientInitializeError) -> String {
    if error.is_authorization_required() {
        return "it needs a token; set `token` or `headers`".to_owned();
    }
    lango_text::sanitize::truncated_line(&error.to_string(), 300)
}

fn http_config(
    url: &url::Url,
    token: Option<&Secret>,
    headers: &BTreeMap<String, Secret>,
) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let invalid = |_| format!("`headers`: `{name}` is not a valid header");
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(()))?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| invalid(()))?;
        value.set_sensitive(true);
        custom.insert(header, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(custom)
        .max_sse_event_size(MAX_MESSAGE_BYTES);
    if let Some(token) = token {
        config = config.auth_header(token.expose());
    }
    Ok(config)
}
