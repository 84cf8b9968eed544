//! Parses YAML, and JSON as a subset of it, into spanned values. Supports plain data only: no anchors,
//! no tags, one document.

use std::collections::HashSet;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span};
use serde_json::Value;

use super::{SpannedEntry, SpannedError, SpannedKind, SpannedValue};

/// The nesting limit, so that hostile text cannot exhaust the stack. No settings file needs more.
const MAX_DEPTH: usize = 32;

/// Parses one document; empty text is an empty map.
pub fn parse(text: &str) -> Result<SpannedValue, SpannedError> {
    let mut reader = YamlReader {
        events: Parser::new_from_str(text),
    };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(..), _) => {}
            (Event::StreamEnd | Event::DocumentEnd, _) => {
                return Ok(SpannedValue {
                    line: 1,
                    column: 1,
                    kind: SpannedKind::Map(Vec::new()),
                });
            }
            (event, span) => {
                let node = reader.node(event, span, 0)?;
                reader.expect_end()?;
                return Ok(node);
            }
        }
    }
}

struct YamlReader<I> {
    events: I,
}

impl<'i, I> YamlReader<I>
where
    I: Iterator<Item = Result<(Event<'i>, Span), granit_parser::ScanError>>,
{
    fn next(&mut self) -> Result<(Event<'i>, Span), SpannedError> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let (line, column) = position(error.marker());
                Err(SpannedError::at(line, column, error.info()))
            }
            None => Err(SpannedError::new(1, "unexpected end of the text")),
        }
    }

    fn expect_end(&mut self) -> Result<(), SpannedError> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentEnd, _) => {}
                (_, span) => {
                    let (line, column) = position(&span.start);
                    let message = "only one document is allowed";
                    return Err(SpannedError::at(line, column, message));
                }
            }
        }
    }

    fn node(
        &mut self,
        event: Event<'i>,
        span: Span,
        depth: usize,
    ) -> Result<SpannedValue, SpannedError> {
        let (line, column) = position(&span.start);
        if depth > MAX_DEPTH {
            return Err(SpannedError::at(line, column, "nested too deeply"));
        }
        let kind = match event {
            Event::Scalar(text, style, 0, None) => SpannedKind::Scalar(scalar(&text, style)),
            Event::SequenceStart(_, 0, None) => SpannedKind::List(self.list(depth)?),
            Event::MappingStart(_, 0, None) => SpannedKind::Map(self.map(depth)?),
            _ => {
                let message = "anchors, aliases and tags are not supported";
                return Err(SpannedError::at(line, column, message));
            }
        };
        Ok(SpannedValue { line, column, kind })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<SpannedValue>, SpannedError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<SpannedEntry>, SpannedError> {
        let mut entries: Vec<SpannedEntry> = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let (event, span) = self.next()?;
            let (line, column) = position(&span.start);
            let key = match event {
                Event::MappingEnd => return Ok(entries),
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(SpannedError::at(line, column, "keys must be plain text")),
            };
            if !seen.insert(key.clone()) {
                let message = format!("duplicate key `{key}`");
                return Err(SpannedError::at(line, column, message));
            }
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            entries.push(SpannedEntry {
                key,
                line,
                column,
                value,
            });
        }
    }
}

/// Returns line and column, both starting at 1.
fn position(marker: &Marker) -> (usize, usize) {
    (marker.line(), marker.col() + 1)
}

/// Parses a scalar. Quoted text is always a string; numbers are decimal.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::from(text)),
    }
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    let digits = text.trim_start_matches(['-', '+']);
    let looks_numeric = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    text.parse::<f64>()
        .ok()
        .filter(|value| looks_numeric && value.is_finite())
        .map(Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parses_plain_yaml_with_lines() {
        let node = parse("a: 1\nb:\n  - x\n  - 'true'\nc: {d: yes, e: 1.5, f: ~}\n").unwrap();
        assert_eq!(
            node.to_value(),
            json!({ "a": 1, "b": ["x", "true"], "c": { "d": "yes", "e": 1.5, "f": null } })
        );
        assert_eq!(node.line_of(&["b", "1"]), 4);
        assert_eq!(node.line_of(&["c", "e"]), 5);
        assert_eq!(node.line_of(&["nowhere"]), 1);
    }

    #[test]
    fn values_and_keys_know_their_columns() {
        let node = parse("a: {bé: [1, 'x']}\n").unwrap();
        let SpannedKind::Map(entries) = &node.kind else {
            panic!("a map")
        };
        assert_eq!((entries[0].column, entries[0].value.column), (1, 4));
        let SpannedKind::Map(inner) = &entries[0].value.kind else {
            panic!("a map")
        };
        assert_eq!((inner[0].column, inner[0].value.column), (5, 9));
        let SpannedKind::List(items) = &inner[0].value.kind else {
            panic!("a list")
        };
        assert_eq!((items[0].column, items[1].column), (10, 13));
        let error = parse("a: 1\nb: &x 2\n").unwrap_err();
        assert_eq!((error.line, error.column), (2, 7));
    }

    #[test]
    fn parses_json_with_tabs() {
        let node =
            parse("{\n\t\"a\": {\n\t\t\"b\": [1, \"x\\u00e9\", false, null]\n\t}\n}\n").unwrap();
        assert_eq!(
            node.to_value(),
            json!({ "a": { "b": [1, "xé", false, null] } })
        );
        assert_eq!(node.line_of(&["a", "b"]), 3);
    }

    #[test]
    fn empty_text_is_an_empty_map() {
        assert_eq!(parse("").unwrap().to_value(), json!({}));
        assert_eq!(parse("# only a comment\n").unwrap().to_value(), json!({}));
    }

    #[test]
    fn rejects_anything_but_plain_data_with_its_line() {
        for (text, line) in [
            ("a: &x 1\nb: *x\n", 1),
            ("a: 1\na: 2\n", 2),
            ("a: 1\n---\nb: 2\n", 2),
            ("a: 1\nb: [1, 2\n", 2),
            ("a: !!binary x\n", 1),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.line >= line, "{text:?}: {error}");
        }
        assert!(parse(&format!("{}{}", "[".repeat(100), "]".repeat(100))).is_err());
    }
}
