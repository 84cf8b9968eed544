//! Reader for the safetensors format: a length, a JSON header, then the numbers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;

/// Headers of real models take a few kilobytes.
const MAX_HEADER_BYTES: usize = 16 * 1024 * 1024;

/// The tensors of a file.
pub(super) struct Tensors {
    bytes: Arc<[u8]>,
    start: usize,
    header: HashMap<String, TensorInfo>,
}

#[derive(Clone, Deserialize)]
struct TensorInfo {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// The binary format of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberType {
    F64,
    F32,
    F16,
    Bf16,
    I8,
    I32,
    I64,
}

/// A tensor of one or two dimensions. Rows are decoded on access, so it takes no more memory than
/// the file.
#[derive(Clone)]
pub(super) struct Table {
    bytes: Arc<[u8]>,
    range: Range<usize>,
    dtype: NumberType,
    pub rows: usize,
    pub width: usize,
}

impl Tensors {
    /// Parses the header. The error is a text for the user.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, String> {
        let (length, rest) = bytes
            .split_first_chunk::<8>()
            .ok_or("the file is too short")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_HEADER_BYTES || length > rest.len() {
            return Err("the header is longer than the file or the limit".to_owned());
        }
        let entries: HashMap<String, serde_json::Value> =
            serde_json::from_slice(&rest[..length])
                .map_err(|error| format!("invalid header: {error}"))?;
        let header = entries
            .into_iter()
            .filter(|(name, _)| name != "__metadata__")
            .map(|(name, value)| match serde_json::from_value(value) {
                Ok(info) => Ok((name, info)),
                Err(error) => Err(format!("invalid header: {name}: {error}")),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            start: 8 + length,
            header,
            bytes: bytes.into(),
        })
    }

    /// Returns the table of this name, if it exists. A one-dimensional tensor has one number per row.
    pub fn table(&self, name: &str) -> Result<Option<Table>, String> {
        let Some(TensorInfo {
            dtype,
            shape,
            data_offsets: (from, to),
        }) = self.header.get(name)
        else {
            return Ok(None);
        };
        let number_type = NumberType::from_name(dtype)
            .ok_or_else(|| format!("{name}: unsupported number type {dtype}"))?;
        let (rows, width) = match shape[..] {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => {
                return Err(format!(
                    "{name}: {} dimensions; expected 1 or 2",
                    shape.len()
                ));
            }
        };
        let size = rows
            .checked_mul(width)
            .and_then(|numbers| numbers.checked_mul(number_type.byte_len()));
        let end = to
            .checked_add(self.start)
            .filter(|&end| from <= to && end <= self.bytes.len());
        match end {
            Some(end) if size == Some(to - from) => {
                let range = self.start + from..end;
                Ok(Some(Table {
                    bytes: Arc::clone(&self.bytes),
                    range,
                    dtype: number_type,
                    rows,
                    width,
                }))
            }
            _ => Err(format!(
                "{name}: the data does not match the shape or exceeds the file"
            )),
        }
    }
}

impl Table {
    /// Calls `each` with the numbers of a row in order; with none if the row does not exist.
    pub fn for_each_in_row(&self, at: usize, mut each: impl FnMut(usize, f64)) {
        let size = self.dtype.byte_len();
        let start = self.range.start + at.min(self.rows) * self.width * size;
        let end = (start + self.width * size).min(self.range.end);
        let bytes = &self.bytes[start.min(end)..end];
        match self.dtype {
            // The two most frequent types have their own loops for speed.
            NumberType::F32 => {
                let numbers = bytes
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|&bytes| f32::from_le_bytes(bytes));
                numbers
                    .enumerate()
                    .for_each(|(at, number)| each(at, f64::from(number)));
            }
            NumberType::I8 => {
                bytes
                    .iter()
                    .enumerate()
                    .for_each(|(at, &byte)| each(at, f64::from(byte.cast_signed())));
            }
            number_type => {
                let numbers = bytes
                    .chunks_exact(size)
                    .map(|bytes| number_type.decode(bytes));
                numbers
                    .enumerate()
                    .for_each(|(at, number)| each(at, number));
            }
        }
    }

    /// Returns the single number of a row of a one-dimensional tensor.
    pub fn scalar(&self, at: usize) -> Option<f64> {
        let mut single = None;
        self.for_each_in_row(at, |_, number| single = Some(number));
        single
    }
}

impl NumberType {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "F64" => Self::F64,
            "F32" => Self::F32,
            "F16" => Self::F16,
            "BF16" => Self::Bf16,
            "I8" => Self::I8,
            "I32" => Self::I32,
            "I64" => Self::I64,
            _ => return None,
        })
    }

    fn byte_len(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I8 => 1,
        }
    }

    /// Decodes exactly `byte_len` bytes, in little-endian order.
    fn decode(self, bytes: &[u8]) -> f64 {
        let bits = bytes
            .iter()
            .rev()
            .fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
        match self {
            Self::F64 => f64::from_bits(bits),
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            Self::F16 => f16_to_f64(bits as u16),
            Self::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
            Self::I8 => f64::from(bits as u8 as i8),
            Self::I32 => f64::from(bits as u32 as i32),
            Self::I64 => bits as i64 as f64,
        }
    }
}

/// Converts an IEEE 754 half-precision number: 1 bit sign, 5 bits exponent, 10 bits fraction.
fn f16_to_f64(bits: u16) -> f64 {
    let rest = f64::from(bits & 0x3ff);
    let size = match (bits >> 10) & 0x1f {
        0 => rest / 1024.0 / 16_384.0,
        31 if rest == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + rest / 1024.0) * f64::from(1_u32 << exponent) / 32_768.0,
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_half_precision_numbers() {
        let cases = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_953_125),
            (0x0001, 5.960_464_477_539_063e-8),
            (0x7bff, 65_504.0),
        ];
        for (bits, number) in cases {
            assert_eq!(f16_to_f64(bits), number);
        }
        assert!(f16_to_f64(0x7e00).is_nan());
    }
}
