//! Lists what a server offers, within limits.

use std::collections::{BTreeMap, HashSet};

use lango_text::sanitize::truncated_line;
use rmcp::model::{PaginatedRequestParams, ServerPeerInfo};
use rmcp::{Peer, RoleClient, ServiceError};

use crate::definition::ToolDefinition;
use crate::manifest::{LeftOut, Manifest};

/// Most pages of a list.
const MAX_PAGES: usize = 64;
/// Most tools of a server; the others are left out.
const MAX_TOOLS: usize = 1_024;
const MAX_PROMPTS: usize = 256;
/// Most bytes of all definitions of a server together.
const MAX_TOTAL_BYTES: usize = 8 * 1024 * 1024;
const MAX_SHOWN_CHARS: usize = 120;

/// Lists the tools and prompts of a server. Fails if its pages do not end.
pub(crate) async fn read_manifest(
    peer: &Peer<RoleClient>,
    launch: &str,
) -> Result<Manifest, ListingError> {
    let info = peer.peer_info();
    let capabilities = info.as_ref().map(|info| info.capabilities.clone());
    let capabilities = capabilities.unwrap_or_default();
    let (tools, left_out) = match capabilities.tools {
        Some(_) => list_tools(peer).await?,
        None => (Vec::new(), Vec::new()),
    };
    let prompts = match capabilities.prompts {
        // A server without prompts that works still has its tools.
        Some(_) => list_prompts(peer).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let revision = info.as_ref().map(|info| info.protocol_version.to_string());
    Ok(Manifest {
        launch: launch.to_owned(),
        revision: revision.unwrap_or_default(),
        server: info.map(|info| server_name(&info)).unwrap_or_default(),
        tools,
        left_out,
        has_resources: capabilities.resources.is_some(),
        prompts,
    })
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ListingError {
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("its list of tools has no end")]
    Endless,
    #[error("its definitions are larger than {} MiB", MAX_TOTAL_BYTES / 1024 / 1024)]
    TooLarge,
}

async fn list_tools(
    peer: &Peer<RoleClient>,
) -> Result<(Vec<ToolDefinition>, Vec<LeftOut>), ListingError> {
    let (mut listed, mut cursors) = (Vec::new(), HashSet::new());
    let (mut cursor, mut bytes) = (None::<String>, 0);
    loop {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(params)).await?;
        for tool in page.tools {
            bytes += serde_json::to_string(&tool).map_or(0, |json| json.len());
            if bytes > MAX_TOTAL_BYTES {
                return Err(ListingError::TooLarge);
            }
            listed.push(tool);
        }
        match page.next_cursor {
            None => return Ok(sort_out(listed)),
            Some(next) if cursors.len() >= MAX_PAGES || !cursors.insert(next.clone()) => {
                return Err(ListingError::Endless);
            }
            Some(next) => cursor = Some(next),
        }
    }
}

/// Separates the tools that can be used from those that cannot.
fn sort_out(listed: Vec<rmcp::model::Tool>) -> (Vec<ToolDefinition>, Vec<LeftOut>) {
    let (mut tools, mut left_out) = (BTreeMap::new(), Vec::new());
    for tool in listed {
        let name = truncated_line(&tool.name, MAX_SHOWN_CHARS);
        let read = match ToolDefinition::read(tool) {
            Ok(tool) if tools.contains_key(&tool.name) => {
                Err("another tool has the same name".to_owned())
            }
            Ok(_) if tools.len() >= MAX_TOOLS => {
                Err(format!("the server has more than {MAX_TOOLS} tools"))
            }
            read => read,
        };
        match read {
            Ok(tool) => _ = tools.insert(tool.name.clone(), tool),
            Err(reason) => left_out.push(LeftOut { name, reason }),
        }
    }
    (tools.into_values().collect(), left_out)
}

async fn list_prompts(peer: &Peer<RoleClient>) -> Result<Vec<String>, ServiceError> {
    let page = peer.list_prompts(None).await?;
    let names = page.prompts.into_iter().map(|prompt| prompt.name);
    Ok(names.take(MAX_PROMPTS).collect())
}

fn server_name(info: &ServerPeerInfo) -> String {
    let Some(server) = &info.server_info else {
        return String::new();
    };
    truncated_line(
        &format!("{} {}", server.name, server.version),
        MAX_SHOWN_CHARS,
    )
}
