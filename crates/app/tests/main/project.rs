//! What a project's own file may do before it is confirmed.

use lango_app::config::setting_docs;

use crate::setup::Machine;

/// B100
#[test]
fn only_what_is_open_is_used_before_it_is_confirmed() {
    let machine = Machine::new()
        .with_file("home/.config/lango/lango.toml", "[agent]\nroutes.vault = [\"mine_\"]\n")
        .with_file(
            "work/lango.toml",
            "[agent]\nmultiAgent = false\nmaxDelegationRounds = 3\nroutes = {}\nlimits.usd = 1000.0\n[tools.exec]\n[store]\npath = \"x\"\n",
        );
    let loaded = machine.load(&[]).unwrap();
    let agent = &loaded.settings.agent;
    assert!(agent.team.multi_agent && agent.engine.limits.usd.is_none());
    assert_eq!(agent.team.max_delegation_rounds, 3);
    assert_eq!(
        agent.team.routes["vault"],
        ["mine_"],
        "taking back is setting, too"
    );
    let [warning] = loaded.warnings.as_slice() else {
        panic!("{:?}", loaded.warnings)
    };
    for part in [
        "`agent.multiAgent` (line 2)",
        "`agent.routes` (line 4)",
        "`agent.limits.usd` (line 5)",
        "`store.path` (line 8)",
    ] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    assert!(
        !warning.contains("tools"),
        "an empty table says nothing: {warning}"
    );
    let loaded = machine.trust().load(&[]).unwrap();
    assert!(!loaded.settings.agent.team.multi_agent && loaded.warnings.is_empty());
}

/// B100
#[test]
fn a_file_without_anything_closed_needs_no_confirming() {
    let machine = Machine::new().with_file(
        "work/lango.toml",
        "[agent]\nrouter = \"offline-first\"\n[security]\n",
    );
    assert!(machine.load(&[]).unwrap().warnings.is_empty());
}

/// B100
#[test]
fn a_long_list_of_settings_is_not_told_whole() {
    let keys = setting_docs();
    let texts = keys
        .iter()
        .filter(|entry| entry.kind == "text" && !entry.key.contains('<'));
    let lines: String = texts
        .clone()
        .map(|entry| format!("{} = \"x\"\n", entry.key))
        .collect();
    assert!(texts.count() > 8);
    let warnings = Machine::new()
        .with_file("work/lango.toml", &lines)
        .load(&[])
        .unwrap()
        .warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains(" more; "),
        "{warnings:?}"
    );
    assert!(warnings[0].matches("(line ").count() == 8);
}

/// B100
#[test]
fn what_was_confirmed_elsewhere_or_by_others_does_not_count() {
    let config = "[agent]\nmultiAgent = false\n";
    let machine = Machine::new().with_file("work/lango.toml", config).trust();
    let moved = machine.folder.path().join("moved");
    std::fs::rename(machine.folder.path().join("work"), &moved).unwrap();
    let mut environment = machine.environment.clone();
    environment.working_folder = moved;
    let loaded =
        lango_app::LoadedConfig::load(&environment, &lango_app::Overrides::default()).unwrap();
    assert!(
        loaded.settings.agent.team.multi_agent,
        "another folder is another project"
    );
    let machine = machine.with_file("work/lango.toml", config);
    assert!(!machine.load(&[]).unwrap().settings.agent.team.multi_agent);
    let machine = machine.with_file(
        "home/.local/share/lango/trusted-projects.json",
        "{ not json",
    );
    assert!(
        machine.load(&[]).unwrap().settings.agent.team.multi_agent,
        "when in doubt, it was not"
    );
}
