mod hashed_embedder;
mod http_embedder;
mod server;
mod static_model;

use std::sync::Arc;

use lango_documents::embedding::{EmbedderDeps, EmbeddingProvider, EmbeddingSettings, connect};
use lango_domain::secret::Secret;

pub fn embedder_deps() -> EmbedderDeps {
    EmbedderDeps {
        jitter: Arc::new(|| 0.0),
    }
}

pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[test]
fn default_is_the_built_in_embedder() {
    let settings: EmbeddingSettings = serde_json::from_str("{}").unwrap();
    assert_eq!(settings, EmbeddingSettings::default());
    let embedder = connect(&settings, embedder_deps()).unwrap().unwrap();
    assert_eq!(embedder.identity(), "embedded/hashed/512/1");
    assert_eq!(embedder.dimensions(), Some(512));
    let none = EmbeddingSettings {
        provider: EmbeddingProvider::None,
        ..EmbeddingSettings::default()
    };
    assert!(connect(&none, embedder_deps()).unwrap().is_none());
}

#[test]
fn settings_redact_the_key() {
    let text = r#"{"provider":"openai","apiKey":"sk-secret","baseUrl":"http://me:sk-secret@host/v1","queryPrefix":"q: "}"#;
    let settings: EmbeddingSettings = serde_json::from_str(text).unwrap();
    assert_eq!(settings.api_key, Some(Secret::new("sk-secret")));
    let serialized = serde_json::to_string(&settings).unwrap();
    assert!(
        !serialized.contains("sk-secret") && serialized.contains("http://***@host/v1"),
        "{serialized}"
    );
    assert!(!format!("{:?}", settings.api_key).contains("sk-secret"));
    let error =
        serde_json::from_str::<EmbeddingSettings>(r#"{"apiKey":["sk-secret"]}"#).unwrap_err();
    assert!(!error.to_string().contains("sk-secret"));
}

#[test]
fn errors_name_the_invalid_setting() {
    let cases = [
        (r#"{"provider":"static"}"#, "embedding.path"),
        (
            r#"{"provider":"openai","baseUrl":"ftp://x"}"#,
            "embedding.baseUrl",
        ),
        (r#"{"provider":"gemini","model":"a b"}"#, "embedding.model"),
        (
            r#"{"provider":"openai","apiKey":"sk-sec\nret"}"#,
            "embedding.apiKey",
        ),
        (r#"{"dimensions":0}"#, "embedding.dimensions"),
        (r#"{"dimensions":10}"#, "embedding.dimensions"),
        (r#"{"dimensions":1000000}"#, "embedding.dimensions"),
    ];
    for (text, setting) in cases {
        let settings: EmbeddingSettings = serde_json::from_str(text).unwrap();
        let error = connect(&settings, embedder_deps())
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.starts_with(setting) && !error.contains("sk-sec"),
            "{error}"
        );
    }
}

#[test]
fn identity_depends_on_what_changes_vectors() {
    let identity = |text: &str| {
        let settings: EmbeddingSettings = serde_json::from_str(text).unwrap();
        connect(&settings, embedder_deps())
            .unwrap()
            .unwrap()
            .identity()
    };
    let plain = identity(r#"{"provider":"openai"}"#);
    assert_eq!(plain, "openai/text-embedding-3-small/native/1");
    assert_eq!(
        plain,
        identity(r#"{"provider":"openai","queryPrefix":"query: "}"#)
    );
    assert_ne!(
        plain,
        identity(r#"{"provider":"openai","passagePrefix":"passage: "}"#)
    );
    assert_ne!(plain, identity(r#"{"provider":"openai","dimensions":256}"#));
    assert_ne!(
        plain,
        identity(r#"{"provider":"ollama","model":"text-embedding-3-small"}"#)
    );
}
