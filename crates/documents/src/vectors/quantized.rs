//! Vectors quantized to two bytes per dimension, and their dot product.

use super::VectorError;

/// Steps of the second byte in one unit of the first.
const FINE_STEPS: f32 = 254.0;
/// The largest value of a byte.
const MAX_QUANTIZED: f32 = 127.0;

/// A vector of length one, as `scale × (coarse + fine / 254)`. The zero vector has the scale 0.
pub(super) struct QuantizedVector {
    pub coarse: Vec<i8>,
    pub fine: Vec<i8>,
    pub scale: f32,
}

impl QuantizedVector {
    /// Returns `None` if a number is not finite.
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
            // Divides first: the inverse of a very small number would not be finite.
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

/// Rounds without `f32::round`, which is a function call on older processors.
fn round_to_i8(number: f32) -> i8 {
    (number + 0.5_f32.copysign(number)) as i8
}

/// Returns the dot product with full precision, without the scales.
pub(super) fn dot_fine(query: &QuantizedVector, coarse: &[i8], fine: &[i8]) -> f64 {
    let value = |coarse: i8, fine: i8| f32::from(coarse) + f32::from(fine) / FINE_STEPS;
    let query = query.coarse.iter().zip(&query.fine);
    query
        .zip(coarse.iter().zip(fine))
        .map(|((&qc, &qf), (&rc, &rf))| f64::from(value(qc, qf) * value(rc, rf)))
        .sum()
}

/// Returns the stored form of a vector: little-endian 32-bit floats.
pub fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Returns the vector of its stored form.
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
