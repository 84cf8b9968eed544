//! Rejects identifiers made of empty words.

use super::SourceFile;

const EMPTY_WORDS: [&str; 7] = [
    "manager", "service", "handler", "helper", "utils", "common", "core",
];
const DECLARATIONS: [&str; 7] = ["struct", "enum", "trait", "mod", "fn", "type", "const"];

pub fn check(files: &[SourceFile]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let path = file.path.display();
        let stem = file
            .path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        if let Some(word) = empty_word(&stem) {
            problems.push(format!(
                "{path}: `{word}` says nothing about what is in the file"
            ));
        }
        for (at, line) in file.non_test_code().lines().enumerate() {
            if let Some((name, word)) =
                declared_name(line).and_then(|name| Some((name, empty_word(name)?)))
            {
                problems.push(format!(
                    "{path}:{}: `{name}`: `{word}` says nothing",
                    at + 1
                ));
            }
        }
    }
    problems
}

/// Returns the name that a line declares.
fn declared_name(line: &str) -> Option<&str> {
    let mut words = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty());
    words.find(|word| DECLARATIONS.contains(word))?;
    if line.trim_start().starts_with("//") {
        None
    } else {
        words.next()
    }
}

/// Returns an empty word that is a whole word of the name.
fn empty_word(name: &str) -> Option<&'static str> {
    let mut parts: Vec<String> = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend(c.to_lowercase().filter(|c| c.is_alphanumeric()));
        }
    }
    EMPTY_WORDS
        .into_iter()
        .find(|word| parts.iter().any(|part| part == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_words_are_found_as_words_only() {
        assert_eq!(
            declared_name("pub struct SessionManager<T> {").and_then(empty_word),
            Some("manager")
        );
        assert_eq!(
            declared_name("    pub(crate) async fn read_utils() {").and_then(empty_word),
            Some("utils")
        );
        assert_eq!(
            declared_name("fn score(x: u32) {").and_then(empty_word),
            None
        );
        assert_eq!(declared_name("// a struct Manager would be bad"), None);
    }
}
