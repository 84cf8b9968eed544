//! One JSON object a line.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{BadLine, Line, moment};
use crate::graph::view::Item;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    subject: String,
    predicate: String,
    object: String,
    #[serde(default)]
    subject_type: String,
    #[serde(default)]
    object_type: String,
    #[serde(default)]
    properties: Option<Map<String, Value>>,
    #[serde(default)]
    valid_from: Option<String>,
    #[serde(default)]
    valid_to: Option<String>,
    #[serde(default)]
    source: Option<String>,
    /// What commands print beside it.
    #[serde(default, rename = "sources")]
    _sources: Option<Vec<String>>,
}

pub fn read(text: &str) -> Result<Option<Line<'_>>, BadLine> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let fields: Fields = serde_json::from_str(text).map_err(|error| BadLine::Json(error.to_string()))?;
    let properties = fields.properties.filter(|properties| !properties.is_empty());
    Ok(Some(Line {
        subject: Cow::Owned(fields.subject),
        predicate: Cow::Owned(fields.predicate),
        object: Cow::Owned(fields.object),
        subject_type: Cow::Owned(fields.subject_type),
        object_type: Cow::Owned(fields.object_type),
        properties: properties.map_or(Cow::Borrowed(""), |all| Cow::Owned(Value::Object(all).to_string())),
        valid_from: moment(&fields.valid_from.unwrap_or_default())?,
        valid_to: moment(&fields.valid_to.unwrap_or_default())?,
        source: Cow::Owned(fields.source.unwrap_or_default()),
    }))
}

pub fn write(out: &mut dyn Write, item: &Item<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, item)?;
    out.write_all(b"\n")
}
