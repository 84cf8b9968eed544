//! An agent and a client made with the official Rust crates.
//!
//! `serve PORT JSONRPC|HTTP+JSON` behaves as the Python and JavaScript agents do; `ask URL TOKEN BINDING TEXT…` sends each
//! text as one message of the same context and prints what it saw, one JSON object a line.

use std::error::Error;
use std::sync::Arc;

use a2a::{A2AError, AgentCard, Message, Part, SendMessageRequest, StreamResponse};
use a2a_client::A2AClientFactory;
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::auth::AuthInterceptor;
use a2a_server::agent_card::agent_card_router;
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::rest::rest_router;
use a2a_server::{AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore, StaticAgentCard};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The crates leave it to us who does the cryptography, and want to know it even where there is none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["server", port, binding] => serve(port.parse()?, binding).await,
        ["client", url, token, binding, texts @ ..] => ask(url, token, binding, texts).await,
        _ => Err("server PORT BINDING | client URL TOKEN BINDING TEXT…".into()),
    }
}

async fn serve(port: u16, binding: &str) -> Result<(), Box<dyn Error>> {
    let handler = Arc::new(DefaultRequestHandler::new(Words, InMemoryTaskStore::new()));
    let card: AgentCard = serde_json::from_value(json!({
        "name": "Rusty parrot",
        "description": "Repeats what it is told, word for word.",
        "version": "1.0.0",
        "supportedInterfaces": [
            { "url": format!("http://127.0.0.1:{port}/a2a"), "protocolBinding": binding, "protocolVersion": "1.0" }
        ],
        "capabilities": { "streaming": true },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "repeat", "name": "Repeat", "description": "Repeats words.", "tags": ["repeat"] }],
    }))?;
    let door = if binding == "JSONRPC" { jsonrpc_router(handler) } else { rest_router(handler) };
    let app = agent_card_router(Arc::new(StaticAgentCard::new(card))).nest("/a2a", door);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    Ok(axum::serve(listener, app).await?)
}

struct Words;

impl AgentExecutor for Words {
    fn execute(&self, context: ExecutorContext) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        let events = events_of(&context).into_iter().map(|event| {
            serde_json::from_value(event).map_err(|error| A2AError::internal(error.to_string()))
        });
        stream::iter(events.collect::<Vec<_>>()).boxed()
    }

    fn cancel(&self, _context: ExecutorContext) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        stream::empty().boxed()
    }
}

fn events_of(context: &ExecutorContext) -> Vec<Value> {
    let words: String =
        context.message.iter().flat_map(|message| message.parts.iter().filter_map(Part::as_text)).collect();
    let (task, context_id) = context.task_info();
    let status = |state: &str, said: Option<&str>| {
        let mut status = json!({ "state": state });
        if let Some(text) = said {
            status["message"] =
                json!({ "messageId": id(), "role": "ROLE_AGENT", "parts": [{ "text": text }] });
        }
        json!({ "statusUpdate": { "taskId": task, "contextId": context_id, "status": status } })
    };
    let artifact = |text: String| {
        let artifact = json!({ "artifactId": "words", "parts": [{ "text": text }] });
        json!({ "artifactUpdate": { "taskId": task, "contextId": context_id, "artifact": artifact } })
    };
    let working = status("TASK_STATE_WORKING", None);
    let done = status("TASK_STATE_COMPLETED", None);
    if context.stored_task.is_some() {
        return vec![working, artifact(format!("you chose {words}")), done];
    }
    let submitted = json!({ "state": "TASK_STATE_SUBMITTED" });
    let task = json!({ "task": { "id": task, "contextId": context_id, "status": submitted } });
    if words.contains("ask me") {
        vec![task, working, status("TASK_STATE_INPUT_REQUIRED", Some("Which colour?"))]
    } else if words.contains("fail") {
        vec![task, working, status("TASK_STATE_FAILED", Some("the kettle is broken"))]
    } else {
        vec![task, working, artifact(format!("You said: {words}")), done]
    }
}

async fn ask(url: &str, token: &str, binding: &str, texts: &[&str]) -> Result<(), Box<dyn Error>> {
    let card = AgentCardResolver::new(None).resolve(url).await?;
    let factory = A2AClientFactory::builder()
        .preferred_bindings(vec![binding.to_owned()])
        .with_interceptor(Arc::new(AuthInterceptor::bearer(token)))
        .build();
    let client = factory.create_from_card(&card).await?;
    let (mut context, mut task) = (None, None);
    for text in texts {
        let message: Message = serde_json::from_value(json!({
            "messageId": id(), "role": "ROLE_USER", "parts": [{ "text": text }], "contextId": context, "taskId": task,
        }))?;
        let request: SendMessageRequest = serde_json::from_value(json!({ "message": message }))?;
        let events: Vec<StreamResponse> =
            client.send_streaming_message(&request).await?.try_collect().await?;
        let (mut states, mut words) = (Vec::new(), Vec::new());
        for event in &events {
            let event = serde_json::to_value(event)?;
            let inner =
                event.as_object().and_then(|event| event.values().next()).cloned().unwrap_or_default();
            context = inner["contextId"].as_str().map(str::to_owned).or(context);
            if let Some(state) = inner["status"]["state"].as_str() {
                states.push(state.to_owned());
                task = inner["taskId"].as_str().or(inner["id"].as_str()).map(str::to_owned);
            }
            words.extend(texts_in(&inner["artifact"]["parts"]));
            words.extend(texts_in(&inner["status"]["message"]["parts"]));
        }
        if states.last().is_none_or(|state| state != "TASK_STATE_INPUT_REQUIRED") {
            task = None;
        }
        println!("{}", json!({ "states": states, "words": words }));
    }
    Ok(())
}

fn texts_in(parts: &Value) -> Vec<String> {
    let parts = parts.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).map(str::to_owned).collect()
}

fn id() -> String {
    uuid::Uuid::new_v4().to_string()
}
