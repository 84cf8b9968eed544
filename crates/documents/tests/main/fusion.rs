use std::collections::HashMap;

use lango_documents::fusion::{
    ChunkPosition, FusedHit, FusionWeights, boost_neighbors, dedupe, fuse, merge_adjacent,
};
use proptest::prelude::*;

const EVEN: FusionWeights = FusionWeights {
    lexical: 1.0,
    vector: 1.0,
};

fn ids(hits: &[FusedHit]) -> Vec<u64> {
    hits.iter().map(|hit| hit.id).collect()
}

fn hit(id: u64, score: f32) -> FusedHit {
    FusedHit {
        id,
        score,
        lexical: None,
        vector: None,
    }
}

fn position(document: u64, number: u32) -> ChunkPosition {
    let start = number as usize * 100;
    ChunkPosition {
        document,
        number,
        range: start..start + 120,
    }
}

#[test]
fn ranks_hits_of_both_lists_first() {
    let fused = fuse(&[(1, 9.0), (2, 8.0)], &[(3, 0.9), (2, 0.85)], EVEN);
    assert_eq!(fused[0].id, 2);
    assert_eq!((fused[0].lexical, fused[0].vector), (Some(8.0), Some(0.85)));
    let one = fused.iter().find(|hit| hit.id == 1).unwrap();
    assert_eq!((one.lexical, one.vector), (Some(9.0), None));
}

#[test]
fn keeps_a_clear_lead() {
    // By rank these would be equal: each is first in one list and second in the other.
    let fused = fuse(
        &[(1, 20.0), (2, 2.0)],
        &[(2, 0.81), (1, 0.80), (3, 0.2)],
        EVEN,
    );
    assert_eq!(ids(&fused), [1, 2, 3]);
}

#[test]
fn keeps_the_order_of_a_single_list() {
    assert_eq!(
        ids(&fuse(&[(5, 1.0), (4, 3.0)], &[], FusionWeights::default())),
        [4, 5]
    );
    assert_eq!(
        ids(&fuse(
            &[],
            &[(5, -0.5), (4, -0.1)],
            FusionWeights::default()
        )),
        [4, 5]
    );
    assert!(fuse(&[], &[], FusionWeights::default()).is_empty());
}

#[test]
fn orders_ties_by_id() {
    assert_eq!(
        ids(&fuse(&[(9, 1.0), (3, 1.0), (7, 1.0)], &[], EVEN)),
        [3, 7, 9]
    );
}

#[test]
fn ignores_scores_and_weights_that_are_not_finite() {
    let fused = fuse(&[(1, f32::NAN), (2, 1.0)], &[(3, f32::INFINITY)], EVEN);
    assert_eq!(ids(&fused), [2]);
    let invalid = FusionWeights {
        lexical: f32::NAN,
        vector: -1.0,
    };
    assert_eq!(fuse(&[(1, 1.0)], &[(1, 1.0)], invalid)[0].score, 1.0);
}

#[test]
fn removes_near_duplicates() {
    let words: Vec<String> = (0..100).map(|number| format!("word{number}")).collect();
    let original = words.join(" ");
    let changed = original.replace("word50", "other");
    let different = words[..50].join(" ");
    let uppercase = original.to_uppercase();
    let texts = [&original, &different, &changed, &uppercase].map(String::as_str);
    let hits: Vec<FusedHit> = (0..4).map(|id| hit(id, 1.0 - id as f32 / 10.0)).collect();
    let unique = dedupe(&hits, |id| texts[id as usize]);
    assert_eq!(unique.len(), 2);
    assert_eq!(
        (unique[0].hit.id, &unique[0].duplicates[..]),
        (0, &[2, 3][..])
    );
    assert_eq!((unique[1].hit.id, unique[1].duplicates.len()), (1, 0));
}

#[test]
fn compares_short_and_unspaced_texts() {
    let texts = [
        "はい",
        "はい。",
        "いいえ",
        "…",
        "!",
        "東京都に住んでいます",
        "東京都に住んでいます。",
    ];
    let hits: Vec<FusedHit> = (0..texts.len() as u64).map(|id| hit(id, 1.0)).collect();
    let unique = dedupe(&hits, |id| texts[id as usize]);
    let ids: Vec<u64> = unique.iter().map(|hit| hit.hit.id).collect();
    assert_eq!(ids, [0, 2, 3, 4, 5]);
}

#[test]
fn boosts_neighbors() {
    let positions = HashMap::from([
        (1, position(7, 0)),
        (2, position(7, 1)),
        (3, position(8, 2)),
        (4, position(7, 5)),
    ]);
    let hits = [
        hit(3, 0.52),
        hit(1, 0.5),
        hit(2, 0.49),
        hit(4, 0.48),
        hit(99, 0.1),
    ];
    let boosted = boost_neighbors(&hits, &positions);
    assert_eq!(ids(&boosted), [1, 2, 3, 4, 99]);
    assert_eq!(
        boosted[2].score, 0.52,
        "a chunk of another document is not a neighbor"
    );
    assert!(boosted[0].score < 0.6, "the boost is small");
}

