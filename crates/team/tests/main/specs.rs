use std::fs;

use lango_domain::AgentSpec;
use lango_team::AgentRegistry;

fn specs() -> Vec<AgentSpec> {
    let registry = AgentRegistry::built_in();
    assert!(registry.errors.is_empty(), "{:?}", registry.errors);
    registry.specs
}

fn spec(name: &str) -> AgentSpec {
    specs().into_iter().find(|spec| spec.name == *name).unwrap()
}

/// S36
#[test]
fn every_instruction_has_its_sections_and_the_reject_format() {
    for spec in specs() {
        for section in [
            "## What You Do",
            "## Input Format",
            "## Output Format",
            "## Constraints",
            "\n[REJECT] ",
        ] {
            assert!(
                spec.instruction.contains(section),
                "{}: {section}",
                spec.name
            );
        }
    }
}

/// S36
#[test]
fn every_instruction_has_its_output_format() {
    for (agent, phrase) in [
        ("operator", "Provide results clearly"),
        ("librarian", "Organize results clearly"),
        ("planner", "Present the plan for review"),
        ("chronicler", "Report what was stored or retrieved"),
    ] {
        assert!(spec(agent).instruction.contains(phrase), "{agent}");
    }
}

/// S37
#[test]
fn the_librarian_handles_inquiries() {
    let librarian = spec("librarian");
    for word in ["inquiry", "question", "gap"] {
        assert!(
            librarian.keywords.iter().any(|keyword| keyword == word),
            "{word}"
        );
    }
    let (_, proactive) = librarian
        .instruction
        .split_once("## Proactive Behavior")
        .unwrap();
    assert!(proactive.contains("weave it naturally into the answer"));
}

/// S38
#[test]
fn the_automator_has_its_keywords() {
    let automator = spec("automator");
    for word in ["schedule", "cron", "background", "workflow", "automate"] {
        assert!(
            automator.keywords.iter().any(|keyword| keyword == word),
            "{word}"
        );
    }
}

/// S03
#[test]
fn every_definition_is_complete() {
    for spec in specs() {
        for (fact, missing) in [
            ("keywords", spec.keywords.is_empty()),
            ("accepts", spec.accepts.is_empty()),
            ("returns", spec.returns.is_empty()),
            ("cannot", spec.cannot.is_empty()),
            ("examples", !(2..=3).contains(&spec.examples.len())),
        ] {
            assert!(!missing, "{}: {fact}", spec.name);
        }
        assert_eq!(spec.always_include, spec.name == *"planner");
        assert_eq!(spec.can_hold_tools(), spec.name != *"planner");
    }
}

/// S33
#[test]
fn no_definition_names_another_agent_or_a_confusable_word() {
    assert_eq!(AgentRegistry::built_in().warnings(), Vec::<String>::new());
    let mut registry = AgentRegistry::built_in();
    registry.specs[0].description = "Asks the vault or the Browser.".into();
    let warnings = registry.warnings().join("\n");
    assert!(
        warnings.contains("`browser` could be mistaken")
            && warnings.contains("names another agent, vault")
    );
}

/// S04
#[test]
fn a_planner_of_the_user_is_always_included() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("planner.md"),
        "---\ndescription: Mine.\n---\nThink.\n",
    )
    .unwrap();
    let registry = AgentRegistry::from_folder(folder.path()).unwrap();
    assert!(registry.specs[0].always_include && !registry.specs[0].can_hold_tools());
}

#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.md")).unwrap();
    let registry = AgentRegistry::from_folder(folder.path()).unwrap();
    assert!(
        registry.errors[0]
            .to_string()
            .contains("it is not a regular file"),
        "{:?}",
        registry.errors
    );
}

#[test]
fn no_keyword_belongs_to_two_agents() {
    let all = specs();
    for spec in &all {
        for other in all.iter().filter(|other| other.name != spec.name) {
            for keyword in &spec.keywords {
                assert!(
                    !other.keywords.contains(keyword),
                    "{keyword}: {} and {}",
                    spec.name,
                    other.name
                );
            }
        }
    }
}

#[test]
fn an_invalid_file_is_reported_and_the_others_load() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write(
        "good.md",
        b"---\ndescription: Good.\nprefixes: [good_]\n---\nBe good.\n",
    );
    write(
        "bad.md",
        b"---\ndescription: Bad.\nprefixs: [bad_]\n---\nBe bad.\n",
    );
    write("latin.md", b"---\ndescription: caf\xe9\n---\nx\n");
    write("huge.md", &vec![b'x'; 300 * 1024]);
    write("notes.txt", b"not an agent");
    let registry = AgentRegistry::from_folder(folder.path()).unwrap();
    assert_eq!(registry.specs.len(), 1);
    let errors: Vec<String> = registry.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 3);
    assert!(
        errors[0].contains("bad.md:3: unknown key `prefixs`; did you mean `prefixes`?"),
        "{errors:?}"
    );
    assert!(
        errors[1].contains("huge.md:1: cannot be read: it has more than 262144 bytes"),
        "{errors:?}"
    );
    assert!(
        errors[2].contains("latin.md:2: is not valid UTF-8"),
        "{errors:?}"
    );
}

/// B14
#[test]
fn a_definition_replaces_the_built_in_one_with_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let text = "---\ndescription: Mine.\nprefixes: [exec]\n---\nMy way.\n";
    fs::write(folder.path().join("operator.md"), text).unwrap();
    let user = AgentRegistry::from_folder(folder.path()).unwrap();
    let registry = AgentRegistry::built_in().merge(user);
    assert_eq!(registry.specs.len(), 7);
    let operator = &registry.specs[0];
    assert_eq!(
        (operator.name.as_str(), operator.description.as_str()),
        ("operator", "Mine.")
    );
}

#[test]
fn a_missing_folder_is_an_error() {
    let error = AgentRegistry::from_folder("nowhere/at/all".as_ref()).unwrap_err();
    assert!(error.to_string().contains("nowhere/at/all"));
}
