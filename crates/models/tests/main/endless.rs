//! Endless replies over loopback: each one ends with the exceeded limit, and little of it is read.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use lango_domain::model::{Fragment, Model, ModelError};
use lango_domain::reply_limits::{Excess, MAX_BODY_BYTES, MAX_TEXT_BYTES, MAX_WIRE_BYTES};
use lango_models::{
    Dialect, FallbackModel, HttpModel, ModelEndpoint, RetryPolicy, Timeouts, http_client,
};
use lango_testkit::endless::{self, EndlessReply};
use lango_testkit::model_server::{ModelServer, ServerReply};

use crate::setup::{endpoint, request};

/// Capacity of the sockets and buffers between server and reader.
const IN_FLIGHT_BYTES: usize = 16 * 1024 * 1024;

fn model(dialect: Dialect, provider: &str, server: &ModelServer) -> HttpModel {
    let minute = Duration::from_secs(60);
    HttpModel {
        client: http_client(minute).unwrap(),
        dialect,
        endpoint: ModelEndpoint {
            base_url: server.base_url(),
            ..endpoint(provider)
        },
        timeouts: Timeouts {
            connect: minute,
            first_byte: minute,
            idle: minute,
        },
        window: 100_000,
        readable: lango_domain::ReadableKinds::NONE,
        price: None,
    }
}

/// Reads until the reply ends; returns the length of the text and the error.
async fn read_to_error(model: &dyn Model) -> (usize, ModelError) {
    let mut fragments = model.stream(request());
    let mut text = 0;
    while let Some(fragment) = fragments.next().await {
        match fragment {
            Ok(Fragment::Text(more)) => text += more.len(),
            Ok(Fragment::Done) => panic!("an endless reply was complete"),
            Ok(_) => {}
            Err(error) => {
                assert!(
                    fragments.next().await.is_none(),
                    "a fragment after an error"
                );
                return (text, error);
            }
        }
    }
    panic!("the reply ended without an error")
}

async fn assert_bounded(dialect: Dialect, provider: &str, endless: EndlessReply) {
    let name = endless.name;
    let server = ModelServer::start(vec![ServerReply::Endless(endless)]).unwrap();
    let (text, error) = read_to_error(&model(dialect, provider, &server)).await;
    match endless.excess {
        Some(excess) => assert_eq!(error, ModelError::TooLarge(excess), "{provider}: {name}"),
        None => assert_eq!(
            error,
            ModelError::Busy { retry_after: None },
            "{provider}: {name}"
        ),
    }
    assert!(
        text <= MAX_TEXT_BYTES,
        "{provider}: {name}: {text} bytes of text"
    );
    let limit = if endless.excess == Some(Excess::Wire) {
        MAX_WIRE_BYTES
    } else {
        MAX_BODY_BYTES
    };
    let sent = server.endless_bytes();
    assert!(
        sent <= (limit + IN_FLIGHT_BYTES) as u64,
        "{provider}: {name}: {sent} bytes were read"
    );
}

/// B105
#[tokio::test(flavor = "multi_thread")]
async fn openai_replies_are_bounded() {
    for endless in endless::replies("openai") {
        assert_bounded(Dialect::OpenAi, "openai", endless).await;
    }
}

/// B105
#[tokio::test(flavor = "multi_thread")]
async fn anthropic_replies_are_bounded() {
    for endless in endless::replies("anthropic") {
        assert_bounded(Dialect::Anthropic, "anthropic", endless).await;
    }
}

/// B105
#[tokio::test(flavor = "multi_thread")]
async fn gemini_replies_are_bounded() {
    for endless in endless::replies("gemini") {
        assert_bounded(Dialect::Gemini, "gemini", endless).await;
    }
}

/// B105: a reply that is too long is not requested again, neither from the same model nor from
/// another one.
#[tokio::test(flavor = "multi_thread")]
async fn endless_replies_are_not_retried() {
    let endless = endless::replies("openai")
        .into_iter()
        .find(|endless| endless.name == "calls")
        .unwrap();
    let server = || ModelServer::start(vec![ServerReply::Endless(endless)]).unwrap();
    let (first, second) = (server(), server());
    let policy = RetryPolicy {
        retries: 3,
        delay: Duration::ZERO,
        jitter: Arc::new(|| 0.0),
    };
    let with_policy = |server| {
        (
            Arc::new(model(Dialect::OpenAi, "openai", server)) as Arc<dyn Model>,
            policy.clone(),
        )
    };
    let both = FallbackModel {
        models: vec![with_policy(&first), with_policy(&second)],
    };
    assert_eq!(
        read_to_error(&both).await,
        (0, ModelError::TooLarge(Excess::Calls))
    );
    assert_eq!((first.requests().len(), second.requests().len()), (1, 0));
}

/// B105: many small deltas that arrive together are merged.
#[tokio::test(flavor = "multi_thread")]
async fn deltas_that_arrive_together_are_merged() {
    let deltas = vec![serde_json::json!({ "content": "x" }); 10_000];
    let server = ModelServer::start(vec![ServerReply::chunks(&deltas, "stop")]).unwrap();
    let fragments = model(Dialect::OpenAi, "openai", &server).stream(request());
    let fragments: Vec<Fragment> = fragments.map(Result::unwrap).collect().await;
    let text: String = fragments.iter().filter_map(fragment_text).collect();
    assert_eq!(text, "x".repeat(10_000));
    assert!(fragments.len() < 5_000, "{} fragments", fragments.len());
}

fn fragment_text(fragment: &Fragment) -> Option<&str> {
    match fragment {
        Fragment::Text(text) => Some(text),
        _ => None,
    }
}
