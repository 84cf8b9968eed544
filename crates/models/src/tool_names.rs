//! Tool names on the wire: providers accept at most 64 letters, digits, `_` and `-`.

use std::borrow::Cow;
use std::collections::HashMap;

use lango_domain::model::ToolDeclaration;

const MAX_NAME_LEN: usize = 64;

/// Returns `name` in a form that providers accept: unchanged if possible, else shortened with a
/// hash that keeps it unique.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME_LEN && name.chars().all(is_allowed) {
        return Cow::Borrowed(name);
    }
    let plain: String = name
        .chars()
        .map(|c| if is_allowed(c) { c } else { '_' })
        .take(MAX_NAME_LEN - 9)
        .collect();
    Cow::Owned(format!("{plain}_{:08x}", fingerprint(name)))
}

/// Maps wire names back to tool names; contains only those that differ.
pub(crate) fn original_names(tools: &[ToolDeclaration]) -> HashMap<String, String> {
    let shortened = tools.iter().filter_map(|tool| match wire_name(&tool.name) {
        Cow::Borrowed(_) => None,
        Cow::Owned(wire) => Some((wire, tool.name.clone())),
    });
    shortened.collect()
}

/// FNV-1a hash: stable across processes, so that recorded requests stay comparable.
fn fingerprint(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_odd_names_are_shortened_and_mapped_back() {
        let names = [
            "fs_read".to_owned(),
            "a".repeat(64),
            "a".repeat(65),
            format!("{}b", "a".repeat(65)),
            "github.issue".into(),
            "수".into(),
        ];
        let tools: Vec<ToolDeclaration> = names
            .iter()
            .map(|name| ToolDeclaration {
                name: name.clone(),
                description: String::new(),
                parameters: serde_json::json!({}),
                phrases: Vec::new(),
            })
            .collect();
        let back = original_names(&tools);
        assert_eq!(back.len(), 4);
        for name in &names {
            let wire = wire_name(name);
            assert!(wire.len() <= 64);
            assert_eq!(
                back.get(wire.as_ref())
                    .unwrap_or(&wire.clone().into_owned()),
                name
            );
        }
    }
}
