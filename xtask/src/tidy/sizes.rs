//! Limits the length of source files.

use super::SourceFile;

const MAX_LINES: usize = 400;

pub fn check(files: &[SourceFile]) -> Vec<String> {
    let long = files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test());
    long.filter_map(|file| {
        let lines = file.non_test_code().lines().count();
        (lines > MAX_LINES).then(|| {
            format!(
                "{}: {lines} lines without its tests, at most {MAX_LINES}: is there a second idea in it?",
                file.path.display()
            )
        })
    })
    .collect()
}