#[test]
fn merges_adjacent_hits() {
    let positions = HashMap::from([
        (1, position(7, 0)),
        (2, position(7, 1)),
        (3, position(7, 2)),
        (4, position(8, 3)),
    ]);
    let hits = [hit(2, 0.9), hit(4, 0.8), hit(1, 0.7), hit(3, 0.1)];
    let passages = merge_adjacent(&hits, &positions, 1_000);
    assert_eq!(passages.len(), 2);
    assert_eq!(
        (
            passages[0].document,
            passages[0].range.clone(),
            passages[0].score
        ),
        (7, 0..320, 0.9)
    );
    assert_eq!(ids(&passages[0].hits), [1, 2, 3]);
    assert_eq!(
        merge_adjacent(&hits, &positions, 250).len(),
        3,
        "the size of a passage is limited"
    );
}

fn list() -> impl Strategy<Value = Vec<(u64, f32)>> {
    proptest::collection::vec((0_u64..30, 0.01_f32..40.0), 0..30)
}

proptest! {
    #[test]
    fn contains_every_hit_once_in_order(lexical in list(), vector in list()) {
        let fused = fuse(&lexical, &vector, FusionWeights::default());
        let mut expected: Vec<u64> = lexical.iter().chain(&vector).map(|(id, _)| *id).collect();
        expected.sort_unstable();
        expected.dedup();
        let mut found = ids(&fused);
        found.sort_unstable();
        prop_assert_eq!(found, expected);
        prop_assert!(fused.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
        for pair in fused.windows(2) {
            prop_assert!((pair[1].score, pair[0].id) < (pair[0].score, pair[1].id));
        }
    }

    #[test]
    fn does_not_depend_on_the_order_of_the_input(lexical in list(), vector in list()) {
        let reversed = |list: &[(u64, f32)]| list.iter().rev().copied().collect::<Vec<_>>();
        prop_assert_eq!(
            fuse(&lexical, &vector, FusionWeights::default()),
            fuse(&reversed(&lexical), &reversed(&vector), FusionWeights::default())
        );
    }

    #[test]
    fn does_not_depend_on_the_scale_of_scores(lexical in list(), vector in list()) {
        let scaled = |list: &[(u64, f32)], by: f32| list.iter().map(|(id, score)| (*id, score * by)).collect::<Vec<_>>();
        let plain = fuse(&lexical, &vector, EVEN);
        // Powers of two are exact, so that rounding does not change the order.
        let other = fuse(&scaled(&lexical, 8.0), &scaled(&vector, 0.25), EVEN);
        prop_assert_eq!(ids(&plain), ids(&other));
    }

    #[test]
    fn a_hit_better_in_both_lists_ranks_higher(lexical in list(), vector in list()) {
        let fused = fuse(&lexical, &vector, FusionWeights::default());
        for (at, upper) in fused.iter().enumerate() {
            for lower in &fused[at + 1..] {
                let is_beaten = lower.lexical > upper.lexical && lower.vector > upper.vector;
                prop_assert!(!is_beaten, "{upper:?} before {lower:?}");
            }
        }
    }

    #[test]
    fn dedupe_keeps_every_id(texts in proptest::collection::vec("[ab ]{0,12}", 0..12)) {
        let hits: Vec<FusedHit> = (0..texts.len() as u64).map(|id| hit(id, 0.5)).collect();
        let unique = dedupe(&hits, |id| &texts[id as usize]);
        let all: usize = unique.iter().map(|hit| 1 + hit.duplicates.len()).sum();
        prop_assert_eq!(all, texts.len());
    }

    #[test]
    fn passages_contain_every_positioned_hit(numbers in proptest::collection::btree_set((0_u64..3, 0_u32..12), 0..20)) {
        let positions: HashMap<u64, ChunkPosition> =
            numbers.iter().enumerate().map(|(id, (document, number))| (id as u64, position(*document, *number))).collect();
        let hits: Vec<FusedHit> = (0..positions.len() as u64).map(|id| hit(id, id as f32)).collect();
        let passages = merge_adjacent(&hits, &positions, 500);
        prop_assert_eq!(passages.iter().map(|passage| passage.hits.len()).sum::<usize>(), hits.len());
        for passage in &passages {
            prop_assert!(passage.range.len() <= 500);
            for hit in &passage.hits {
                let range = &positions[&hit.id].range;
                prop_assert!(passage.range.start <= range.start && range.end <= passage.range.end);
            }
        }
    }
}
