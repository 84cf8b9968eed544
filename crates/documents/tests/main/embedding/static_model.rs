use std::fs;
use std::path::Path;

use lango_documents::embedding::{
    EmbedError, EmbedPurpose, Embedder, EmbeddingSettings, StaticEmbedder,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cosine;

/// The name, number type, shape and bytes of a tensor.
type Tensor = (&'static str, &'static str, Vec<usize>, Vec<u8>);

fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let mut header = json!({ "__metadata__": { "format": "pt" } });
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        header[*name] = json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
        data.extend_from_slice(bytes);
    }
    let header = header.to_string().into_bytes();
    [(header.len() as u64).to_le_bytes().to_vec(), header, data].concat()
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// The vectors of `[UNK]`, `un`, `##happy`, `happy`, `東` and `cafe`.
const ROWS: [f32; 12] = [9.0, 9.0, 1.0, 0.0, 0.0, 1.0, 0.0, 2.0, -1.0, 0.0, 0.0, -1.0];

fn word_pieces() -> Value {
    json!({
        "normalizer": { "type": "BertNormalizer", "lowercase": true, "strip_accents": null },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": { "[UNK]": 0, "un": 1, "##happy": 2, "happy": 3, "東": 4, "cafe": 5 }
        }
    })
}

fn folder(model: &[u8], tokenizer: &Value, config: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("model.safetensors"), model).unwrap();
    fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(folder.path().join("config.json"), config).unwrap();
    folder
}

async fn vectors(path: &Path, texts: &[&str]) -> Vec<Vec<f32>> {
    let embedder = StaticEmbedder::from_folder(path).unwrap();
    embedder
        .embed(
            texts.iter().map(|&text| text.to_owned()).collect(),
            EmbedPurpose::Passage,
        )
        .await
        .unwrap()
}

