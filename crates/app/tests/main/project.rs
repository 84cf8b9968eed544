//! Project configuration before and after the user trusts it.

use lango_app::config::setting_docs;

use crate::setup::Machine;

/// B100
#[test]
fn untrusted_project_may_set_only_allowed_settings() {
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
        "resetting a guarded setting needs trust, too"
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
        "an empty table is not reported: {warning}"
    );
    let loaded = machine.trust().load(&[]).unwrap();
    assert!(!loaded.settings.agent.team.multi_agent && loaded.warnings.is_empty());
}

/// B100
#[test]
fn project_with_allowed_settings_needs_no_trust() {
    let machine = Machine::new().with_file(
        "work/lango.toml",
        "[agent]\nrouter = \"offline-first\"\n[security]\n",
    );
    assert!(machine.load(&[]).unwrap().warnings.is_empty());
}

/// B100
#[test]
fn warning_lists_a_limited_number_of_settings() {
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
fn trust_is_bound_to_the_folder() {
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
        "an unreadable trust file trusts nothing"
    );
}
