//! Calls put together from fragments: by id, by index, or, where a server gives neither, by what is complete.

use std::collections::HashMap;

use lango_domain::event::CallId;
use lango_domain::model::{ToolCall, ModelError};
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
    open: Vec<PartialToolCall>,
    meter: ReplyMeter,
}

#[derive(Debug)]
struct PartialToolCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    wholeness: Wholeness,
}

/// Whether JSON that comes in pieces is whole so far. It is not read again from its beginning for each piece.
#[derive(Debug, Default)]
struct Wholeness {
    has_begun: bool,
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

impl Wholeness {
    fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.has_begun |= !byte.is_ascii_whitespace();
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_text => self.is_escaped = true,
                b'"' => self.is_text = !self.is_text,
                b'{' | b'[' if !self.is_text => self.depth += 1,
                b'}' | b']' if !self.is_text => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.has_begun && self.depth == 0 && !self.is_text
    }
}

impl ToolCallAssembler {
    pub fn take(&mut self, piece: &ToolCallDelta<'_>) -> Result<(), ModelError> {
        let at = self.place(piece)?;
        let open = &mut self.open[at];
        if open.id.is_empty() {
            self.meter.call_bytes(piece.id.len())?;
            piece.id.clone_into(&mut open.id);
        }
        if open.name.is_empty() {
            self.meter.call_bytes(piece.name.len())?;
            piece.name.clone_into(&mut open.name);
        }
        self.meter.call_bytes(piece.arguments.len())?;
        open.arguments.push_str(piece.arguments);
        open.wholeness.take(piece.arguments);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The calls in the order in which they began.
    pub fn finish(&mut self, names_back: &HashMap<String, String>) -> Result<Vec<ToolCall>, ModelError> {
        let open = std::mem::take(&mut self.open).into_iter();
        let calls = open.map(|open| {
            Ok(ToolCall {
                id: CallId::new(open.id),
                name: names_back.get(&open.name).cloned().unwrap_or(open.name),
                arguments: arguments(&open.arguments, &mut self.meter)?,
            })
        });
        calls.collect()
    }

    /// The open call that a piece belongs to; a new one where it begins one.
    fn place(&mut self, piece: &ToolCallDelta<'_>) -> Result<usize, ModelError> {
        let found = if piece.id.is_empty() {
            self.by_index_or_last(piece)
        } else {
            let same_id = self.open.iter().rposition(|open| open.id == piece.id && open.index == piece.index);
            same_id.or_else(|| {
                let at =
                    self.open.iter().rposition(|open| open.index == piece.index && piece.index.is_some())?;
                self.open[at].id.is_empty().then_some(at)
            })
        };
        if let Some(at) = found {
            return Ok(at);
        }
        self.meter.call()?;
        let (id, name, arguments) = (String::new(), String::new(), String::new());
        let wholeness = Wholeness::default();
        self.open.push(PartialToolCall { index: piece.index, id, name, arguments, wholeness });
        Ok(self.open.len() - 1)
    }

    fn by_index_or_last(&self, piece: &ToolCallDelta<'_>) -> Option<usize> {
        let at = match piece.index {
            Some(index) => self.open.iter().rposition(|open| open.index == Some(index))?,
            None => self.open.len().checked_sub(1)?,
        };
        // A second name behind whole arguments begins another call, whatever the index says.
        let begins_another =
            !piece.name.is_empty() && !self.open[at].name.is_empty() && self.open[at].wholeness.is_whole();
        (!begins_another).then_some(at)
    }
}

/// An object where it is one, nothing where there is nothing, and what was said where it is not JSON.
pub(crate) fn arguments(text: &str, meter: &mut ReplyMeter) -> Result<Value, ModelError> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    meter.values(lango_net::json::values(text.as_bytes()))?;
    Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn calls(pieces: &[(Option<u64>, &str, &str, &str)]) -> Vec<(String, String, Value)> {
        let mut assembler = ToolCallAssembler::default();
        for (index, id, name, arguments) in pieces {
            assembler.take(&ToolCallDelta { index: *index, id, name, arguments }).unwrap();
        }
        let calls = assembler.finish(&HashMap::new()).unwrap().into_iter();
        calls.map(|call| (call.id.to_string(), call.name, call.arguments)).collect()
    }

    fn two() -> Vec<(String, String, Value)> {
        vec![("1".into(), "a".into(), json!({ "x": 1 })), ("2".into(), "b".into(), json!({}))]
    }

    #[test]
    fn fragments_find_their_call_by_index_or_by_id() {
        assert_eq!(
            calls(&[
                (Some(0), "1", "a", ""),
                (Some(0), "", "", "{\"x\""),
                (Some(1), "2", "b", "{"),
                (Some(0), "", "", ":1}"),
                (Some(1), "", "", "}")
            ]),
            two()
        );
        assert_eq!(
            calls(&[
                (None, "1", "a", "{\"x\""),
                (None, "2", "b", "{"),
                (None, "1", "", ":1}"),
                (None, "2", "", "}")
            ]),
            two()
        );
        assert_eq!(
            calls(&[(Some(0), "1", "a", "{\"x\":1}"), (Some(0), "2", "b", "{}")]),
            two(),
            "one index for all"
        );
        assert_eq!(
            calls(&[(Some(0), "1", "a", "{\"x\":"), (Some(0), "1", "a", "1}"), (Some(1), "2", "b", "")]),
            two(),
            "id repeated"
        );
    }

    #[test]
    fn a_server_that_gives_neither_is_understood() {
        let found = calls(&[(None, "", "a", "{\"x\":"), (None, "", "", "1}"), (None, "", "b", "{}")]);
        assert_eq!(
            found,
            [(String::new(), "a".into(), json!({ "x": 1 })), (String::new(), "b".into(), json!({}))]
        );
    }

    #[test]
    fn a_name_that_comes_with_every_piece_begins_no_call_before_the_arguments_are_whole() {
        let pieces =
            ["{\"a\":\"", "}", "\\", "\"{", "\",\"b\":[", "]}"].map(|piece| (Some(0), "", "a", piece));
        assert_eq!(calls(&pieces), [(String::new(), "a".into(), json!({ "a": "}\"{", "b": [] }))]);
    }

    /// B105: the time that pieces take does not grow with what came before them.
    #[test]
    fn many_pieces_of_long_arguments_are_taken() {
        let mut assembler = ToolCallAssembler::default();
        let begin = format!("{{\"a\":\"{}", "x".repeat(1024 * 1024));
        assembler.take(&ToolCallDelta { index: Some(0), id: "", name: "a", arguments: &begin }).unwrap();
        for _ in 0..100_000 {
            assembler.take(&ToolCallDelta { index: Some(0), id: "", name: "a", arguments: "y" }).unwrap();
        }
        assert_eq!(assembler.finish(&HashMap::new()).unwrap().len(), 1);
    }

    #[test]
    fn what_is_not_json_is_passed_on() {
        assert_eq!(calls(&[(Some(0), "1", "a", "{oops")]), [("1".into(), "a".into(), json!("{oops"))]);
        assert_eq!(calls(&[(Some(0), "", "", "")]), [(String::new(), String::new(), json!({}))]);
    }
}
