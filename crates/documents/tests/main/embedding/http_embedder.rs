use std::time::Duration;

use lango_documents::embedding::{EmbedError, EmbedPurpose, EmbeddingSettings, connect};
use lango_domain::secret::Secret;

use super::embedder_deps;
use super::server::{ok_response, raw_response, serve};

const KEY: &str = "sk-very-secret-key";

fn settings(provider: &str, address: &str) -> EmbeddingSettings {
    let settings = serde_json::json!({ "provider": provider, "baseUrl": address, "retries": 2, "retryDelayMs": 1 });
    let settings: EmbeddingSettings = serde_json::from_value(settings).unwrap();
    EmbeddingSettings {
        api_key: Some(Secret::new(KEY)),
        ..settings
    }
}

async fn embed(settings: &EmbeddingSettings, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    connect(settings, embedder_deps())
        .unwrap()
        .unwrap()
        .embed(texts, EmbedPurpose::Passage)
        .await
}

/// Returns the result of embedding one text with this response, without retries.
async fn outcome(raw: Vec<u8>) -> Result<Vec<Vec<f32>>, EmbedError> {
    let (address, _requests) = serve(vec![raw]);
    embed(
        &EmbeddingSettings {
            retries: 0,
            ..settings("openai", &address)
        },
        &["a"],
    )
    .await
}

#[tokio::test]
async fn openai_request_and_response_in_any_order() {
    let body = r#"{"data":[{"index":1,"embedding":[0,3]},{"index":0,"embedding":"AACAPwAAAAA="}]}"#;
    let (address, requests) = serve(vec![ok_response(body)]);
    let vectors = embed(
        &EmbeddingSettings {
            dimensions: Some(2),
            ..settings("openai", &address)
        },
        &["a", " "],
    )
    .await;
    assert_eq!(vectors.unwrap(), [[1.0, 0.0], [0.0, 1.0]]);
    let request = requests.recv().unwrap();
    assert!(request.head.starts_with("post /embeddings "));
    assert!(
        request
            .head
            .contains(&format!("authorization: bearer {KEY}\r\n"))
    );
    let body = serde_json::json!({ "model": "text-embedding-3-small", "input": ["a", "-"], "dimensions": 2 });
    assert_eq!(request.body, body);
}

#[tokio::test]
async fn gemini_request_contains_the_purpose() {
    let body = r#"{"embeddings":[{"values":[3,4]}]}"#;
    let (address, requests) = serve(vec![ok_response(body), ok_response(body)]);
    let settings = EmbeddingSettings {
        query_prefix: "find: ".to_owned(),
        ..settings("gemini", &address)
    };
    let embedder = connect(&settings, embedder_deps()).unwrap().unwrap();
    for (purpose, task, text) in [
        (EmbedPurpose::Passage, "RETRIEVAL_DOCUMENT", "a"),
        (EmbedPurpose::Query, "RETRIEVAL_QUERY", "find: a"),
    ] {
        assert_eq!(
            embedder.embed(vec!["a".to_owned()], purpose).await.unwrap(),
            [[0.6, 0.8]]
        );
        let request = requests.recv().unwrap();
        assert!(
            request
                .head
                .starts_with("post /v1beta/models/gemini-embedding-001:batchembedcontents ")
        );
        assert!(request.head.contains(&format!("x-goog-api-key: {KEY}\r\n")));
        let single = &request.body["requests"][0];
        assert_eq!(single["taskType"], task);
        assert_eq!(single["model"], "models/gemini-embedding-001");
        assert_eq!(single["content"]["parts"][0]["text"], text);
    }
}

