//! Calls put together from fragments: by id, by index, or, where a server gives neither, by what is complete.

use std::collections::HashMap;

use lango_domain::event::CallId;
use lango_domain::model::{ModelError, ToolCall};
use lango_domain::reply_limits::ReplyMeter;
use serde_json::{Map, Value};

/// A piece of a call, as OpenAI-compatible servers send it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolCallDelta<'a> {
    pub index: Option<u64>,
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
}

#[derive(Debug, Default)]
pub(crate) struct ToolCallAssembler {
    partial: Vec<PartialToolCall>,
    meter: ReplyMeter,
}

#[derive(Debug)]
struct PartialToolCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    completeness: JsonCompleteness,
}

/// Whether JSON that comes in pieces is whole so far. It is not read again from its beginning for each piece.
#[derive(Debug, Default)]
struct JsonCompleteness {
    has_started: bool,
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl JsonCompleteness {
    fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.has_started |= !byte.is_ascii_whitespace();
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_in_string => self.is_escaped = true,
                b'"' => self.is_in_string = !self.is_in_string,
                b'{' | b'[' if !self.is_in_string => self.depth += 1,
                b'}' | b']' if !self.is_in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.has_started && self.depth == 0 && !self.is_in_string
    }
}

impl ToolCallAssembler {
    pub fn push(&mut self, piece: &ToolCallDelta<'_>) -> Result<(), ModelError> {
        let at = self.find_or_insert(piece)?;
        let open = &mut self.partial[at];
        if open.id.is_empty() {
            self.meter.add_call_bytes(piece.id.len())?;
            piece.id.clone_into(&mut open.id);
        }
        if open.name.is_empty() {
            self.meter.add_call_bytes(piece.name.len())?;
            piece.name.clone_into(&mut open.name);
        }
        self.meter.add_call_bytes(piece.arguments.len())?;
        open.arguments.push_str(piece.arguments);
        open.completeness.push(piece.arguments);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    /// The calls in the order in which they began.
    pub fn finish(
        &mut self,
        names_back: &HashMap<String, String>,
    ) -> Result<Vec<ToolCall>, ModelError> {
        let open = std::mem::take(&mut self.partial).into_iter();
        let calls = open.map(|open| {
            Ok(ToolCall {
                id: CallId::new(open.id),
                name: names_back.get(&open.name).cloned().unwrap_or(open.name),
                arguments: parse_arguments(&open.arguments, &mut self.meter)?,
            })
        });
        calls.collect()
    }

    /// The open call that a piece belongs to; a new one where it begins one.
    fn find_or_insert(&mut self, piece: &ToolCallDelta<'_>) -> Result<usize, ModelError> {
        let found = if piece.id.is_empty() {
            self.find_by_index_or_last(piece)
        } else {
            let same_id = self
                .partial
                .iter()
                .rposition(|open| open.id == piece.id && open.index == piece.index);
            same_id.or_else(|| {
                let at = self
                    .partial
                    .iter()
                    .rposition(|open| open.index == piece.index && piece.index.is_some())?;
                self.partial[at].id.is_empty().then_some(at)
            })
        };
        if let Some(at) = found {
            return Ok(at);
        }
        self.meter.add_call()?;
        let (id, name, arguments) = (String::new(), String::new(), String::new());
        let wholeness = JsonCompleteness::default();
        self.partial.push(PartialToolCall {
            index: piece.index,
            id,
            name,
            arguments,
            completeness: wholeness,
        });
        Ok(self.partial.len() - 1)
    }

    fn find_by_index_or_last(&self, piece: &ToolCallDelta<'_>) -> Option<usize> {
        let at = match piece.index {
            Some(index) => self
                .partial
                .iter()
                .rposition(|open| open.index == Some(index))?,
            None => self.partial.len().checked_sub(1)?,
        };
        // A second name behind whole arguments begins another call, whatever the index says.
        let begins_another = !piece.name.is_empty()
            && !self.partial[at].name.is_empty()
            && self.partial[at].completeness.is_complete();
        (!begins_another).then_some(at)
    }
}

/// An object where it is one, nothing where there is nothing, and what was said where it is not JSON.
pub(crate) fn parse_arguments(text: &str, meter: &mut ReplyMeter) -> Result<Value, ModelError> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    meter.add_values(lango_net::json::count_values(text.as_bytes()))?;
    Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn assemble(pieces: &[(Option<u64>, &str, &str, &str)]) -> Vec<(String, String, Value)> {
        let mut assembler = ToolCallAssembler::default();
        for (index, id, name, arguments) in pieces {
            assembler
                .push(&ToolCallDelta {
                    index: *index,
                    id,
                    name,
                    arguments,
                })
                .unwrap();
        }
        let calls = assembler.finish(&HashMap::new()).unwrap().into_iter();
        calls
            .map(|call| (call.id.to_string(), call.name, call.arguments))
            .collect()
    }

