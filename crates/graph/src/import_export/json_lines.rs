//! JSON Lines: one JSON object per line.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{FactLine, FactLineError, parse_moment};
use crate::snapshot::FactItem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonFact {
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
    /// Printed by commands in addition to `source`; ignored here.
    #[serde(default, rename = "sources")]
    _sources: Option<Vec<String>>,
}

pub fn parse_line(text: &str) -> Result<Option<FactLine<'_>>, FactLineError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let fields: JsonFact =
        serde_json::from_str(text).map_err(|error| FactLineError::Json(error.to_string()))?;
    let properties = fields
        .properties
        .filter(|properties| !properties.is_empty());
    Ok(Some(FactLine {
        subject: Cow::Owned(fields.subject),
        predicate: Cow::Owned(fields.predicate),
        object: Cow::Owned(fields.object),
        subject_type: Cow::Owned(fields.subject_type),
        object_type: Cow::Owned(fields.object_type),
        properties: properties.map_or(Cow::Borrowed(""), |all| {
            Cow::Owned(Value::Object(all).to_string())
        }),
        valid_from: parse_moment(&fields.valid_from.unwrap_or_default())?,
        valid_to: parse_moment(&fields.valid_to.unwrap_or_default())?,
        source: Cow::Owned(fields.source.unwrap_or_default()),
    }))
}

pub fn write_line(out: &mut dyn Write, item: &FactItem<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, item)?;
    out.write_all(b"\n")
}
