use lango_documents::embedding::{EmbedPurpose, Embedder, HashedEmbedder};

use super::cosine;

fn similarity(one: &str, other: &str) -> f32 {
    let embedder = HashedEmbedder::default();
    let query = embedder.embed_texts([one], EmbedPurpose::Query);
    let passage = embedder.embed_texts([other], EmbedPurpose::Passage);
    cosine(&query[0], &passage[0])
}

#[test]
fn spellings_forms_and_compounds_are_similar() {
    // Each query is more similar to the first passage than to the second.
    let cases = [
        ("colour", "the colors of the flag", "the shape of the flag"),
        ("normalise", "normalization of text", "translation of text"),
        ("kubernetes", "a kubernets cluster", "a hadoop cluster"),
        ("data base", "the database is slow", "the network is slow"),
        ("email", "send an e-mail to her", "send a letter to her"),
        (
            "Versicherung",
            "die Krankenversicherungskarte",
            "die Eisenbahnfahrkarte",
        ),
        ("Donaudampfschiff", "das Dampfschiff", "das Flugzeug"),
        ("größe", "die GROSSE und Grösse", "die Farbe und Form"),
        (
            "데이터베이스",
            "데이터베이스를 사용합니다",
            "네트워크를 사용합니다",
        ),
        ("東京大学", "東京の大学に行く", "大阪の会社に行く"),
        ("数据库", "这个数据库很快", "这个网络很快"),
        ("программа", "новые программы", "новые книги"),
        ("résumé", "her resume and letter", "her house and letter"),
        ("ภาษาไทย", "เรียนภาษาไทยง่าย", "กินข้าวที่บ้าน"),
    ];
    for (query, near, far) in cases {
        let (near, far) = (similarity(query, near), similarity(query, far));
        assert!(near > far + 0.1, "{query}: {near} {far}");
    }
}

#[test]
fn vectors_are_normalized_and_reproducible() {
    let embedder = HashedEmbedder::default();
    let vectors = embedder.embed_texts(
        ["The quick brown fox", "", " \u{0} !? ", "a"],
        EmbedPurpose::Passage,
    );
    for vector in [&vectors[0], &vectors[3]] {
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5);
    }
    assert!(vectors[1..3].iter().flatten().all(|&x| x == 0.0));
    // Stored vectors outlive a build: a change of this checksum requires a new version.
    let sum = vectors[0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .fold(0_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    assert_eq!(
        (embedder.identity().as_str(), sum),
        ("embedded/hashed/512/1", 11_631_246_455_903_015_965)
    );
}

#[tokio::test]
async fn keeps_the_order_of_many_texts() {
    let embedder = HashedEmbedder::default();
    let texts: Vec<String> = (0..100)
        .map(|number| format!("text number {number}"))
        .collect();
    let vectors = embedder
        .embed(texts.clone(), EmbedPurpose::Passage)
        .await
        .unwrap();
    assert_eq!(
        vectors,
        embedder.embed_texts(texts.iter().map(String::as_str), EmbedPurpose::Passage)
    );
}
