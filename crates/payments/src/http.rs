//! Bounded HTTP requests. Redirects are not followed: what is signed for one address is not shown to another.

use std::time::Duration;

use lango_net::{AddressPolicy, FetchError, body, check_url, guarded_client_builder, parse_url};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method};

/// A client with limits on time and size.
#[derive(Clone, Debug)]
pub(crate) struct BoundedHttp {
    client: Client,
    policy: AddressPolicy,
    total: Duration,
    max_body: usize,
}

pub(crate) struct HttpRequest {
    pub method: Method,
    pub url: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub(crate) struct HttpAnswer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// Returns a header as text, if it is text and not too long.
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name)?.to_str().ok()?;
        (value.len() <= MAX_HEADER).then_some(value)
    }
}

/// The longest header that is read, in bytes.
const MAX_HEADER: usize = 32 * 1024;
const CONNECT: Duration = Duration::from_secs(5);

impl BoundedHttp {
    pub fn new(
        policy: AddressPolicy,
        total: Duration,
        max_body: usize,
    ) -> Result<Self, FetchError> {
        let client = guarded_client_builder(CONNECT, policy)
            .build()
            .map_err(|error| FetchError::Setup(error.to_string()))?;
        Ok(Self {
            client,
            policy,
            total,
            max_body,
        })
    }

    pub async fn send(&self, request: HttpRequest) -> Result<HttpAnswer, FetchError> {
        tokio::time::timeout(self.total, self.send_without_limit(request))
            .await
            .map_err(|_late| FetchError::TimedOut(self.total))?
    }

    async fn send_without_limit(&self, request: HttpRequest) -> Result<HttpAnswer, FetchError> {
        let url = parse_url(&request.url)?;
        check_url(&url, self.policy)?;
        let mut builder = self.client.request(request.method, url);
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        if let Some(body) = request.body {
            builder = builder.body(body);
        }
        let response = builder
            .send()
            .await
            .map_err(|error| FetchError::from_reqwest(&error))?;
        Ok(HttpAnswer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: body::read(response, self.max_body).await?,
        })
    }
}
