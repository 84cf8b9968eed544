//! The servers of a case: the model, pages, a search engine, a remote agent, and the attacker.

use std::net::Ipv4Addr;

use anyhow::Result;
use lango_testkit::model_server::{ModelServer, ReceivedRequest, ServerReply};
use serde_json::{Value, json};

use super::case::{FlowCase, FlowServer};
use super::obedient_model::{ObedientModel, TurnPlan};
use super::orders::Order;

pub struct Servers {
    pub addresses: ServerAddresses,
    model: ModelServer,
    attacker: ModelServer,
    pages: ModelServer,
    search: ModelServer,
    remote: ModelServer,
}

/// The names of the servers in cases.
#[derive(Clone)]
pub struct ServerAddresses {
    pages: String,
    attacker_port: u16,
}

impl ServerAddresses {
    /// Replaces the server names in `text` by addresses.
    pub fn fill(&self, text: &str) -> String {
        let port = self.attacker_port;
        text.replace("$PAGES", &self.pages)
            .replace("$ATTACKER_PORT", &port.to_string())
            .replace("$ATTACKER", &format!("http://localhost:{port}"))
    }
}

impl Servers {
    pub fn start(case: &FlowCase) -> Result<Self> {
        // Listens on every address of this machine: an address can leak data, too.
        let thanks = |_: &ReceivedRequest, _| ServerReply::page("text/plain", "thanks".to_owned());
        let attacker = ModelServer::with_responder_at(Ipv4Addr::UNSPECIFIED, thanks)?;
        let (known, attacker_port) = (case.clone(), attacker.port());
        let pages = ModelServer::with_responder(move |seen, _| {
            // Pages link to each other; the request has the address.
            let names = ServerAddresses {
                pages: format!("http://{}", host(seen)),
                attacker_port,
            };
            serve_page(&known, seen, &names)
        })?;
        let names = ServerAddresses {
            pages: pages.origin(),
            attacker_port,
        };
        let found = search_results(case, &names);
        let search = ModelServer::with_responder(move |_, _| {
            ServerReply::page("application/json", found.clone())
        })?;
        let said = names.fill(case.remote.as_deref().unwrap_or_default());
        let remote = ModelServer::with_responder(move |seen, _| serve_remote_agent(seen, &said))?;
        let obeying = obedient_model(case, &names);
        let model = ModelServer::with_responder(move |seen, _| obeying.reply(seen))?;
        Ok(Self {
            addresses: names,
            model,
            attacker,
            pages,
            search,
            remote,
        })
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

    /// Returns true if a server received a request with this text, in any escaping.
    pub fn has_received(&self, place: FlowServer, words: &str) -> bool {
        let server = match place {
            FlowServer::Attacker => &self.attacker,
            FlowServer::Pages => &self.pages,
            FlowServer::Search => &self.search,
            FlowServer::Remote => &self.remote,
        };
        let tells = |seen: &ReceivedRequest| {
            let text = format!(
                "{}\n{}",
                percent_decode(&seen.head),
                String::from_utf8_lossy(&seen.body)
            );
            !seen.target().starts_with("/.well-known/") && text.contains(words)
        };
        server.requests().iter().any(tells)
    }
}

fn obedient_model(case: &FlowCase, names: &ServerAddresses) -> ObedientModel {
    let plan = |turn: &super::case::CaseTurn| {
        let orders = turn
            .plan
            .iter()
            .filter_map(|line| Order::parse_planned(&names.fill(line)))
            .collect();
        TurnPlan {
            request: names.fill(&turn.request),
            orders,
        }
    };
    ObedientModel {
        plans: case.turn.iter().map(plan).collect(),
    }
}

fn serve_page(case: &FlowCase, seen: &ReceivedRequest, names: &ServerAddresses) -> ServerReply {
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

fn search_results(case: &FlowCase, names: &ServerAddresses) -> String {
    let hit = |hit: &super::case::CaseSearchHit| json!({ "title": names.fill(&hit.title), "url": names.fill(&hit.url), "content": names.fill(&hit.content) });
    json!({ "results": case.results.iter().map(hit).collect::<Vec<Value>>() }).to_string()
}

/// An A2A agent that gives every caller the same answer.
fn serve_remote_agent(seen: &ReceivedRequest, said: &str) -> ServerReply {
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
    host.map(|(_, host)| host.trim().to_owned())
        .unwrap_or_default()
}

/// Decodes percent signs, and plus signs as spaces.
fn percent_decode(text: &str) -> String {
    let bytes = text.replace('+', " ").into_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = bytes
            .get(at + 1..at + 3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match digits
            .filter(|_| bytes[at] == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
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
