//! The subjects of the measurement: the tools of Lango and of its peers.

use anyhow::Result;

use super::own::Own;
use super::peer::McpPeer;
use super::processes::Memory;

pub enum Subject {
    Own(Own),
    Peer(McpPeer),
}

impl Subject {
    pub fn name(&self) -> String {
        match self {
            Self::Own(_) => "Lango".to_owned(),
            Self::Peer(peer) => peer.name(),
        }
    }

    /// Opens a page and returns what a model reads of it.
    pub async fn open(&mut self, url: &str) -> Result<String> {
        match self {
            Self::Own(own) => own.open(url).await,
            Self::Peer(peer) => peer.open(url).await,
        }
    }

    /// Clicks an element and returns the answer.
    pub async fn click(&mut self, element: &str) -> Result<String> {
        match self {
            Self::Own(own) => own.click(element).await,
            Self::Peer(peer) => peer.click(element).await,
        }
    }

    /// Returns what a model reads of the open page.
    pub async fn look(&mut self) -> Result<String> {
        match self {
            Self::Own(own) => own.look().await,
            Self::Peer(peer) => peer.look().await,
        }
    }

    /// Returns the reference of the button in a text, if it shows one.
    pub fn button(&self, text: &str) -> Option<String> {
        let line = text.lines().find(|line| line.contains("button \"Add\""))?;
        let (before, end) = match self {
            Self::Own(_) => ("[", ' '),
            Self::Peer(peer) => peer.reference_marks(),
        };
        let rest = &line[line.find(before)? + before.len()..];
        rest.split(end).next().map(str::to_owned)
    }

    pub fn memory(&self) -> Memory {
        match self {
            Self::Own(_) => Memory {
                server_mb: None,
                ..Memory::below(std::process::id())
            },
            Self::Peer(peer) => Memory::below(peer.process()),
        }
    }

    pub async fn close(self) {
        match self {
            Self::Own(own) => own.close().await,
            Self::Peer(peer) => peer.close().await,
        }
    }
}
