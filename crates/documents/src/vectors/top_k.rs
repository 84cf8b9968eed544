//! A heap of the best rows of a scan.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A row with its score. Equal scores are ordered by row, so that results are deterministic.
#[derive(Clone, Copy, PartialEq)]
struct ScoredRow {
    score: f32,
    row: usize,
}

impl Eq for ScoredRow {}

impl Ord for ScoredRow {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.row.cmp(&self.row))
    }
}

impl PartialOrd for ScoredRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best `limit` rows.
pub(super) struct TopK {
    limit: usize,
    /// The score that a row has to exceed; below every score until the heap is full.
    threshold: f32,
    heap: BinaryHeap<Reverse<ScoredRow>>,
}

impl TopK {
    pub fn new(limit: usize) -> Self {
        let threshold = if limit == 0 {
            f32::INFINITY
        } else {
            f32::NEG_INFINITY
        };
        Self {
            limit,
            threshold,
            heap: BinaryHeap::with_capacity(limit + 1),
        }
    }

    pub fn can_insert(&self, score: f32) -> bool {
        score > self.threshold
    }

    /// Adds a row for which `can_insert` returned true.
    pub fn insert(&mut self, score: f32, row: usize) {
        self.heap.push(Reverse(ScoredRow { score, row }));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
        if self.heap.len() == self.limit
            && let Some(Reverse(worst)) = self.heap.peek()
        {
            self.threshold = worst.score;
        }
    }

    pub fn merge(&mut self, other: Self) {
        for Reverse(ScoredRow { score, row }) in other.heap {
            if self.can_insert(score) {
                self.insert(score, row);
            }
        }
    }

    pub fn drain_rows(&mut self) -> Vec<usize> {
        self.heap
            .drain()
            .map(|Reverse(scored)| scored.row)
            .collect()
    }
}
