//! Teams and tasks for tests.

use std::num::NonZeroU64;
use std::sync::Arc;

use futures::StreamExt;
use lango_domain::Generation;
use lango_domain::event::{Principal, RemoteThread, SessionId};
use lango_domain::remote_agent::{RemoteAgent, RemotePiece, RemoteTask};
use lango_net::AddressPolicy;
use lango_remote::{RemoteAgentSettings, RemoteSettings, RemoteTeam};

use crate::server::Server;

pub fn remote(name: &str, url: &str) -> RemoteAgentSettings {
    let (name, agent_card_url) = (name.to_owned(), url.to_owned());
    RemoteAgentSettings {
        name,
        agent_card_url,
        ..RemoteAgentSettings::default()
    }
}

pub fn settings(remote_agents: Vec<RemoteAgentSettings>) -> RemoteSettings {
    RemoteSettings {
        enabled: true,
        remote_agents,
    }
}

pub async fn team(remote_agents: Vec<RemoteAgentSettings>) -> RemoteTeam {
    let team = RemoteTeam::new(
        &settings(remote_agents),
        Vec::new(),
        AddressPolicy::Public,
        Generation::default(),
    );
    team.load().await;
    team
}

/// Connects to a test server as the only remote agent.
pub async fn connect_server(server: &Server) -> (RemoteTeam, Arc<dyn RemoteAgent>) {
    connect_agent(remote("weather", &server.origin())).await
}

pub async fn connect_agent(settings: RemoteAgentSettings) -> (RemoteTeam, Arc<dyn RemoteAgent>) {
    let team = team(vec![settings]).await;
    let member = team.agents().into_iter().next();
    let agent = member
        .unwrap_or_else(|| panic!("no agent joined: {:?}", team.warnings()))
        .agent;
    (team, agent)
}

pub fn seconds(seconds: u64) -> NonZeroU64 {
    NonZeroU64::new(seconds).unwrap()
}

pub fn task(request: &str, thread: Option<RemoteThread>) -> RemoteTask {
    RemoteTask {
        session: SessionId::new("s"),
        principal: Principal::local(),
        request: request.to_owned(),
        task: None,
        thread,
    }
}

/// The result of a task.
#[derive(Debug, Default)]
pub struct TaskOutcome {
    pub text: String,
    pub pieces: usize,
    pub thread: Option<RemoteThread>,
    pub attachments: Vec<lango_domain::Attachment>,
    pub error: Option<String>,
}

pub async fn run_task(
    agent: &Arc<dyn RemoteAgent>,
    request: &str,
    thread: Option<RemoteThread>,
) -> TaskOutcome {
    let mut outcome = TaskOutcome::default();
    let mut stream = agent.stream(task(request, thread));
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(RemotePiece::Text(text)) => {
                outcome.text.push_str(&text);
                outcome.pieces += 1;
            }
            Ok(RemotePiece::Attachment(attachment)) => outcome.attachments.push(attachment),
            Ok(RemotePiece::Thread(thread)) => outcome.thread = Some(thread),
            Err(error) => outcome.error = Some(error.0),
        }
    }
    outcome
}
