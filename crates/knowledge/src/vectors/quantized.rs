//! One vector in two bytes per dimension, and how two such vectors are multiplied.

use super::VectorError;

/// The second byte counts in this part of the first one's unit.
const FINE_STEPS: f32 = 254.0;
/// The largest value of a byte.
const MAX_QUANTIZED: f32 = 127.0;

/// A vector of length one, as `scale × (coarse + fine / 254)`. The nothing vector has the scale 0.
pub(super) struct QuantizedVector {
    pub coarse: Vec<i8>,
    pub fine: Vec<i8>,
    pub scale: f32,
}

impl QuantizedVector {
    /// Nothing where a number is not finite.
    pub fn quantize(vector: &[f32], stride: usize) -> Option<Self> {
        let length = vector
            .iter()
            .map(|&x| f64::from(x) * f64::from(x))
            .sum::<f64>()
            .sqrt();
        if !length.is_finite() {
            return None;
        }
        let largest = vector
            .iter()
            .fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let (mut coarse, mut fine) = (vec![0; stride], vec![0; stride]);
        if largest == 0.0 {
            return Some(Self {
                coarse,
                fine,
                scale: 0.0,
            });
        }
        for (at, &x) in vector.iter().enumerate() {
            // Divided first: the inverse of a very small number would not be finite.
            let steps = x / largest * MAX_QUANTIZED;
            let whole = round_to_i8(steps);
            coarse[at] = whole;
            fine[at] = round_to_i8((steps - f32::from(whole)) * FINE_STEPS);
        }
        let scale = (f64::from(largest) / f64::from(MAX_QUANTIZED) / length) as f32;
        Some(Self {
            coarse,
            fine,
            scale,
        })
    }
}

/// Without the call that `round` is on machines that are not the newest.
fn round_to_i8(number: f32) -> i8 {
    (number + 0.5_f32.copysign(number)) as i8
}

/// The product as exactly as the rows are known, without their scales.
pub(super) fn dot_fine(query: &QuantizedVector, coarse: &[i8], fine: &[i8]) -> f64 {
    let value = |coarse: i8, fine: i8| f32::from(coarse) + f32::from(fine) / FINE_STEPS;
    let own = query.coarse.iter().zip(&query.fine);
    own.zip(coarse.iter().zip(fine))
        .map(|((&qc, &qf), (&rc, &rf))| f64::from(value(qc, qf) * value(rc, rf)))
        .sum()
}

/// A vector as it is stored: 32-bit numbers, the lowest byte first.
pub fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// A stored vector.
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<f32>, VectorError> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(VectorError::Bytes(bytes.len()));
    }
    let vector: Vec<f32> = numbers
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes))
        .collect();
    if vector.iter().all(|x| x.is_finite()) {
        Ok(vector)
    } else {
        Err(VectorError::NotFinite)
    }
}
