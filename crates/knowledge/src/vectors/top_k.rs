//! The best rows so far.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A row with its score; rows with equal scores rank by their place, so that the same search finds the same rows.
#[derive(Clone, Copy, PartialEq)]
struct Scored {
    score: f32,
    row: usize,
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.row.cmp(&self.row))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// As many of the best rows as are wanted.
pub(super) struct TopK {
    wanted: usize,
    /// The score that a row has to beat; below every score until there are enough rows.
    floor: f32,
    heap: BinaryHeap<Reverse<Scored>>,
}

impl TopK {
    pub fn new(wanted: usize) -> Self {
        let floor = if wanted == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { wanted, floor, heap: BinaryHeap::with_capacity(wanted + 1) }
    }

    pub fn would_take(&self, score: f32) -> bool {
        score > self.floor
    }

    /// Only for rows that it would take.
    pub fn take(&mut self, score: f32, row: usize) {
        self.heap.push(Reverse(Scored { score, row }));
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
        for Reverse(Scored { score, row }) in other.heap {
            if self.would_take(score) {
                self.take(score, row);
            }
        }
    }

    pub fn take_rows(&mut self) -> Vec<usize> {
        self.heap.drain().map(|Reverse(scored)| scored.row).collect()
    }
}
