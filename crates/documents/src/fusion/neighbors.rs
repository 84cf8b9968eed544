//! Adjacent chunks of a document: boosts their scores and merges them into passages.

use std::collections::HashMap;
use std::ops::Range;

use super::{FusedHit, sort_by_score};

/// The share of its neighbor's score that a hit gains: enough to break near-ties, too little to
/// lift a bad hit.
const NEIGHBOR_BOOST: f32 = 0.1;

/// The position of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkPosition {
    pub document: u64,
    /// The number of the chunk within its document.
    pub number: u32,
    /// In bytes of the document; neighbors may overlap.
    pub range: Range<usize>,
}

/// One or more adjacent hits, merged into one text.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedPassage {
    pub document: u64,
    pub range: Range<usize>,
    /// The best score of its hits.
    pub score: f32,
    /// In the order of the document.
    pub hits: Vec<FusedHit>,
}

/// Raises the score of each hit whose neighbor is also a hit, and sorts the hits again. Hits
/// without a position keep their score.
pub fn boost_neighbors(
    hits: &[FusedHit],
    positions: &HashMap<u64, ChunkPosition>,
) -> Vec<FusedHit> {
    let mut scores: HashMap<(u64, u32), f32> = HashMap::with_capacity(hits.len());
    for (hit, position) in hits
        .iter()
        .filter_map(|hit| Some((hit, positions.get(&hit.id)?)))
    {
        let highest = scores
            .entry((position.document, position.number))
            .or_insert(hit.score);
        *highest = highest.max(hit.score);
    }
    let mut boosted: Vec<FusedHit> = hits
        .iter()
        .map(|hit| {
            let neighbor_score = positions
                .get(&hit.id)
                .map_or(0.0, |position| best_neighbor_score(position, &scores));
            FusedHit {
                score: hit.score + NEIGHBOR_BOOST * neighbor_score,
                ..*hit
            }
        })
        .collect();
    sort_by_score(&mut boosted);
    boosted
}

fn best_neighbor_score(position: &ChunkPosition, scores: &HashMap<(u64, u32), f32>) -> f32 {
    let numbers = [
        position.number.checked_sub(1),
        position.number.checked_add(1),
    ];
    let neighbor_scores = numbers
        .into_iter()
        .flatten()
        .filter_map(|number| scores.get(&(position.document, number)));
    neighbor_scores.copied().fold(0.0, f32::max)
}

/// Merges adjacent hits into passages of at most `max_bytes` bytes, best first. Hits without a
/// position are dropped.
pub fn merge_adjacent(
    hits: &[FusedHit],
    positions: &HashMap<u64, ChunkPosition>,
    max_bytes: usize,
) -> Vec<MergedPassage> {
    let mut positioned: Vec<(&FusedHit, &ChunkPosition)> = hits
        .iter()
        .filter_map(|hit| Some((hit, positions.get(&hit.id)?)))
        .collect();
    positioned.sort_by_key(|(hit, position)| (position.document, position.number, hit.id));
    let mut passages: Vec<MergedPassage> = Vec::new();
    let mut last = None;
    for (hit, position) in positioned {
        let follows = last.is_some_and(|last: &ChunkPosition| {
            last.document == position.document && position.number - last.number <= 1
        });
        last = Some(position);
        match passages
            .last_mut()
            .filter(|passage| follows && merged_range(passage, position).len() <= max_bytes)
        {
            Some(passage) => {
                passage.range = merged_range(passage, position);
                passage.score = passage.score.max(hit.score);
                passage.hits.push(*hit);
            }
            None => passages.push(MergedPassage {
                document: position.document,
                range: position.range.clone(),
                score: hit.score,
                hits: vec![*hit],
            }),
        }
    }
    // A stable sort: equal scores stay in document order.
    passages.sort_by(|one, other| other.score.total_cmp(&one.score));
    passages
}

fn merged_range(passage: &MergedPassage, position: &ChunkPosition) -> Range<usize> {
    passage.range.start.min(position.range.start)..passage.range.end.max(position.range.end)
}