#[tokio::test]
async fn a_text_is_the_mean_of_its_tokens() {
    let model = safetensors(&[("embeddings", "F32", vec![6, 2], floats(&ROWS))]);
    let plain = folder(&model, &word_pieces(), r#"{"normalize":false}"#);
    let found = vectors(
        plain.path(),
        &[
            "Unhappy",
            "happy, un!",
            "東happy",
            "CAFÉ",
            "xyz",
            "",
            "happy xyz",
        ],
    )
    .await;
    let expected = [
        [0.5, 0.5],
        [0.5, 1.0],
        [-0.5, 1.0],
        [0.0, -1.0],
        [0.0, 0.0],
        [0.0, 0.0],
        [0.0, 2.0],
    ];
    assert_eq!(found, expected);
    let normal = folder(&model, &word_pieces(), "{}");
    let found = vectors(normal.path(), &["unhappy", "happy"]).await;
    assert!((found[0][0] - 0.5_f32.sqrt()).abs() < 1e-6);
    assert_eq!(found[1], [0.0, 1.0]);
}

#[tokio::test]
async fn supports_small_number_types_weights_and_shared_rows() {
    let bytes: Vec<u8> = ROWS.iter().map(|&x| (x as i8).cast_unsigned()).collect();
    let small = folder(
        &safetensors(&[("embeddings", "I8", vec![6, 2], bytes)]),
        &word_pieces(),
        "{}",
    );
    assert_eq!(vectors(small.path(), &["happy"]).await, [[0.0, 1.0]]);
    let half = [0x3c00_u16, 0, 0, 0x4000]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let shared = safetensors(&[
        ("embeddings", "F16", vec![2, 2], half),
        (
            "weights",
            "F32",
            vec![6],
            floats(&[1.0, 1.0, 0.0, 0.5, 1.0, 1.0]),
        ),
        (
            "mapping",
            "I64",
            vec![6],
            [0_i64, 0, 0, 1, 0, 0]
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect(),
        ),
    ]);
    let shared = folder(&shared, &word_pieces(), r#"{"normalize":false}"#);
    assert_eq!(
        vectors(shared.path(), &["un happy", "unhappy"]).await,
        [[0.5, 0.5], [0.5, 0.0]]
    );
}

#[tokio::test]
async fn unigrams_use_the_most_likely_split() {
    let tokenizer = json!({
        "normalizer": { "type": "Sequence", "normalizers": [{ "type": "Lowercase" }] },
        "model": { "type": "Unigram", "unk_id": 0, "vocab": [
            ["<unk>", 0.0], ["▁un", -2.0], ["happy", -3.0], ["▁", -5.0], ["▁unha", -4.0], ["ppy", -4.0]
        ] }
    });
    let model = safetensors(&[("embeddings", "F32", vec![6, 2], floats(&ROWS))]);
    let folder = folder(&model, &tokenizer, r#"{"normalize":false}"#);
    // ▁un + happy: (1, 0) and (0, 1); x is unknown, but its word marker is not: (0, 2).
    assert_eq!(
        vectors(folder.path(), &["Unhappy", "x"]).await,
        [[0.5, 0.5], [0.0, 2.0]]
    );
    let long = "happy".repeat(500);
    assert!(vectors(folder.path(), &[&long]).await[0][1] > 0.0);
}

#[tokio::test]
async fn applies_dimensions_and_prefixes_of_the_settings() {
    let model = safetensors(&[("embeddings", "F32", vec![6, 2], floats(&ROWS))]);
    let folder = folder(&model, &word_pieces(), "{}");
    let load = || StaticEmbedder::from_folder(folder.path()).unwrap();
    let with = |settings: EmbeddingSettings| load().with_settings(&settings);
    let short = with(EmbeddingSettings {
        dimensions: Some(1),
        ..EmbeddingSettings::default()
    })
    .unwrap();
    assert_eq!(short.dimensions(), Some(1));
    assert_ne!(short.identity(), load().identity());
    assert!(
        with(EmbeddingSettings {
            dimensions: Some(3),
            ..EmbeddingSettings::default()
        })
        .is_err()
    );
    let prefixed = with(EmbeddingSettings {
        query_prefix: "un ".to_owned(),
        ..EmbeddingSettings::default()
    })
    .unwrap();
    let query = prefixed
        .embed(vec!["cafe".to_owned()], EmbedPurpose::Query)
        .await
        .unwrap();
    let passage = prefixed
        .embed(vec!["cafe".to_owned()], EmbedPurpose::Passage)
        .await
        .unwrap();
    assert!(cosine(&query[0], &passage[0]) < 0.8);
    assert_eq!(prefixed.identity(), load().identity());
}

#[test]
fn errors_describe_invalid_models() {
    let good = safetensors(&[("embeddings", "F32", vec![6, 2], floats(&ROWS))]);
    let huge = u64::MAX.to_le_bytes().to_vec();
    let overlong = safetensors(&[("embeddings", "F32", vec![usize::MAX, 8], floats(&ROWS))]);
    let cases: Vec<(Vec<u8>, Value, &str, &str)> = vec![
        (good.clone(), json!({}), "{}", "no type of tokenizer"),
        (
            good.clone(),
            json!({ "model": { "type": "BPE" } }),
            "{}",
            "BPE",
        ),
        (
            good.clone(),
            json!({ "model": { "type": "WordPiece", "vocab": {} } }),
            "{}",
            "no vocabulary",
        ),
        (
            good.clone(),
            json!({ "model": { "type": "Unigram", "vocab": [["a"]] } }),
            "{}",
            "the token 0",
        ),
        (good.clone(), word_pieces(), "{", "config.json"),
        (
            good[..good.len() - 1].to_vec(),
            word_pieces(),
            "{}",
            "exceeds the file",
        ),
        (good[..20].to_vec(), word_pieces(), "{}", "header"),
        (b"abc".to_vec(), word_pieces(), "{}", "too short"),
        (huge, word_pieces(), "{}", "header"),
        (overlong, word_pieces(), "{}", "exceeds the file"),
        (safetensors(&[]), word_pieces(), "{}", "no tensor"),
        (
            safetensors(&[("embeddings", "F32", vec![0, 2], vec![])]),
            word_pieces(),
            "{}",
            "empty",
        ),
        (
            safetensors(&[("embeddings", "Q4", vec![1, 1], vec![0])]),
            word_pieces(),
            "{}",
            "Q4",
        ),
    ];
    for (model, tokenizer, config, expected) in cases {
        let folder = folder(&model, &tokenizer, config);
        let error = StaticEmbedder::from_folder(folder.path()).err().unwrap();
        assert!(
            matches!(error, EmbedError::File { .. }) && error.to_string().contains(expected),
            "{error}"
        );
    }
}

#[test]
fn a_missing_model_is_an_error() {
    let error = StaticEmbedder::from_folder(Path::new("/nowhere"))
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/model.safetensors: "),
        "{error}"
    );
}
