use std::path::{Path, PathBuf};

use lango_app::{LoadedConfig, Overrides};
use lango_team::TeamChoice;

use crate::setup::Machine;

#[test]
fn default_configuration_is_a_team() {
    let loaded = Machine::new().load(&[]).unwrap();
    assert!(loaded.settings.agent.team.multi_agent && loaded.files.is_empty());
    assert_eq!(loaded.settings.agent.team.max_delegation_rounds, 5);
}

#[test]
fn toml_json_and_yaml_are_equivalent() {
    for (name, text) in [
        (
            "work/lango.toml",
            "[agent]\nmultiAgent = false\nroutes = { operator = [\"github_\"] }\nmaxDelegationRounds = 0x9\n",
        ),
        (
            "work/lango.json",
            "{\n\t\"agent\": { \"multiAgent\": false, \"routes\": { \"operator\": [\"github_\"] }, \"maxDelegationRounds\": 9 }\n}",
        ),
        (
            "work/lango.yaml",
            "agent:\n  multiAgent: false\n  routes:\n    operator: [github_]\n  maxDelegationRounds: 9\n",
        ),
        (
            "work/lango.yml",
            "agent: {multiAgent: false, routes: {operator: [github_]}, maxDelegationRounds: 9}\n",
        ),
    ] {
        let team = Machine::new()
            .with_file(name, text)
            .trust()
            .load(&[])
            .unwrap()
            .settings
            .agent
            .team;
        assert!(!team.multi_agent, "{name}");
        assert_eq!(team.routes["operator"], ["github_"], "{name}");
        assert_eq!(team.max_delegation_rounds, 9, "{name}");
    }
}

#[test]
fn later_layers_override_earlier_ones() {
    let mut machine = Machine::new().with_file(
        "home/.config/lango/lango.toml",
        "[agent]\nmaxDelegationRounds = 1\nteam = \"custom\"\n",
    );
    let rounds = |machine: &Machine, set: &[&str]| {
        machine
            .load(set)
            .unwrap()
            .settings
            .agent
            .team
            .max_delegation_rounds
    };
    assert_eq!(rounds(&machine, &[]), 1);
    machine = machine.with_file("work/lango.yaml", "agent: {maxDelegationRounds: 2}");
    assert_eq!(rounds(&machine, &[]), 2);
    assert_eq!(
        machine.load(&[]).unwrap().settings.agent.team.team,
        TeamChoice::Custom,
        "merged key by key"
    );
    machine = machine.with_variable("LANGO_AGENT__MAX_DELEGATION_ROUNDS", "3");
    assert_eq!(rounds(&machine, &[]), 3);
    assert_eq!(rounds(&machine, &["agent.maxDelegationRounds=4"]), 4);
    assert_eq!(
        rounds(
            &machine,
            &["agent.maxDelegationRounds=4", "agent.maxDelegationRounds=7"]
        ),
        7
    );
}

#[test]
fn config_argument_reads_only_that_file() {
    let machine = Machine::new()
        .with_file("work/lango.toml", "[agent]\nmultiAgent = false\n")
        .with_file("work/other.toml", "[agent]\nmaxDelegationRounds = 8\n");
    let overrides = Overrides {
        config: Some(PathBuf::from("other.toml")),
        set: vec![],
    };
    let loaded = LoadedConfig::load(&machine.environment, &overrides).unwrap();
    assert!(loaded.settings.agent.team.multi_agent);
    assert_eq!(loaded.settings.agent.team.max_delegation_rounds, 8);
    let missing = Overrides {
        config: Some(PathBuf::from("missing.toml")),
        set: vec![],
    };
    assert!(
        LoadedConfig::load(&machine.environment, &missing)
            .unwrap_err()
            .message
            .contains("missing.toml")
    );
}

