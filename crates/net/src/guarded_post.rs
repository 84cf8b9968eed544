//! Posts JSON to untrusted URLs.

use reqwest::header::CONTENT_TYPE;

use crate::guarded_client::{FetchError, GuardedClient, check_url, parse_url};

/// A JSON document and where to post it.
#[derive(Clone, Debug)]
pub struct JsonPost<'a> {
    pub url: &'a str,
    /// Headers in addition to the content type.
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl GuardedClient {
    /// Posts a document and returns the status of the response. Follows no redirect and reads no
    /// response body, so neither can lead to a private address or take memory.
    pub async fn post_json(&self, post: JsonPost<'_>) -> Result<u16, FetchError> {
        let total = self.limits().total;
        tokio::time::timeout(total, self.post_without_limit(post))
            .await
            .map_err(|_late| FetchError::TimedOut(total))?
    }

    async fn post_without_limit(&self, post: JsonPost<'_>) -> Result<u16, FetchError> {
        let url = parse_url(post.url)?;
        check_url(&url, self.policy())?;
        let mut request = self
            .client()?
            .post(url)
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in post.headers {
            request = request.header(name, value);
        }
        let response = request
            .body(post.body)
            .send()
            .await
            .map_err(|error| FetchError::from_reqwest(&error))?;
        Ok(response.status().as_u16())
    }
}
