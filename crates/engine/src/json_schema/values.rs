//! Values and keywords of schemas.

use std::cmp::Ordering;
use std::io;

use serde_json::{Map, Number, Value};

/// Bytes of a value in a message.
const MAX_SHOWN_BYTES: usize = 200;

pub(super) fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        _ => true,
    }
}

/// Compares numbers; integers exactly.
pub(super) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

pub(super) fn values<'a>(
    keywords: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'a Value> {
    let list = keywords.get(name).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Returns a limit of a count; `3.0` is 3.
pub(super) fn count_limit(keywords: &Map<String, Value>, name: &str) -> Option<u64> {
    let limit = keywords.get(name)?;
    let from_float = || {
        let float = limit.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0);
        float.map(|n| n as u64)
    };
    limit.as_u64().or_else(from_float)
}

/// Returns the start of the JSON of a value.
pub(super) fn shown(value: &Value) -> String {
    let mut start = Start(Vec::new());
    let is_whole = serde_json::to_writer(&mut start, value).is_ok();
    let text = String::from_utf8_lossy(&start.0);
    match is_whole {
        true => text.into_owned(),
        false => format!("{}…", text.trim_end_matches('\u{fffd}')),
    }
}

/// Takes the first bytes that are written and fails at the next.
struct Start(Vec<u8>);

impl io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = MAX_SHOWN_BYTES - self.0.len();
        let taken = bytes.len().min(left);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
