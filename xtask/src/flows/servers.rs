//! Who is on the network: the model, pages, a search engine, an agent elsewhere, and the attacker.

use std::net::Ipv4Addr;

use anyhow::Result;
use lango_testkit::model_server::{ModelServer, ServerReply, ReceivedRequest};
use serde_json::{Value, json};

use super::case::{Case, Place};
use super::obeying::{Obeying, Plan};
use super::orders::Order;

pub struct Servers {
    pub names: Names,
    model: ModelServer,
    attacker: ModelServer,
    pages: ModelServer,
    search: ModelServer,
    remote: ModelServer,
}

/// What cases call the servers by.
#[derive(Clone)]
pub struct Names {
    pages: String,
    attacker_port: u16,
}

impl Names {
    /// The text with addresses in the place of names.
    pub fn fill(&self, text: &str) -> String {
        let port = self.attacker_port;
        text.replace("$PAGES", &self.pages)
            .replace("$ATTACKER_PORT", &port.to_string())
            .replace("$ATTACKER", &format!("http://localhost:{port}"))
    }
}

impl Servers {
    pub fn start(case: &Case) -> Result<Self> {
        // At every address of this machine: an address can tell something, too.
        let thanks = |_: &ReceivedRequest, _| ServerReply::page("text/plain", "thanks".to_owned());
        let attacker = ModelServer::deciding_at(Ipv4Addr::UNSPECIFIED, thanks)?;
        let (known, attacker_port) = (case.clone(), attacker.port());
        let pages = ModelServer::with_responder(move |seen, _| {
            // Pages name each other; where they are is in the request.
            let names = Names { pages: format!("http://{}", host(seen)), attacker_port };
            page(&known, seen, &names)
        })?;
        let names = Names { pages: pages.origin(), attacker_port };
        let found = found(case, &names);
        let search = ModelServer::with_responder(move |_, _| ServerReply::page("application/json", found.clone()))?;
        let said = names.fill(case.remote.as_deref().unwrap_or_default());
        let remote = ModelServer::with_responder(move |seen, _| colleague(seen, &said))?;
        let obeying = obeying(case, &names);
        let model = ModelServer::with_responder(move |seen, _| obeying.reply(seen))?;
        Ok(Self { names, model, attacker, pages, search, remote })
    }

    pub fn model_url(&self) -> String {
        self.model.base_url()
    }

    pub fn search_url(&self) -> String {
        self.search.origin()
    }

    pub fn remote_url(&self) -> String {
        self.remote.origin()
    }

    /// Whether a server got a request with these words in it, however they are escaped.
    pub fn saw(&self, place: Place, words: &str) -> bool {
        let server = match place {
            Place::Attacker => &self.attacker,
            Place::Pages => &self.pages,
            Place::Search => &self.search,
            Place::Remote => &self.remote,
        };
        let tells = |seen: &ReceivedRequest| {
            let text = format!("{}\n{}", unescaped(&seen.head), String::from_utf8_lossy(&seen.body));
            !seen.target().starts_with("/.well-known/") && text.contains(words)
        };
        server.requests().iter().any(tells)
    }
}

fn obeying(case: &Case, names: &Names) -> Obeying {
    let plan = |turn: &super::case::Turn| {
        let orders = turn.plan.iter().filter_map(|line| Order::planned(&names.fill(line))).collect();
        Plan { request: names.fill(&turn.request), orders }
    };
    Obeying { plans: case.turn.iter().map(plan).collect() }
}

fn page(case: &Case, seen: &ReceivedRequest, names: &Names) -> ServerReply {
    let path = seen.target().split(['?', '#']).next().unwrap_or_default();
    if let Some(to) = case.redirects.get(path) {
        return ServerReply::redirect(names.fill(to));
    }
    match case.pages.get(path) {
        Some(text) if text.starts_with('<') => ServerReply::page("text/html", names.fill(text)),
        Some(text) => ServerReply::page("text/plain", names.fill(text)),
        None => ServerReply::status(404, "there is no such page"),
    }
}

fn found(case: &Case, names: &Names) -> String {
    let hit = |hit: &super::case::Hit| json!({ "title": names.fill(&hit.title), "url": names.fill(&hit.url), "content": names.fill(&hit.content) });
    json!({ "results": case.results.iter().map(hit).collect::<Vec<Value>>() }).to_string()
}

/// An agent that speaks A2A and says the same to everyone.
fn colleague(seen: &ReceivedRequest, said: &str) -> ServerReply {
    let body = if seen.target().starts_with("/.well-known/") {
        json!({
            "name": "Weather", "description": "Knows the weather.", "version": "1",
            "supportedInterfaces": [{
                "url": format!("http://{}/a2a", host(seen)), "protocolBinding": "JSONRPC", "protocolVersion": "1.0",
            }],
            "capabilities": { "streaming": false },
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{ "id": "forecast", "name": "Forecast", "description": "Tells it.", "tags": ["weather"] }],
        })
    } else {
        let task = json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" },
            "artifacts": [{ "artifactId": "a", "parts": [{ "text": said }] }] });
        json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "result": { "task": task } })
    };
    ServerReply::page("application/json", body.to_string())
}

fn host(seen: &ReceivedRequest) -> String {
    let mut lines = seen.head.lines().filter_map(|line| line.split_once(':'));
    let host = lines.find(|(name, _)| name.eq_ignore_ascii_case("host"));
    host.map(|(_, host)| host.trim().to_owned()).unwrap_or_default()
}

/// What percent signs stand for; plus signs stand for spaces.
fn unescaped(text: &str) -> String {
    let bytes = text.replace('+', " ").into_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| bytes[at] == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}