#[tokio::test]
async fn ollama_accepts_the_base_url_of_chat() {
    let (address, requests) = serve(vec![ok_response(r#"{"embeddings":[[0,2],[2,0]]}"#)]);
    let settings = EmbeddingSettings {
        api_key: None,
        ..settings("ollama", &format!("{address}/v1/"))
    };
    assert_eq!(
        embed(&settings, &["a", "b"]).await.unwrap(),
        [[0.0, 1.0], [1.0, 0.0]]
    );
    let request = requests.recv().unwrap();
    assert!(
        request.head.starts_with("post /api/embed ") && !request.head.contains("authorization")
    );
}

#[tokio::test]
async fn retries_a_busy_provider() {
    let good = ok_response(r#"{"data":[{"embedding":[1]}]}"#);
    let busy = raw_response(429, "retry-after: 0\r\n", b"{}");
    let broken = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"data\":[".to_vec();
    let (address, requests) = serve(vec![busy, broken, good]);
    assert_eq!(
        embed(&settings("openai", &address), &["a"]).await.unwrap(),
        [[1.0]]
    );
    assert_eq!(requests.iter().count(), 3);
}

#[tokio::test]
async fn retries_are_limited() {
    let busy = || raw_response(503, "", b"");
    let (address, requests) = serve(vec![busy(), busy(), busy()]);
    let error = embed(&settings("openai", &address), &["a"])
        .await
        .unwrap_err();
    assert_eq!(error, EmbedError::Busy { retry_after: None });
    assert_eq!(requests.iter().count(), 3);
    // A longer delay than the limit fails at once.
    let (address, _requests) = serve(vec![raw_response(429, "retry-after: 3600\r\n", b"")]);
    let error = embed(&settings("openai", &address), &["a"])
        .await
        .unwrap_err();
    assert_eq!(
        error,
        EmbedError::Busy {
            retry_after: Some(Duration::from_secs(3600))
        }
    );
}

#[tokio::test]
async fn unreachable_provider_is_a_connection_error() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let error = embed(&settings("openai", &address), &["a"])
        .await
        .unwrap_err();
    assert!(matches!(error, EmbedError::Connection(_)), "{error:?}");
}

#[tokio::test]
async fn rejects_invalid_responses() {
    let cases = [
        (r#"{"data":[]}"#, "0 vectors for 1 texts"),
        (r#"{"data":[{"embedding":[]}]}"#, "0 dimensions"),
        (r#"{"data":[{"embedding":[NaN]}]}"#, ""),
        (r#"{"data":[{"embedding":[1e99]}]}"#, ""),
        (r#"{"data":[{"embedding":"AADAfw=="}]}"#, "not finite"),
        (r#"{"data":[{"embedding":"AAD"}]}"#, ""),
        (r#"{"data":[{"index":1,"embedding":[1]}]}"#, "the index 1"),
        (r#"{"data":[{"embedding":[1]}"#, ""),
        ("<html>", ""),
        ("", ""),
    ];
    for (body, expected) in cases {
        match outcome(ok_response(body)).await {
            Err(EmbedError::Malformed(reason)) => {
                assert!(reason.contains(expected), "{body}: {reason}")
            }
            other => panic!("{body}: {other:?}"),
        }
    }
    let invalid = outcome(raw_response(200, "", b"{\"data\":\"\xff\"}")).await;
    assert_eq!(
        invalid,
        Err(EmbedError::Malformed("it is not valid UTF-8".to_owned()))
    );
    let huge = outcome(raw_response(200, "", &vec![b' '; 33 * 1024 * 1024])).await;
    assert_eq!(
        huge,
        Err(EmbedError::Malformed("it is larger than 32 MiB".to_owned()))
    );
}

#[tokio::test]
async fn rejects_vectors_of_different_lengths() {
    let embed_two = |body: &'static str, dimensions| async move {
        let (address, _requests) = serve(vec![ok_response(body)]);
        embed(
            &EmbeddingSettings {
                dimensions,
                ..settings("ollama", &address)
            },
            &["a", "b"],
        )
        .await
    };
    assert!(matches!(
        embed_two(r#"{"embeddings":[[1],[1,2]]}"#, None).await,
        Err(EmbedError::Malformed(_))
    ));
    assert!(matches!(
        embed_two(r#"{"embeddings":[[1],[1]]}"#, Some(2)).await,
        Err(EmbedError::Malformed(_))
    ));
    let responses = [r#"{"embeddings":[[1,2]]}"#, r#"{"embeddings":[[1,2,3]]}"#]
        .map(ok_response)
        .to_vec();
    let (address, _requests) = serve(responses);
    let embedder = connect(&settings("ollama", &address), embedder_deps())
        .unwrap()
        .unwrap();
    assert_eq!(embedder.dimensions(), None);
    assert!(
        embedder
            .embed(vec!["a".to_owned()], EmbedPurpose::Passage)
            .await
            .is_ok()
    );
    assert_eq!(embedder.dimensions(), Some(2));
    assert!(
        embedder
            .embed(vec!["a".to_owned()], EmbedPurpose::Passage)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn classifies_errors_and_redacts_the_key() {
    let with_key = format!(
        r#"{{"error":{{"message":"{}wrong key {KEY} here"}}}}"#,
        "x".repeat(280)
    );
    let cases: [(u16, &str, EmbedError); 7] = [
        (401, &with_key, EmbedError::Auth),
        (403, "", EmbedError::Auth),
        (
            400,
            r#"{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}"#,
            EmbedError::Auth,
        ),
        (
            429,
            r#"{"error":{"code":"insufficient_quota"}}"#,
            EmbedError::Quota,
        ),
        (413, "", EmbedError::TooLong),
        (
            404,
            r#"{"error":"no such model"}"#,
            EmbedError::NotFound("no such model".to_owned()),
        ),
        (
            302,
            "",
            EmbedError::Refused("no reason given (status 302)".to_owned()),
        ),
    ];
    for (status, body, error) in cases {
        assert_eq!(
            outcome(raw_response(status, "", body.as_bytes())).await,
            Err(error),
            "{status}"
        );
    }
    for (status, body) in [
        (400, with_key.as_str()),
        (404, with_key.as_str()),
        (422, KEY),
        (200, &format!("[\"{KEY}\"]")),
    ] {
        let error = outcome(raw_response(status, "", body.as_bytes()))
            .await
            .unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("sk-very") && text.len() < 900, "{text}");
    }
}

#[tokio::test]
async fn splits_many_texts_into_several_requests() {
    let vectors = |count: usize| {
        let all: Vec<_> = (0..count).map(|_| serde_json::json!([1])).collect();
        ok_response(&serde_json::json!({ "embeddings": all }).to_string())
    };
    let (address, requests) = serve(vec![vectors(96), vectors(4)]);
    assert_eq!(
        embed(&settings("ollama", &address), &["a"; 100])
            .await
            .unwrap()
            .len(),
        100
    );
    assert_eq!(requests.iter().count(), 2);
    assert_eq!(
        embed(&settings("ollama", &address), &[])
            .await
            .unwrap()
            .len(),
        0
    );
}
