//! Runs every `.turn` file: the script is above the separator, the expected transcript below it.

use std::path::{Path, PathBuf};

use lango_testkit::script::Script;
use lango_testkit::{golden, invariants, script_runner};

const SEPARATOR: &str = "---\n";

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/turns");
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "turn")
        })
        .collect();
    files.sort();
    files
}

#[tokio::test(start_paused = true)]
async fn turn_transcripts_are_as_blessed() {
    let files = scripts();
    assert!(files.len() >= 30, "only {} files", files.len());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let script = text.split(SEPARATOR).next().unwrap();
        let parsed =
            Script::parse(script).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let run = script_runner::run_script(&parsed)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(
            invariants::violations(&run),
            Vec::<String>::new(),
            "{}\n{}",
            path.display(),
            run.transcript
        );
        assert_eq!(
            run.unused_replies,
            Vec::<String>::new(),
            "{}\n{}",
            path.display(),
            run.transcript
        );
        golden::check(&path, &format!("{script}{SEPARATOR}{}", run.transcript));
    }
}