    fn two_calls() -> Vec<(String, String, Value)> {
        vec![
            ("1".into(), "a".into(), json!({ "x": 1 })),
            ("2".into(), "b".into(), json!({})),
        ]
    }

    #[test]
    fn fragments_find_their_call_by_index_or_by_id() {
        assert_eq!(
            assemble(&[
                (Some(0), "1", "a", ""),
                (Some(0), "", "", "{\"x\""),
                (Some(1), "2", "b", "{"),
                (Some(0), "", "", ":1}"),
                (Some(1), "", "", "}")
            ]),
            two_calls()
        );
        assert_eq!(
            assemble(&[
                (None, "1", "a", "{\"x\""),
                (None, "2", "b", "{"),
                (None, "1", "", ":1}"),
                (None, "2", "", "}")
            ]),
            two_calls()
        );
        assert_eq!(
            assemble(&[(Some(0), "1", "a", "{\"x\":1}"), (Some(0), "2", "b", "{}")]),
            two_calls(),
            "one index for all"
        );
        assert_eq!(
            assemble(&[
                (Some(0), "1", "a", "{\"x\":"),
                (Some(0), "1", "a", "1}"),
                (Some(1), "2", "b", "")
            ]),
            two_calls(),
            "id repeated"
        );
    }

    #[test]
    fn a_server_that_gives_neither_is_understood() {
        let found = assemble(&[
            (None, "", "a", "{\"x\":"),
            (None, "", "", "1}"),
            (None, "", "b", "{}"),
        ]);
        assert_eq!(
            found,
            [
                (String::new(), "a".into(), json!({ "x": 1 })),
                (String::new(), "b".into(), json!({}))
            ]
        );
    }

    #[test]
    fn a_name_that_comes_with_every_piece_begins_no_call_before_the_arguments_are_whole() {
        let pieces = ["{\"a\":\"", "}", "\\", "\"{", "\",\"b\":[", "]}"]
            .map(|piece| (Some(0), "", "a", piece));
        assert_eq!(
            assemble(&pieces),
            [(String::new(), "a".into(), json!({ "a": "}\"{", "b": [] }))]
        );
    }

    /// B105: the time that pieces take does not grow with what came before them.
    #[test]
    fn many_pieces_of_long_arguments_are_taken() {
        let mut assembler = ToolCallAssembler::default();
        let begin = format!("{{\"a\":\"{}", "x".repeat(1024 * 1024));
        assembler
            .push(&ToolCallDelta {
                index: Some(0),
                id: "",
                name: "a",
                arguments: &begin,
            })
            .unwrap();
        for _ in 0..100_000 {
            assembler
                .push(&ToolCallDelta {
                    index: Some(0),
                    id: "",
                    name: "a",
                    arguments: "y",
                })
                .unwrap();
        }
        assert_eq!(assembler.finish(&HashMap::new()).unwrap().len(), 1);
    }

    #[test]
    fn what_is_not_json_is_passed_on() {
        assert_eq!(
            assemble(&[(Some(0), "1", "a", "{oops")]),
            [("1".into(), "a".into(), json!("{oops"))]
        );
        assert_eq!(
            assemble(&[(Some(0), "", "", "")]),
            [(String::new(), String::new(), json!({}))]
        );
    }
}