#[test]
fn lango_home_moves_the_user_configuration() {
    let machine = Machine::new()
        .with_file(
            "home/.config/lango/lango.toml",
            "[agent]\nmaxDelegationRounds = 1\n",
        )
        .with_file("other/lango.toml", "[agent]\nmaxDelegationRounds = 6\n");
    let other = machine.folder.path().join("other").display().to_string();
    let loaded = machine
        .with_variable("LANGO_HOME", &other)
        .load(&[])
        .unwrap();
    assert_eq!(loaded.settings.agent.team.max_delegation_rounds, 6);
}

#[test]
fn unknown_key_is_reported_with_its_line() {
    for (name, text, line) in [
        (
            "work/lango.toml",
            "# hi\n[agent]\nmaxDelegationRounds = 2\nmultiAgnet = true\n",
            4,
        ),
        ("work/lango.yaml", "agent:\n\n  multiAgnet: true\n", 3),
        (
            "work/lango.json",
            "{\n  \"agent\": {\n    \"multiAgnet\": true } }",
            3,
        ),
    ] {
        let error = Machine::new().with_file(name, text).load(&[]).unwrap_err();
        let file = Path::new(name).file_name().unwrap().to_str().unwrap();
        assert!(
            error
                .message
                .contains(&format!("{file}:{line}: unknown key `agent.multiAgnet`")),
            "{error}"
        );
        assert_eq!(
            error.hint.as_deref(),
            Some("did you mean `agent.multiAgent`?")
        );
    }
    let error = Machine::new().load(&["agent.multiAgnet=true"]).unwrap_err();
    assert_eq!(
        error.message,
        "--set agent.multiAgnet: unknown key `agent.multiAgnet`; did you mean `agent.multiAgent`?"
    );
    let error = Machine::new()
        .with_variable("LANGO_AGENT__MULTI_AGNET", "1")
        .load(&[])
        .unwrap_err();
    assert!(
        error
            .message
            .starts_with("LANGO_AGENT__MULTI_AGNET: unknown key `agent.multiAgnet`"),
        "{error}"
    );
    let error = Machine::new().load(&["zebra.x=1"]).unwrap_err();
    assert!(
        error.message.contains("unknown key `zebra`")
            && error.hint.unwrap().contains("config schema")
    );
}

#[test]
fn reports_all_unknown_keys_at_once() {
    let error = Machine::new()
        .with_file("work/lango.toml", "[agent]\nfoo = 1\nbar = 2\n")
        .load(&["agent.baz=3"])
        .unwrap_err();
    assert_eq!(error.message.lines().count(), 3, "{error}");
}

#[test]
fn wrong_type_is_reported_with_its_line() {
    let error = Machine::new()
        .with_file("work/lango.toml", "[agent]\nmultiAgent = \"maybe\"\n")
        .trust()
        .load(&[])
        .unwrap_err();
    assert!(
        error
            .message
            .contains("lango.toml:2: `agent.multiAgent`: invalid type"),
        "{error}"
    );
    let error = Machine::new().load(&["agent.team=classic"]).unwrap_err();
    assert!(
        error
            .message
            .contains("--set agent.team: `agent.team`: unknown variant `classic`"),
        "{error}"
    );
    let error = Machine::new().load(&["agent=7"]).unwrap_err();
    assert_eq!(
        error.message,
        "--set agent: `agent` must be a table of keys"
    );
    assert!(
        Machine::new()
            .load(&["agent=[false]"])
            .unwrap_err()
            .message
            .contains("must be a table")
    );
    let error = Machine::new()
        .with_file(
            "work/lango.toml",
            "[agent.routes]\noperator = [\n  \"a_\",\n  7,\n]\n",
        )
        .trust()
        .load(&[])
        .unwrap_err();
    assert!(
        error
            .message
            .contains("lango.toml:2: `agent.routes.operator.1`"),
        "{error}"
    );
    let error = Machine::new()
        .with_file("work/lango.toml", "[agent]\nmaxDelegationRounds = inf\n")
        .load(&[])
        .unwrap_err();
    assert!(error.message.contains("lango.toml:2"), "{error}");
}

