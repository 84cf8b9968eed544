//! Reports type names that several modules declare: a shared name cannot be searched for.

use std::collections::{BTreeMap, BTreeSet};

use super::SourceFile;

/// At most this share of the types may have a name that another module declares too.
const MAX_SHARED_PERCENT: usize = 3;

pub fn check(files: &[SourceFile]) -> Vec<String> {
    let names = declared_types(files);
    let total: usize = names.values().map(BTreeSet::len).sum();
    let shared: usize = names
        .values()
        .map(BTreeSet::len)
        .filter(|modules| *modules > 1)
        .sum();
    println!(
        "tidy: {total} types, {shared} with a name that another module declares too ({}%)",
        percent(shared, total)
    );
    for (name, modules) in names.iter().filter(|(_, modules)| modules.len() > 2) {
        println!("tidy:   {name} is declared by {} modules", modules.len());
    }
    if percent(shared, total) > MAX_SHARED_PERCENT {
        return vec![format!(
            "{shared} of {total} type names are shared, at most {MAX_SHARED_PERCENT}% may be"
        )];
    }
    Vec::new()
}

fn percent(part: usize, whole: usize) -> usize {
    (part * 100).div_ceil(whole.max(1))
}

/// Maps each type name to the files that declare it.
fn declared_types(files: &[SourceFile]) -> BTreeMap<&str, BTreeSet<&std::path::Path>> {
    let mut names: BTreeMap<&str, BTreeSet<&std::path::Path>> = BTreeMap::new();
    for file in files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test())
    {
        for name in file.non_test_code().lines().filter_map(declared_type) {
            names.entry(name).or_default().insert(&file.path);
        }
    }
    names
}

/// Returns the name of the type that `line` declares. Associated types are indented and do not count.
fn declared_type(line: &str) -> Option<&str> {
    let is_indented = line.starts_with(' ');
    let mut words = line
        .split_whitespace()
        .skip_while(|word| word.starts_with("pub"));
    let keyword = words.next()?;
    let is_type = match keyword {
        "struct" | "enum" | "trait" => true,
        "type" => !is_indented,
        _ => false,
    };
    let name = words
        .next()?
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    (is_type && name.starts_with(char::is_uppercase)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_declared_type() {
        assert_eq!(
            declared_type("pub(crate) struct Place<'a> {"),
            Some("Place")
        );
        assert_eq!(declared_type("    enum Kind {"), Some("Kind"));
        assert_eq!(
            declared_type("pub type Clock = Arc<dyn Fn()>;"),
            Some("Clock")
        );
        assert_eq!(declared_type("    type Error = Refusal;"), None);
        assert_eq!(declared_type("/// A struct Place."), None);
    }

    #[test]
    fn counts_a_name_once_per_module() {
        let file = |path: &str, text: &str| SourceFile {
            path: path.into(),
            text: text.to_owned(),
        };
        let files = [
            file("crates/a/src/x.rs", "struct Place;\nstruct Other;\n"),
            file("crates/a/src/y.rs", "struct Place;\n"),
            file("crates/a/tests/z.rs", "struct Place;\n"),
        ];
        let names = declared_types(&files);
        assert_eq!((names["Place"].len(), names["Other"].len()), (2, 1));
    }
}
