//! Retries and fallback. Both apply only until the first fragment of a reply arrives.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use lango_domain::model::{Fragment, Message, Model, ModelError, ModelRequest};
use lango_domain::{Content, ReadableKinds};

/// The longest wait before a retry. A provider that asks for more is not retried.
const MAX_WAIT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub struct RetryPolicy {
    pub retries: u32,
    /// Delay before the first retry; doubled for each further one.
    pub delay: Duration,
    /// Returns a random number from 0 to 1, so that clients do not retry at the same time.
    pub jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

/// Models, tried in order until one replies.
pub struct FallbackModel {
    pub models: Vec<(Arc<dyn Model>, RetryPolicy)>,
}

impl Model for FallbackModel {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<Fragment, ModelError>> {
        let models = self.models.clone();
        stream::once(async move { try_models(models, request).await })
            .flatten()
            .boxed()
    }

    fn window(&self) -> usize {
        self.models
            .iter()
            .map(|(model, _)| model.window())
            .min()
            .unwrap_or(0)
    }

    /// Those of the first model. If another one takes over and rejects them, it gets a text instead.
    fn readable_kinds(&self) -> ReadableKinds {
        let first = self.models.first();
        first.map_or(ReadableKinds::NONE, |(model, _)| model.readable_kinds())
    }
}

type FragmentStream = BoxStream<'static, Result<Fragment, ModelError>>;

async fn try_models(
    models: Vec<(Arc<dyn Model>, RetryPolicy)>,
    request: ModelRequest,
) -> FragmentStream {
    let mut request = request;
    let mut last = ModelError::Connection("no model is configured".to_owned());
    for (model, policy) in models {
        let mut result = with_retries(model.as_ref(), &policy, &request).await;
        if let Err(error @ ModelError::Rejected(_)) = &result
            && replace_attachments(&mut request)
        {
            tracing::warn!(%error, "the provider rejected the attachments; retrying without them");
            result = with_retries(model.as_ref(), &policy, &request).await;
        }
        match result {
            Ok(fragments) => return fragments,
            Err(error) if should_fall_back(&error) => last = error,
            Err(error) => return single_error(error),
        }
    }
    single_error(last)
}

/// Replaces all attachments by a text that says so. Returns false if there are none.
fn replace_attachments(request: &mut ModelRequest) -> bool {
    let mut is_changed = false;
    let mut replace = |content: &mut Content| {
        if !content.attachments.is_empty() {
            is_changed = true;
            *content = content.replace_attachments(|attachment| {
                let placeholder = attachment.placeholder();
                let description = placeholder.trim_end_matches(']');
                Some(format!("{description}; the provider does not accept it]"))
            });
        }
    };
    for message in &mut request.messages {
        match message {
            Message::User(content) => replace(content),
            Message::Assistant { .. } => {}
            Message::Results(results) => {
                let contents = results.iter_mut().map(|result| &mut result.content);
                contents.for_each(&mut replace);
            }
        }
    }
    is_changed
}

async fn with_retries(
    model: &dyn Model,
    policy: &RetryPolicy,
    request: &ModelRequest,
) -> Result<FragmentStream, ModelError> {
    let mut attempt = 0;
    loop {
        let mut fragments = model.stream(request.clone());
        let error = match fragments.next().await {
            Some(Err(error)) => error,
            Some(Ok(first)) => {
                return Ok(stream::once(async { Ok(first) }).chain(fragments).boxed());
            }
            None => ModelError::BrokeOff,
        };
        match wait_before_retry(&error, policy, attempt) {
            Some(wait) => {
                tracing::info!(%error, attempt, wait_ms = wait.as_millis(), "retrying the model");
                tokio::time::sleep(wait).await;
            }
            None => return Err(error),
        }
        attempt += 1;
    }
}

/// Returns the delay before the next attempt, or none if the error is not retried.
fn wait_before_retry(error: &ModelError, policy: &RetryPolicy, attempt: u32) -> Option<Duration> {
    if attempt >= policy.retries {
        return None;
    }
    let backoff = policy
        .delay
        .saturating_mul(1 << attempt.min(16))
        .mul_f64(0.5 + (policy.jitter)().clamp(0.0, 1.0) / 2.0);
    match error {
        ModelError::Busy {
            retry_after: Some(requested),
        } => (*requested <= MAX_WAIT).then(|| backoff.max(*requested)),
        ModelError::Busy { retry_after: None }
        | ModelError::Connection(_)
        | ModelError::BrokeOff => Some(backoff.min(MAX_WAIT)),
        _ => None,
    }
}

/// Returns true if another model may succeed. Errors of the request itself fail everywhere, and a
/// request that leads to an endless reply is not sent to one model after the other.
fn should_fall_back(error: &ModelError) -> bool {
    !matches!(
        error,
        ModelError::TooLong | ModelError::TooLarge(_) | ModelError::Refused(_)
    )
}

fn single_error(error: ModelError) -> FragmentStream {
    stream::once(async { Err(error) }).boxed()
}
