use std::fs;

use lango_domain::AgentSpec;
use lango_team::AgentRegistry;

fn specs() -> Vec<AgentSpec> {
    let roster = AgentRegistry::built_in();
    assert!(roster.errors.is_empty(), "{:?}", roster.errors);
    roster.specs
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
fn every_agent_says_how_it_reports() {
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
fn the_librarian_looks_after_inquiries() {
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
fn the_automator_has_its_words() {
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
    let mut roster = AgentRegistry::built_in();
    roster.specs[0].description = "Asks the vault or the Browser.".into();
    let complaints = roster.warnings().join(
        "
",
    );
    assert!(
        complaints.contains("`browser` may be taken")
            && complaints.contains("names another agent, vault")
    );
}

/// S04
#[test]
fn a_planner_of_the_users_is_always_included() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("planner.md"),
        "---
description: Mine.
---
Think.
",
    )
    .unwrap();
    let roster = AgentRegistry::from_folder(folder.path()).unwrap();
    assert!(roster.specs[0].always_include && !roster.specs[0].can_hold_tools());
}

#[test]
fn what_is_not_a_regular_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.md")).unwrap();
    let roster = AgentRegistry::from_folder(folder.path()).unwrap();
    assert!(
        roster.errors[0]
            .to_string()
            .contains("it is not a regular file"),
        "{:?}",
        roster.errors
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
fn a_bad_file_is_reported_and_the_others_load() {
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
    let roster = AgentRegistry::from_folder(folder.path()).unwrap();
    assert_eq!(roster.specs.len(), 1);
    let mistakes: Vec<String> = roster.errors.iter().map(ToString::to_string).collect();
    assert_eq!(mistakes.len(), 3);
    assert!(
        mistakes[0].contains("bad.md:3: unknown key `prefixs`; did you mean `prefixes`?"),
        "{mistakes:?}"
    );
    assert!(
        mistakes[1].contains("huge.md:1: cannot be read: it has more than 262144 bytes"),
        "{mistakes:?}"
    );
    assert!(
        mistakes[2].contains("latin.md:2: is not valid UTF-8"),
        "{mistakes:?}"
    );
}

/// B14
#[test]
fn a_definition_of_the_same_name_takes_the_built_in_ones_place() {
    let folder = tempfile::tempdir().unwrap();
    let text = "---\ndescription: Mine.\nprefixes: [exec]\n---\nMy way.\n";
    fs::write(folder.path().join("operator.md"), text).unwrap();
    let roster =
        AgentRegistry::built_in().merge(AgentRegistry::from_folder(folder.path()).unwrap());
    assert_eq!(roster.specs.len(), 7);
    assert_eq!(
        (
            roster.specs[0].name.as_str(),
            roster.specs[0].description.as_str()
        ),
        ("operator", "Mine.")
    );
}

#[test]
fn a_missing_folder_is_an_error() {
    let error = AgentRegistry::from_folder("nowhere/at/all".as_ref()).unwrap_err();
    assert!(error.to_string().contains("nowhere/at/all"));
}
