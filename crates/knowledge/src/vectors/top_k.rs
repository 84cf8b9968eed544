//! The best rows so far.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A row with its score; rows with equal scores rank by their place, so that the same search finds the same rows.
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

/// As many of the best rows as are wanted.
pub(super) struct TopK {
    wanted: usize,
    /// The score that a row has to beat; below every score until there are enough rows.
    floor: f32,
    heap: BinaryHeap<Reverse<ScoredRow>>,
}

impl TopK {
    pub fn new(wanted: usize) -> Self {
        let floor = if wanted == 0 {
            f32::INFINITY
        } else {
            f32::NEG_INFINITY
        };
        Self {
            wanted,
            floor,
            heap: BinaryHeap::with_capacity(wanted + 1),
        }
    }

    pub fn can_insert(&self, score: f32) -> bool {
        score > self.floor
    }

    /// Only for rows that it would take.
    pub fn insert(&mut self, score: f32, row: usize) {
        self.heap.push(Reverse(ScoredRow { score, row }));
        if self.heap.len() > self.wanted {
            self.heap.pop();
        }
        if self.heap.len() == self.wanted
            && let Some(Reverse(worst)) = self.heap.peek()
        {
            self.floor = worst.score;
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
