//! JSON-RPC to the node that the user configured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lango_domain::secret::Secret;
use lango_net::{FetchError, json, policy_for_user_url};
use lango_text::sanitize::truncated_line;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::http::{BoundedHttp, HttpRequest};

const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_BODY: usize = 1024 * 1024;
const MAX_VALUES: usize = 20_000;

/// A failed request to the node. The texts never contain the node's address, which may contain a key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RpcError {
    #[error("the node cannot be reached: {0}")]
    Unreachable(FetchError),
    #[error("the node answered with status {0}")]
    Status(u16),
    #[error("the node's answer to {0} cannot be read")]
    Unreadable(&'static str),
    #[error("the node refused {method}: {message}")]
    Refused {
        method: &'static str,
        message: String,
        /// The data that the contract returned with a revert.
        data: Option<String>,
    },
}

/// A node. Cheap to share; the connection is made on first use.
pub(crate) struct Rpc {
    url: Secret,
    http: OnceCell<BoundedHttp>,
    next_id: AtomicU64,
    timeout: Duration,
}

#[derive(Deserialize)]
struct RpcAnswer {
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<RpcFailure>,
}

#[derive(Deserialize)]
struct RpcFailure {
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Option<Value>,
}

impl Rpc {
    pub fn new(url: Secret) -> Self {
        Self {
            url,
            http: OnceCell::new(),
            next_id: AtomicU64::new(1),
            timeout: TIMEOUT,
        }
    }

    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Calls a method. A missing result is null.
    pub async fn call(&self, method: &'static str, params: Value) -> Result<Value, RpcError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let request = HttpRequest {
            method: Method::POST,
            url: self.url.expose().to_owned(),
            headers: vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
            body: Some(body.to_string().into_bytes()),
        };
        let http = self.http().await.map_err(RpcError::Unreachable)?;
        let answer = http.send(request).await.map_err(RpcError::Unreachable)?;
        // Some nodes answer errors with another status; the body says more.
        let parsed = json::parse::<RpcAnswer>(&answer.body, MAX_VALUES);
        match parsed {
            Ok(RpcAnswer {
                error: Some(failure),
                ..
            }) => Err(refused(method, failure)),
            Ok(answered) if answer.status == 200 => Ok(answered.result.unwrap_or_default()),
            _ if answer.status != 200 => Err(RpcError::Status(answer.status)),
            _ => Err(RpcError::Unreadable(method)),
        }
    }

    async fn http(&self) -> Result<&BoundedHttp, FetchError> {
        let open = || async {
            // The user named this address, so it may be on this machine.
            let policy = policy_for_user_url(self.url.expose()).await;
            BoundedHttp::new(policy, self.timeout, MAX_BODY)
        };
        self.http.get_or_try_init(open).await
    }
}

fn refused(method: &'static str, failure: RpcFailure) -> RpcError {
    RpcError::Refused {
        method,
        message: truncated_line(&failure.message, 300),
        data: failure
            .data
            .and_then(|data| data.as_str().map(|text| truncated_line(text, 2_000))),
    }
}
