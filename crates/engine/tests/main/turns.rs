//! Every `.turn` file: the script above the line, what happened below it.

use std::path::{Path, PathBuf};

use lango_testkit::script::Script;
use lango_testkit::{golden, invariants, script_runner};

const LINE: &str = "---\n";

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/turns");
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut stories: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "turn"))
        .collect();
    stories.sort();
    stories
}

#[tokio::test(start_paused = true)]
async fn every_story_goes_as_blessed() {
    let stories = scripts();
    assert!(stories.len() >= 30, "only {} stories", stories.len());
    for path in stories {
        let text = std::fs::read_to_string(&path).unwrap();
        let script = text.split(LINE).next().unwrap();
        let parsed =
            Script::parse(script).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let told = script_runner::run_script(&parsed)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(
            invariants::violations(&told),
            Vec::<String>::new(),
            "{}\n{}",
            path.display(),
            told.transcript
        );
        assert_eq!(
            told.unused_replies,
            Vec::<String>::new(),
            "{}\n{}",
            path.display(),
            told.transcript
        );
        golden::check(&path, &format!("{script}{LINE}{}", told.transcript));
    }
}