#[test]
fn expands_environment_variables() {
    let machine = Machine::new()
        .with_file(
            "home/.config/lango/lango.toml",
            "[agent]\nagentsDir = \"${BASE}/agents\"\npromptsDir = \"$${BASE}\"\n",
        )
        .with_variable("BASE", "/srv");
    let team = machine.load(&[]).unwrap().settings.agent.team;
    assert_eq!(team.agents_dir.as_deref(), Some(Path::new("/srv/agents")));
    assert_eq!(team.prompts_dir.as_deref(), Some(Path::new("${BASE}")));
    let error = Machine::new()
        .with_file(
            "home/.config/lango/lango.toml",
            "[agent]\nagentsDir = \"${NOPE}\"\n",
        )
        .load(&[])
        .unwrap_err();
    assert!(
        error.message.contains(
            "lango.toml:2: `agent.agentsDir` uses the variable ${NOPE}, which is not set"
        ),
        "{error}"
    );
}

#[test]
fn text_settings_keep_numbers_as_text() {
    let machine = Machine::new().with_variable("LANGO_AGENT__AGENTS_DIR", "2026");
    assert_eq!(
        machine.load(&[]).unwrap().settings.agent.team.agents_dir,
        Some("2026".into())
    );
    let loaded = machine
        .load(&["agent.promptsDir=true", "agent.routes={\"vault\":[\"x_\"]}"])
        .unwrap();
    assert_eq!(loaded.settings.agent.team.prompts_dir, Some("true".into()));
    assert_eq!(loaded.settings.agent.team.routes["vault"], ["x_"]);
    assert_eq!(
        Machine::new()
            .load(&["agent.routes.vault=[\"y_\"]"])
            .unwrap()
            .settings
            .agent
            .team
            .routes["vault"],
        ["y_"]
    );
}

#[test]
fn paths_are_relative_to_their_file() {
    let machine = Machine::new().with_file(
        "home/.config/lango/lango.toml",
        "[agent]\nagentsDir = \"mine\"\n",
    );
    let loaded = machine.load(&[]).unwrap();
    let resolved = loaded.resolve(&machine.environment, "agent.agentsDir", Path::new("mine"));
    assert_eq!(
        resolved,
        machine.folder.path().join("home/.config/lango/mine")
    );
    let loaded = machine.load(&["agent.agentsDir=mine"]).unwrap();
    let resolved = loaded.resolve(&machine.environment, "agent.agentsDir", Path::new("mine"));
    assert_eq!(resolved, machine.environment.working_folder.join("mine"));
}

