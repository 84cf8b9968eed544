//! In-memory vector search: one matrix for all vectors of one embedder.
//!
//! A row takes two bytes per dimension. The scan reads only the first; the second refines the score
//! of the best candidates. 100,000 rows of 384 dimensions take 77 MB, of which a search reads 38 MB.

mod batch;
mod dot_product;
mod file;
mod quantized;
mod top_k;

use std::collections::HashMap;
use std::thread;

use batch::{NewVectorRow, VectorRow};
use dot_product::dot_products;
use quantized::{QuantizedVector, dot_fine};
use top_k::TopK;

pub use file::{VectorFile, VectorFileError, VectorRecord, WriterLock};
pub use quantized::{from_bytes, to_bytes};

/// Rows are padded to a multiple of this, so that the scan needs no special case for their ends.
const LANES: usize = 32;
/// The number of rows from which a scan uses threads; below, starting them costs more than it saves.
const MIN_ROWS_FOR_THREADS: usize = 20_000;
/// More threads do not help, because the scan is bound by memory bandwidth.
const MAX_THREADS: usize = 4;
/// Rows whose dot products are computed at a time.
const SCAN_BLOCK_ROWS: usize = 64;
/// Candidates per result that are scored again with full precision.
const CANDIDATES_PER_RESULT: usize = 4;
const MIN_CANDIDATES: usize = 100;

/// Returns true for the groups whose rows may be found.
pub type Filter<'a> = dyn Fn(u32) -> bool + Sync + 'a;

/// The reason why a vector is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    #[error("the vector has {found} dimensions; expected {expected}")]
    Dimensions { expected: usize, found: usize },
    #[error("the vector contains a number that is not finite")]
    NotFinite,
    #[error("{0} bytes are not a sequence of 32-bit numbers")]
    Bytes(usize),
}

/// A matrix of vectors of one embedder.
#[derive(Clone, Debug, Default)]
pub struct VectorMatrix {
    dimensions: usize,
    stride: usize,
    ids: Vec<u64>,
    rows: HashMap<u64, usize>,
    /// The group of each row, for filters.
    groups: Vec<u32>,
    scales: Vec<f32>,
    coarse: Vec<i8>,
    fine: Vec<i8>,
}

impl VectorMatrix {
    pub fn new(dimensions: usize) -> Self {
        let stride = dimensions.next_multiple_of(LANES).max(LANES);
        Self {
            dimensions,
            stride,
            ..Self::default()
        }
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn contains(&self, id: u64) -> bool {
        self.rows.contains_key(&id)
    }

    /// Returns the size of the rows in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.coarse.capacity() + self.fine.capacity() + 32 * self.ids.capacity()
    }

    /// Adds a vector and replaces one with the same id. Only its direction matters, not its length.
    pub fn put(&mut self, id: u64, group: u32, vector: &[f32]) -> Result<(), VectorError> {
        let QuantizedVector {
            coarse,
            fine,
            scale,
        } = self.quantize(vector)?;
        let bytes = |parts: Vec<i8>| {
            parts
                .into_iter()
                .map(i8::cast_unsigned)
                .collect::<Vec<u8>>()
        };
        let (coarse, fine) = (bytes(coarse), bytes(fine));
        self.put_row(&VectorRow {
            id,
            owner: group,
            scale,
            coarse: &coarse,
            fine: &fine,
        });
        Ok(())
    }

    /// Adds a row. Returns true if it replaced another one.
    fn put_row(&mut self, row: &VectorRow<'_>) -> bool {
        let is_replaced = self.remove(row.id);
        self.rows.insert(row.id, self.ids.len());
        self.ids.push(row.id);
        self.groups.push(row.owner);
        self.scales.push(row.scale);
        self.coarse
            .extend(row.coarse.iter().map(|part| part.cast_signed()));
        self.fine
            .extend(row.fine.iter().map(|part| part.cast_signed()));
        is_replaced
    }

    fn row(&self, at: usize) -> NewVectorRow {
        let (coarse, fine) = (
            self.coarse[self.range(at)].to_vec(),
            self.fine[self.range(at)].to_vec(),
        );
        let vector = QuantizedVector {
            coarse,
            fine,
            scale: self.scales[at],
        };
        NewVectorRow {
            id: self.ids[at],
            owner: self.groups[at],
            vector,
        }
    }

    fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.ids.reserve_exact(rows);
        self.groups.reserve_exact(rows);
        self.scales.reserve_exact(rows);
        self.coarse.reserve_exact(rows * self.stride);
        self.fine.reserve_exact(rows * self.stride);
    }

    fn stride(&self) -> usize {
        self.stride
    }

    /// Removes a vector and moves the last row into the gap. Returns true if the vector existed.
    pub fn remove(&mut self, id: u64) -> bool {
        let Some(at) = self.rows.remove(&id) else {
            return false;
        };
        let last = self.ids.len() - 1;
        let moved = self.range(last);
        if at != last {
            let target = self.range(at).start;
            self.coarse.copy_within(moved.clone(), target);
            self.fine.copy_within(moved.clone(), target);
            self.rows.insert(self.ids[last], at);
        }
        self.ids.swap_remove(at);
        self.groups.swap_remove(at);
        self.scales.swap_remove(at);
        self.coarse.truncate(moved.start);
        self.fine.truncate(moved.start);
        true
    }

    /// Returns the nearest vectors that pass the filter with their cosine, best first; equal ones are
    /// ordered by id. The filter applies before `limit`.
    pub fn search(
        &self,
        query: &[f32],
        limit: usize,
        filter: Option<&Filter<'_>>,
    ) -> Result<Vec<(u64, f32)>, VectorError> {
        let query = self.quantize(query)?;
        if limit == 0 || query.scale == 0.0 {
            return Ok(Vec::new());
        }
        let wanted = limit
            .saturating_mul(CANDIDATES_PER_RESULT)
            .max(MIN_CANDIDATES)
            .min(self.len());
        let wide: Vec<i16> = query.coarse.iter().map(|&value| i16::from(value)).collect();
        let candidates = self.candidates(&wide, wanted, filter);
        let mut hits: Vec<(u64, f32)> = candidates
            .into_iter()
            .map(|at| (self.ids[at], self.cosine(at, &query)))
            .collect();
        hits.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        hits.truncate(limit);
        Ok(hits)
    }

    fn quantize(&self, vector: &[f32]) -> Result<QuantizedVector, VectorError> {
        if vector.len() != self.dimensions {
            return Err(VectorError::Dimensions {
                expected: self.dimensions,
                found: vector.len(),
            });
        }
        QuantizedVector::quantize(vector, self.stride).ok_or(VectorError::NotFinite)
    }

    fn range(&self, at: usize) -> std::ops::Range<usize> {
        at * self.stride..(at + 1) * self.stride
    }

    /// Returns the rows to score with full precision, in no particular order.
    fn candidates(&self, query: &[i16], wanted: usize, filter: Option<&Filter<'_>>) -> Vec<usize> {
        let threads = match self.len() {
            0..MIN_ROWS_FOR_THREADS => 1,
            _ => thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS)),
        };
        let share = self.len().div_ceil(threads).max(1);
        let scan = |first: usize| {
            let mut nearest = TopK::new(wanted);
            self.scan(
                first..(first + share).min(self.len()),
                query,
                filter,
                &mut nearest,
            );
            nearest
        };
        let mut nearest = thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|part| scope.spawn(move || scan(part * share)))
                .collect();
            let mut nearest = scan(0);
            for (part, other) in others.into_iter().enumerate() {
                // If the filter panicked on that thread, it panics again on the caller's thread.
                nearest.merge(other.join().unwrap_or_else(|_| scan((part + 1) * share)));
            }
            nearest
        });
        nearest.drain_rows()
    }

    fn scan(
        &self,
        rows: std::ops::Range<usize>,
        query: &[i16],
        filter: Option<&Filter<'_>>,
        nearest: &mut TopK,
    ) {
        let first = rows.start.min(rows.end);
        let bytes = &self.coarse[first * self.stride..rows.end * self.stride];
        let mut scores = [0; SCAN_BLOCK_ROWS];
        let blocks = bytes.chunks(SCAN_BLOCK_ROWS * self.stride);
        for (start, block) in (first..).step_by(SCAN_BLOCK_ROWS).zip(blocks) {
            let count = block.len() / self.stride;
            let passes_any = |filter: &Filter<'_>| {
                self.groups[start..start + count]
                    .iter()
                    .any(|group| filter(*group))
            };
            if filter.is_some_and(|filter| !passes_any(filter)) {
                continue;
            }
            dot_products(query, block, &mut scores[..count]);
            for (at, &product) in (start..).zip(&scores[..count]) {
                let score = product as f32 * self.scales[at];
                if nearest.can_insert(score) && filter.is_none_or(|filter| filter(self.groups[at]))
                {
                    nearest.insert(score, at);
                }
            }
        }
    }

    fn cosine(&self, at: usize, query: &QuantizedVector) -> f32 {
        let range = self.range(at);
        let product = dot_fine(query, &self.coarse[range.clone()], &self.fine[range]);
        (product * f64::from(self.scales[at]) * f64::from(query.scale)) as f32
    }
}
