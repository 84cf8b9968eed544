use lango_team::{build_agent_tree, rank_by_keywords};
use lango_testkit::ONE_TOOL_PER_PREFIX;

use crate::setup::{config, tree, user_spec};

fn first(request: &str) -> Option<String> {
    rank_by_keywords(&tree(&ONE_TOOL_PER_PREFIX), request).into_iter().next().map(|found| found.agent)
}

/// S37, S38
#[test]
fn the_librarians_words_reach_the_librarian() {
    for request in [
        "any open inquiry?",
        "is there a gap in what you know",
        "list the pending INQUIRIES",
        "find file with gaps",
    ] {
        assert_eq!(first(request).as_deref(), Some("librarian"), "{request}");
    }
}

/// S38
#[test]
fn the_automators_words_reach_the_automator() {
    for request in [
        "schedule a backup",
        "add a cron entry",
        "do it in the background: run command df and read file a.txt",
        "start the release workflow",
        "automate my invoices",
        "what is scheduled?",
        "list workflows",
        "I have a question about my cron job",
        "schedule the question round",
    ] {
        assert_eq!(first(request).as_deref(), Some("automator"), "{request}");
    }
}

/// S38
#[test]
fn an_agent_that_does_not_exist_is_not_chosen() {
    let ranking = rank_by_keywords(&tree(&["exec_shell"]), "schedule a cron inquiry");
    assert_eq!(ranking, []);
}

#[test]
fn phrases_tell_agents_apart() {
    for (request, agent) in [
        ("find the file notes.txt", "operator"),
        ("run now: cargo test", "operator"),
        ("run every day at nine", "automator"),
        ("search knowledge for tea", "librarian"),
        ("save this fact: tea is hot", "librarian"),
        ("remember this conversation", "chronicler"),
        ("open the page example.org", "navigator"),
        ("what is my wallet balance", "vault"),
        ("make me a plan for the move", "planner"),
    ] {
        assert_eq!(first(request).as_deref(), Some(agent), "{request}");
    }
}

#[test]
fn words_without_meaning_here_match_nobody() {
    for request in ["", "hello", "안녕하세요", "🙂", "the profile of a filet"] {
        assert_eq!(first(request), None, "{request}");
    }
}

/// S38: many words of another agent do not outweigh one that decides.
#[test]
fn a_decisive_word_outweighs_any_number_of_others() {
    let mut config = config(&["cron_add", "deploy_x"]);
    let mut deployer = user_spec("deployer", &["deploy_"]);
    deployer.keywords = ["deploy", "release", "backup"].map(str::to_owned).to_vec();
    config.specs.push(deployer);
    let tree = build_agent_tree(config).unwrap();
    let ranking = rank_by_keywords(&tree, "schedule a backup of the release, then deploy");
    assert_eq!(ranking[0].agent, "automator");
    assert_eq!(ranking[1].matched, ["deploy", "release", "backup"]);
}
