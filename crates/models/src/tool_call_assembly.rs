//! Assembles tool calls from deltas: by id, by index, or by complete arguments if a server sends
//! neither.

use std::collections::HashMap;

use lango_domain::event::CallId;
use lango_domain::model::{ModelError, ToolCall};
use lango_domain::reply_limits::ReplyMeter;
use serde_json::{Map, Value};

/// Part of a tool call, as OpenAI-compatible servers send it.
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

/// Tracks incrementally whether JSON text is complete, without parsing it again for each part.
#[derive(Debug, Default)]
struct JsonCompleteness {
    has_started: bool,
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl JsonCompleteness {
    fn push(&mut self, text: &str) {
        for byte in text.bytes() {
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
    pub fn push(&mut self, delta: &ToolCallDelta<'_>) -> Result<(), ModelError> {
        let at = self.find_or_insert(delta)?;
        let call = &mut self.partial[at];
        if call.id.is_empty() {
            self.meter.add_call_bytes(delta.id.len())?;
            delta.id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            self.meter.add_call_bytes(delta.name.len())?;
            delta.name.clone_into(&mut call.name);
        }
        self.meter.add_call_bytes(delta.arguments.len())?;
        call.arguments.push_str(delta.arguments);
        call.completeness.push(delta.arguments);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    /// Returns the calls in the order in which they began.
    pub fn finish(
        &mut self,
        original_names: &HashMap<String, String>,
    ) -> Result<Vec<ToolCall>, ModelError> {
        let calls = std::mem::take(&mut self.partial).into_iter().map(|call| {
            Ok(ToolCall {
                id: CallId::new(call.id),
                name: original_names.get(&call.name).cloned().unwrap_or(call.name),
                arguments: parse_arguments(&call.arguments, &mut self.meter)?,
            })
        });
        calls.collect()
    }

    /// Returns the index of the partial call that a delta belongs to; starts a new call if there is
    /// none.
    fn find_or_insert(&mut self, delta: &ToolCallDelta<'_>) -> Result<usize, ModelError> {
        let found = if delta.id.is_empty() {
            self.find_by_index_or_last(delta)
        } else {
            let same_id = self
                .partial
                .iter()
                .rposition(|call| call.id == delta.id && call.index == delta.index);
            same_id.or_else(|| {
                let at = self
                    .partial
                    .iter()
                    .rposition(|call| call.index == delta.index && delta.index.is_some())?;
                self.partial[at].id.is_empty().then_some(at)
            })
        };
        if let Some(at) = found {
            return Ok(at);
        }
        self.meter.add_call()?;
        let (id, name, arguments) = (String::new(), String::new(), String::new());
        let completeness = JsonCompleteness::default();
        self.partial.push(PartialToolCall {
            index: delta.index,
            id,
            name,
            arguments,
            completeness,
        });
        Ok(self.partial.len() - 1)
    }

    fn find_by_index_or_last(&self, delta: &ToolCallDelta<'_>) -> Option<usize> {
        let at = match delta.index {
            Some(index) => self
                .partial
                .iter()
                .rposition(|call| call.index == Some(index))?,
            None => self.partial.len().checked_sub(1)?,
        };
        // A second name after complete arguments starts another call, whatever the index is.
        let starts_another = !delta.name.is_empty()
            && !self.partial[at].name.is_empty()
            && self.partial[at].completeness.is_complete();
        (!starts_another).then_some(at)
    }
}

/// Parses the arguments. Blank text becomes an empty object, invalid JSON a string.
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

    fn assemble(deltas: &[(Option<u64>, &str, &str, &str)]) -> Vec<(String, String, Value)> {
        let mut assembler = ToolCallAssembler::default();
        for (index, id, name, arguments) in deltas {
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
    fn deltas_match_calls_by_index_or_id() {
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
    fn deltas_without_index_and_id_are_assembled() {
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
    fn repeated_names_start_no_call_before_the_arguments_are_complete() {
        let deltas = ["{\"a\":\"", "}", "\\", "\"{", "\",\"b\":[", "]}"]
            .map(|delta| (Some(0), "", "a", delta));
        assert_eq!(
            assemble(&deltas),
            [(String::new(), "a".into(), json!({ "a": "}\"{", "b": [] }))]
        );
    }

    /// B105: the time per delta does not grow with the length of the arguments.
    #[test]
    fn many_deltas_of_long_arguments_are_assembled() {
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
    fn invalid_json_arguments_become_a_string() {
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
