//! Providers that never stop, over loopback: each reply ends with what was too much, and little of it was ever read.

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

/// What sockets and buffers between the server and the reader hold.
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
        price: None,
    }
}

/// Reads until the reply ends; how much text came, and why it ended.
async fn read_to_error(model: &dyn Model) -> (usize, ModelError) {
    let mut fragments = model.stream(request());
    let mut text = 0;
    while let Some(fragment) = fragments.next().await {
        match fragment {
            Ok(Fragment::Text(more)) => text += more.len(),
            Ok(Fragment::Done) => panic!("what has no end is not whole"),
            Ok(_) => {}
            Err(error) => {
                assert!(
                    fragments.next().await.is_none(),
                    "nothing comes behind an error"
                );
                return (text, error);
            }
        }
    }
    panic!("it ended without an error")
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
    let most = if endless.excess == Some(Excess::Wire) {
        MAX_WIRE_BYTES
    } else {
        MAX_BODY_BYTES
    };
    let sent = server.endless_bytes();
    assert!(
        sent <= (most + IN_FLIGHT_BYTES) as u64,
        "{provider}: {name}: {sent} bytes were read"
    );
}

/// B105
#[tokio::test(flavor = "multi_thread")]
async fn no_reply_of_openai_is_endless() {
    for endless in endless::replies("openai") {
        assert_bounded(Dialect::OpenAi, "openai", endless).await;
    }
}

/// B105
#[tokio::test(flavor = "multi_thread")]
async fn no_reply_of_anthropic_is_endless() {
    for endless in endless::replies("anthropic") {
        assert_bounded(Dialect::Anthropic, "anthropic", endless).await;
    }
}

/// B105
#[tokio::test(flavor = "multi_thread")]
async fn no_reply_of_gemini_is_endless() {
    for endless in endless::replies("gemini") {
        assert_bounded(Dialect::Gemini, "gemini", endless).await;
    }
}

/// B105: a reply that is too long is not asked for again, of the same model or of another one.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_reply_is_asked_for_once() {
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
    let of = |server| {
        (
            Arc::new(model(Dialect::OpenAi, "openai", server)) as Arc<dyn Model>,
            policy.clone(),
        )
    };
    let both = FallbackModel {
        models: vec![of(&first), of(&second)],
    };
    assert_eq!(
        read_to_error(&both).await,
        (0, ModelError::TooLarge(Excess::Calls))
    );
    assert_eq!((first.requests().len(), second.requests().len()), (1, 0));
}

/// B105: many small pieces that come together are handed on as one.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_together_is_handed_on_together() {
    let deltas = vec![serde_json::json!({ "content": "x" }); 10_000];
    let server = ModelServer::start(vec![ServerReply::chunks(&deltas, "stop")]).unwrap();
    let fragments = model(Dialect::OpenAi, "openai", &server).stream(request());
    let fragments: Vec<Fragment> = fragments.map(Result::unwrap).collect().await;
    let text: String = fragments.iter().filter_map(fragment_text).collect();
    assert_eq!(text, "x".repeat(10_000));
    assert!(fragments.len() < 5_000, "{} pieces", fragments.len());
}

fn fragment_text(fragment: &Fragment) -> Option<&str> {
    match fragment {
        Fragment::Text(text) => Some(text),
        _ => None,
    }
}
