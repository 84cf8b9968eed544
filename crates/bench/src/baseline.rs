//! `lango-bench floor`: the same three calls written by hand, with the same prompts and tools, but
//! without checks and without a store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lango_domain::Agent;
use serde_json::{Value, json};

use crate::{Load, measure, team};

pub fn run(load: &Load, started: Instant) -> Result<()> {
    let (base_url, _server) = measure::start_model_server(load)?;
    measure::runtime(load)?.block_on(async {
        let client = Arc::new(DirectClient::new(&base_url)?);
        measure::run("by hand", load, started, move |_| {
            Arc::clone(&client).turn()
        })
        .await
    })
}

struct DirectClient {
    client: reqwest::Client,
    url: String,
    root: (String, Value),
    operator: (String, Value),
}

impl DirectClient {
    fn new(base_url: &str) -> Result<Self> {
        let tree = team::build_tree()?;
        let operator = tree.agent("operator").context("the team has no operator")?;
        let names: Vec<&str> = tree
            .specialists
            .iter()
            .map(|agent| agent.name.as_str())
            .collect();
        let transfer = json!([{ "type": "function", "function": {
            "name": "transfer_to_agent",
            "description": "Hands the work to a specialist.",
            "parameters": { "type": "object", "properties": { "agent_name": { "type": "string", "enum": names } } },
        } }]);
        Ok(Self {
            client: lango_models::http_client(Duration::from_secs(5))?,
            url: format!("{base_url}/chat/completions"),
            root: (tree.root.prompt.render(), transfer),
            operator: (operator.prompt.render(), tools_json(operator)),
        })
    }

    async fn turn(self: Arc<Self>) -> Result<()> {
        let (system, transfer) = &self.root;
        let mut messages = vec![
            json!({ "role": "system", "content": system }),
            json!({ "role": "user", "content": team::REQUEST }),
        ];
        let (_, calls) = self.ask(&messages, transfer).await?;
        let transfer_call = calls.first().context("the model did not transfer")?;
        if !transfer_call["arguments"]
            .as_str()
            .unwrap_or_default()
            .contains("operator")
        {
            bail!("the model transferred to another agent than the operator");
        }
        let (system, tools) = &self.operator;
        messages[0] = json!({ "role": "system", "content": system });
        let (_, calls) = self.ask(&messages, tools).await?;
        let call = calls.first().context("the model did not call a tool")?;
        let arguments: Value =
            serde_json::from_str(call["arguments"].as_str().unwrap_or_default())?;
        let result = format!(
            "contents of {}",
            arguments["path"].as_str().unwrap_or_default()
        );
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": call["id"], "type": "function", "function": { "name": call["name"], "arguments": call["arguments"] } }] }));
        messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": result }));
        let (text, _) = self.ask(&messages, tools).await?;
        if text.is_empty() {
            bail!("the model gave no answer")
        } else {
            Ok(())
        }
    }

    async fn ask(&self, messages: &[Value], tools: &Value) -> Result<(String, Vec<Value>)> {
        let body =
            json!({ "model": "bench", "stream": true, "tools": tools, "messages": messages });
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&body)?);
        let mut response = request.send().await?.error_for_status()?;
        let (mut text, mut calls, mut buffer) = (String::new(), Vec::<Value>::new(), Vec::new());
        while let Some(chunk) = response.chunk().await? {
            buffer.extend_from_slice(&chunk);
            while let Some(end) = buffer.windows(2).position(|window| window == b"\n\n") {
                let event: Vec<u8> = buffer.drain(..end + 2).collect();
                parse_event(std::str::from_utf8(&event)?, &mut text, &mut calls)?;
            }
        }
        Ok((text, calls))
    }
}

fn parse_event(event: &str, text: &mut String, calls: &mut Vec<Value>) -> Result<()> {
    let Some(data) = event
        .trim()
        .strip_prefix("data: ")
        .filter(|data| *data != "[DONE]")
    else {
        return Ok(());
    };
    let chunk: Value = serde_json::from_str(data)?;
    let delta = &chunk["choices"][0]["delta"];
    text.push_str(delta["content"].as_str().unwrap_or_default());
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        calls
            .push(json!({ "id": call["id"], "name": function["name"], "arguments": function["arguments"] }));
    }
    Ok(())
}

fn tools_json(agent: &Agent) -> Value {
    let tools = agent.tools.iter().map(|tool| {
        json!({ "type": "function", "function": { "name": tool.name, "description": tool.description, "parameters": tool.parameters } })
    });
    tools.collect()
}
