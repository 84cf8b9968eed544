//! Chunks of one document that stand next to each other speak for each other.

use std::collections::HashMap;
use std::ops::Range;

use super::{FusedHit, sort_by_score};

/// The part of its neighbour's score that a hit gains: enough to settle close calls, too little to carry a bad hit.
const NEIGHBOR_BOOST: f32 = 0.1;

/// Where a chunk stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkPosition {
    pub document: u64,
    /// Chunks are counted through in each document.
    pub number: u32,
    /// In bytes of the document; neighbours may overlap.
    pub range: Range<usize>,
}

/// One or more neighbouring hits as one piece of text.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedPassage {
    pub document: u64,
    pub range: Range<usize>,
    /// The best of its hits.
    pub score: f32,
    /// In the order of the document.
    pub hits: Vec<FusedHit>,
}

/// Raises each hit a little whose neighbour is a hit as well, and orders them anew. Hits without a place stay as they
/// are.
pub fn boost_neighbors(hits: &[FusedHit], places: &HashMap<u64, ChunkPosition>) -> Vec<FusedHit> {
    let mut scores: HashMap<(u64, u32), f32> = HashMap::with_capacity(hits.len());
    for (hit, place) in hits
        .iter()
        .filter_map(|hit| Some((hit, places.get(&hit.id)?)))
    {
        let known = scores
            .entry((place.document, place.number))
            .or_insert(hit.score);
        *known = known.max(hit.score);
    }
    let mut raised: Vec<FusedHit> = hits
        .iter()
        .map(|hit| {
            let beside = places
                .get(&hit.id)
                .map_or(0.0, |place| best_neighbor_score(place, &scores));
            FusedHit {
                score: hit.score + NEIGHBOR_BOOST * beside,
                ..*hit
            }
        })
        .collect();
    sort_by_score(&mut raised);
    raised
}

fn best_neighbor_score(place: &ChunkPosition, scores: &HashMap<(u64, u32), f32>) -> f32 {
    let numbers = [place.number.checked_sub(1), place.number.checked_add(1)];
    let beside = numbers
        .into_iter()
        .flatten()
        .filter_map(|number| scores.get(&(place.document, number)));
    beside.copied().fold(0.0, f32::max)
}

/// Joins hits that are neighbours, as long as a passage does not get longer than `longest` bytes; best first. Hits
/// without a place are left out.
pub fn merge_adjacent(
    hits: &[FusedHit],
    places: &HashMap<u64, ChunkPosition>,
    longest: usize,
) -> Vec<MergedPassage> {
    let mut placed: Vec<(&FusedHit, &ChunkPosition)> = hits
        .iter()
        .filter_map(|hit| Some((hit, places.get(&hit.id)?)))
        .collect();
    placed.sort_by_key(|(hit, place)| (place.document, place.number, hit.id));
    let mut passages: Vec<MergedPassage> = Vec::new();
    let mut last = None;
    for (hit, place) in placed {
        let follows = last.is_some_and(|last: &ChunkPosition| {
            last.document == place.document && place.number - last.number <= 1
        });
        last = Some(place);
        match passages
            .last_mut()
            .filter(|passage| follows && merged_range(passage, place).len() <= longest)
        {
            Some(passage) => {
                passage.range = merged_range(passage, place);
                passage.score = passage.score.max(hit.score);
                passage.hits.push(*hit);
            }
            None => passages.push(MergedPassage {
                document: place.document,
                range: place.range.clone(),
                score: hit.score,
                hits: vec![*hit],
            }),
        }
    }
    // Stable: what scores alike stays in the order of documents.
    passages.sort_by(|one, other| other.score.total_cmp(&one.score));
    passages
}

fn merged_range(passage: &MergedPassage, place: &ChunkPosition) -> Range<usize> {
    passage.range.start.min(place.range.start)..passage.range.end.max(place.range.end)
}
