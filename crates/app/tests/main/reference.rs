use std::path::Path;

use lango_app::config::{commented_file, reference_page, setting_docs};
use lango_testkit::golden;

use crate::setup::Machine;

#[test]
fn reference_page_is_as_blessed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    golden::check(&page, &reference_page());
}

#[test]
fn every_setting_has_a_description() {
    for entry in setting_docs() {
        assert!(
            !entry.description.is_empty() && !entry.kind.is_empty(),
            "{}",
            entry.key
        );
    }
}

#[test]
fn commented_file_contains_the_defaults() {
    let file = commented_file();
    let defaults = Machine::new().load(&[]).unwrap().settings;
    assert_eq!(
        Machine::new()
            .with_file("home/.config/lango/lango.toml", &file)
            .load(&[])
            .unwrap()
            .settings,
        defaults
    );
    let is_setting = |line: &str| line.starts_with('#') && !line.starts_with("# ");
    let uncommented: Vec<&str> = file
        .lines()
        .map(|line| if is_setting(line) { &line[1..] } else { line })
        .collect();
    let loaded = Machine::new()
        .with_file("home/.config/lango/lango.toml", &uncommented.join("\n"))
        .load(&[])
        .unwrap();
    assert_eq!(loaded.settings, defaults);
    assert!(loaded.origin("agent.multiAgent").is_some());
}