#[test]
fn invalid_files_are_reported() {
    for (name, bytes, expected) in [
        ("work/lango.toml", &b"[agent\n"[..], "lango.toml:1: "),
        (
            "work/lango.toml",
            b"[agent]\na = \xff\n",
            "is not valid UTF-8",
        ),
        ("work/lango.json", b"[1, 2]", "expected a table of settings"),
        ("work/lango.yaml", b"agent: &x\n  a: *x\n", "lango.yaml:"),
    ] {
        let machine = Machine::new();
        std::fs::write(machine.folder.path().join(name), bytes).unwrap();
        let error = machine.load(&[]).unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
    let machine = Machine::new()
        .with_file("work/lango.toml", "")
        .with_file("work/lango.yaml", "");
    assert!(
        machine
            .load(&[])
            .unwrap_err()
            .message
            .contains("several configuration files")
    );
    let machine = Machine::new().with_file("work/lango.toml", &"#".repeat(2_000_000));
    assert!(
        machine
            .load(&[])
            .unwrap_err()
            .message
            .contains("more than 1048576 bytes")
    );
    for bad in ["agent.multiAgent", "=x", "agent..x=1", ".=1"] {
        assert!(
            Machine::new()
                .load(&[bad])
                .unwrap_err()
                .message
                .contains("key=value"),
            "{bad}"
        );
    }
}

#[test]
fn empty_sections_and_other_variables_are_harmless() {
    let machine = Machine::new()
        .with_file("work/lango.yaml", "agent:\n")
        .with_variable("LANGO_LOG", "debug");
    assert!(machine.load(&[]).unwrap().settings.agent.team.multi_agent);
}

#[test]
fn null_resets_a_setting() {
    let machine = Machine::new().with_file(
        "home/.config/lango/lango.toml",
        "[agent]\nagentsDir = \"a\"\nmultiAgent = false\nroutes.vault = [\"x_\"]\n",
    );
    for set in [
        [
            "agent.agentsDir=null",
            "agent.multiAgent=null",
            "agent.routes={}",
        ],
        [
            "agent.agentsDir=",
            "agent.multiAgent=null",
            "agent.routes=null",
        ],
    ] {
        let team = machine.load(&set).unwrap().settings.agent.team;
        assert_eq!(team, lango_team::TeamSettings::default(), "{set:?}");
    }
}

#[test]
fn expanded_values_get_the_type_of_the_setting() {
    let machine = Machine::new()
        .with_variable("FLAG", "false")
        .with_variable("N", "7");
    let team = machine
        .load(&[
            "agent.multiAgent=${FLAG}",
            "agent.maxDelegationRounds=${N}",
            "agent.agentsDir=${N}",
        ])
        .unwrap()
        .settings
        .agent
        .team;
    assert_eq!(
        (
            team.multi_agent,
            team.max_delegation_rounds,
            team.agents_dir
        ),
        (false, 7, Some("7".into()))
    );
    assert!(
        machine
            .load(&["agent.agentsDir=${N"])
            .unwrap_err()
            .message
            .contains("without a closing `}`")
    );
}

#[test]
fn limits_the_number_of_reported_errors() {
    let keys: String = (0..50_000).map(|n| format!("k{n} = 1\n")).collect();
    let error = Machine::new()
        .with_file("work/lango.toml", &format!("[agent]\n{keys}"))
        .load(&[])
        .unwrap_err();
    assert_eq!(error.message.lines().count(), 11);
    assert!(error.message.ends_with("and 49990 more"));
}

#[test]
fn dangling_link_is_reported() {
    let machine = Machine::new();
    std::os::unix::fs::symlink("nowhere", machine.folder.path().join("work/lango.toml")).unwrap();
    assert!(
        machine
            .load(&[])
            .unwrap_err()
            .message
            .contains("lango.toml")
    );
}

#[test]
fn agent_names_in_variables_are_preserved() {
    let machine = Machine::new().with_variable("LANGO_AGENT__ROUTES__CODE_REVIEW", "[\"x_\"]");
    assert_eq!(
        machine.load(&[]).unwrap().settings.agent.team.routes["code_review"],
        ["x_"]
    );
}

#[test]
fn accepts_schema_key() {
    let machine = Machine::new().with_file(
        "work/lango.json",
        "{ \"$schema\": \"x.json\", \"agent\": {} }",
    );
    assert!(machine.load(&[]).is_ok());
}

/// S34, B56
#[test]
fn limits_come_from_the_settings() {
    let limits = Machine::new().load(&[]).unwrap().settings.limits();
    assert_eq!(
        (
            limits.rounds.get(),
            limits.model_calls.get(),
            limits.repeats.get()
        ),
        (5, 40, 5)
    );
    assert_eq!(
        (
            limits.seconds.get(),
            limits.tool_seconds.get(),
            limits.tokens,
            limits.usd
        ),
        (600, 120, None, None)
    );
    let set = [
        "agent.maxDelegationRounds=0",
        "agent.limits.modelCalls=7",
        "agent.limits.usd=0.5",
    ];
    let limits = Machine::new().load(&set).unwrap().settings.limits();
    assert_eq!(
        (limits.rounds.get(), limits.model_calls.get(), limits.usd),
        (5, 7, Some(0.5))
    );
    let error = Machine::new()
        .load(&["agent.limits.modelCalls=0"])
        .unwrap_err();
    assert!(
        error
            .message
            .contains("--set agent.limits.modelCalls: `agent.limits.modelCalls`"),
        "{error}"
    );
    assert!(
        Machine::new()
            .load(&["agent.limits.modelCall=1"])
            .unwrap_err()
            .hint
            .unwrap()
            .contains("agent.limits.modelCalls")
    );
}
