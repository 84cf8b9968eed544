//! Golden files with the expected output of tests. `cargo xtask bless` rewrites them.

use std::path::Path;
use std::{env, fs};

/// Set by `cargo xtask bless`.
pub const BLESS: &str = "LANGO_BLESS";

/// Compares `actual` with the file at `path`. Writes the file instead when blessing.
///
/// # Panics
/// If they differ or the file cannot be written: this is an assertion.
#[expect(clippy::panic, reason = "an assertion for tests")]
pub fn check(path: &Path, actual: &str) {
    if env::var_os(BLESS).is_some() {
        if let Err(error) = fs::write(path, actual) {
            panic!("cannot bless {}: {error}", path.display());
        }
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected != actual {
        panic!(
            "{} differs; if the change is intended, run `cargo xtask bless`\n{}",
            path.display(),
            first_difference(&expected, actual)
        );
    }
}

fn first_difference(expected: &str, actual: &str) -> String {
    let (mut old, mut new) = (expected.lines(), actual.lines());
    let mut line = 1;
    loop {
        match (old.next(), new.next()) {
            (None, None) => return "only line ends differ".to_owned(),
            (a, b) if a == b => line += 1,
            (a, b) => {
                return format!(
                    "line {line}\n- {}\n+ {}",
                    a.unwrap_or("(end)"),
                    b.unwrap_or("(end)")
                );
            }
        }
    }
}
