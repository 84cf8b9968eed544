//! Knowledge entries and learnings, from the tools to the store file and back.

use lango_domain::event::Principal;
use lango_domain::hooks::{Advisor, AfterTurn, ContextRequest, ContextSource, FailedCall};
use lango_domain::knowledge::{KnowledgeCategory, KnowledgeStore};
use lango_domain::session_catalog::SessionCatalog as _;
use lango_memory::knowledge_base::{KnowledgeContext, LearningAdvisor, OutcomeTracker};
use lango_store::{SqliteStore, StoreLocation};
use serde_json::{Value, json};

use crate::harness::{KnowledgeHarness, answer, bob_conversation, call_and_result, conversation};

/// S83
#[tokio::test]
async fn entries_are_versioned_and_saving_the_same_changes_nothing() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    harness
        .turn(&session_key, "t1", "hello", answer("hi"))
        .await;
    let save = async |content: &str| {
        let args = json!({ "key": "Office Hours", "category": "fact", "content": content, "tags": ["Office"] });
        harness
            .call(&session_key, "save_knowledge", args)
            .await
            .unwrap()
    };
    assert!(
        save("The office closes at six.")
            .await
            .contains("`office hours`")
    );
    assert!(
        save("The office closes at six.")
            .await
            .contains("nothing changed")
    );
    harness.advance_minutes(5);
    assert!(
        save("The office closes at seven.")
            .await
            .contains("version 2")
    );
    let versions = harness
        .store
        .history(&session_key.principal, "office hours")
        .await
        .unwrap();
    let contents: Vec<(u32, &str)> = versions
        .iter()
        .map(|entry| (entry.version, entry.content.as_str()))
        .collect();
    assert_eq!(
        contents,
        [
            (2, "The office closes at seven."),
            (1, "The office closes at six.")
        ]
    );
    assert!(versions[0].at > versions[1].at);
    let source = &versions[0].source;
    assert_eq!(
        (source.session.as_ref(), source.turn.as_str()),
        (Some(&session_key.session), "t1")
    );
    assert_eq!(source.by, "librarian");
    assert_eq!(
        harness
            .store
            .entries(&session_key.principal)
            .await
            .unwrap()
            .len(),
        1
    );
}

/// S83
#[tokio::test]
async fn finds_entries_by_key_content_tags_and_category_in_any_script() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    for (key, category, content, tag) in [
        (
            "office hours",
            "fact",
            "The door is open until six.",
            "opening",
        ),
        ("회의", "rule", "회의는 세 시에 시작한다", ""),
        (
            "Tee",
            "preference",
            "Grüner Tee schmeckt am besten",
            "getränke",
        ),
        ("العنوان", "definition", "المكتب في الطابق الثالث", ""),
    ] {
        let args = json!({ "key": key, "category": category, "content": content, "tags": [tag] });
        harness
            .call(&session_key, "save_knowledge", args)
            .await
            .unwrap();
    }
    let search = async |query: &str| {
        harness
            .call(&session_key, "search_knowledge", json!({ "query": query }))
            .await
            .unwrap()
    };
    for (query, expected) in [
        ("office", "door is open"),
        ("when is the door open", "door is open"),
        ("opening", "door is open"),
        ("회의 시간", "세 시에"),
        ("grüner tee", "Grüner"),
        ("getränke", "Grüner"),
        ("المكتب", "الثالث"),
        ("definition", "الثالث"),
    ] {
        let found = search(query).await;
        let first = found.lines().next().unwrap();
        assert!(first.contains(expected), "{query}");
    }
    assert!(search("submarines").await.starts_with("Nothing is known"));
    let rules = json!({ "query": "office tee 회의", "category": "rule" });
    let found = harness
        .call(&session_key, "search_knowledge", rules)
        .await
        .unwrap();
    assert!(
        found.contains("세 시에") && found.lines().count() == 1,
        "{found}"
    );
    assert!(
        harness
            .call(&session_key, "search_knowledge", json!({ "query": " " }))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn rejects_secrets_and_invalid_entries_with_a_reason() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    for (args, reason) in [
        (json!({ "content": "the password is hunter2" }), "password"),
        (
            json!({ "key": "aws", "content": "AKIAIOSFODNN7EXAMPLE" }),
            "access key",
        ),
        (json!({ "content": "  \n " }), "empty"),
        (json!({ "content": "x".repeat(5_000) }), "5000 characters"),
        (
            json!({ "content": "fine", "key": "k".repeat(200) }),
            "200 characters",
        ),
    ] {
        let error = harness
            .call(&session_key, "save_knowledge", args)
            .await
            .unwrap_err()
            .0;
        assert!(
            error.contains(reason) && !error.contains("hunter2"),
            "{error}"
        );
    }
    let learning = json!({ "trigger": "login fails", "fix": "use password=hunter2" });
    assert!(
        harness
            .call(&session_key, "save_learning", learning)
            .await
            .is_err()
    );
    assert!(
        harness
            .store
            .entries(&session_key.principal)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        harness
            .store
            .learnings(&session_key.principal)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn derives_a_missing_key_from_the_content() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    harness
        .call(
            &session_key,
            "save_knowledge",
            json!({ "content": "The wifi name is Falcon" }),
        )
        .await
        .unwrap();
    let entries = harness.store.entries(&session_key.principal).await.unwrap();
    assert_eq!(
        (entries[0].key.as_str(), entries[0].category),
        ("wifi name", KnowledgeCategory::Fact)
    );
}

/// B74
#[tokio::test]
async fn principals_do_not_share_entries_or_advice() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    harness
        .call(
            &session_key,
            "save_knowledge",
            json!({ "key": "tea", "content": "oolong" }),
        )
        .await
        .unwrap();
    let learning = json!({ "trigger": "cargo cannot reach the registry", "fix": "use --offline" });
    harness
        .call(&session_key, "save_learning", learning.clone())
        .await
        .unwrap();
    let bob = bob_conversation("s");
    assert!(
        harness
            .call(&bob, "search_knowledge", json!({ "query": "tea" }))
            .await
            .unwrap()
            .starts_with("Nothing")
    );
    let found = harness
        .call(
            &bob,
            "search_learnings",
            json!({ "query": "cargo registry" }),
        )
        .await
        .unwrap();
    assert!(found.starts_with("Nothing"));
    assert_eq!(advice(&harness, &bob.principal).await, None);
    let request = |session_key: &lango_domain::session::SessionKey| {
        let (session, principal) = (session_key.session.clone(), session_key.principal.clone());
        ContextRequest {
            session,
            principal,
            text: "order tea".into(),
        }
    };
    let source = KnowledgeContext(harness.knowledge_base());
    assert_eq!(source.gather(request(&bob)).await, Ok(None));
    assert!(
        source
            .gather(request(&session_key))
            .await
            .unwrap()
            .unwrap()
            .text
            .contains("oolong")
    );
    assert_eq!(harness.store.forget(&bob.principal, "tea").await, Ok(0));
}

#[tokio::test]
async fn recalls_only_entries_that_a_request_names() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    for (key, content) in [
        ("usual tea", "oolong"),
        ("usual server", "build-7"),
        ("회의", "세 시"),
    ] {
        harness
            .call(
                &session_key,
                "save_knowledge",
                json!({ "key": key, "content": content }),
            )
            .await
            .unwrap();
    }
    let source = KnowledgeContext(harness.knowledge_base());
    let gather = async |text: &str| {
        let (session, principal) = (session_key.session.clone(), session_key.principal.clone());
        source
            .gather(ContextRequest {
                session,
                principal,
                text: text.to_owned(),
            })
            .await
            .unwrap()
            .map(|context| context.text)
    };
    let tea = gather("please order my usual tea for tomorrow")
        .await
        .unwrap();
    assert!(tea.contains("oolong") && !tea.contains("build-7"), "{tea}");
    assert!(gather("회의 언제야?").await.unwrap().contains("세 시"));
    for nothing in ["what is usual?", "", "🦀"] {
        assert_eq!(gather(nothing).await, None, "{nothing}");
    }
}

const ERROR: &str = "error: failed to get `serde`: could not reach the registry index";

async fn advice(harness: &KnowledgeHarness, principal: &Principal) -> Option<String> {
    let call = FailedCall {
        session: lango_domain::event::SessionId::new("s"),
        principal: principal.clone(),
        tool: "exec_shell".to_owned(),
        args: command("cargo build"),
        error: ERROR.to_owned(),
    };
    LearningAdvisor(harness.knowledge_base())
        .advice(call)
        .await
        .map(|advice| advice.text)
}

fn command(command_line: &str) -> Value {
    json!({ "command": command_line })
}

/// Runs a turn in which a matching learning is shown, with the result of the next call.
async fn show_in_turn(harness: &KnowledgeHarness, turn: &str, later_result: Result<(), &str>) {
    let session_key = conversation("s");
    let advice = advice(harness, &session_key.principal).await;
    let later_result = later_result.map_err(|error| (error, None));
    let mut bodies: Vec<_> = call_and_result(
        "c1",
        "exec_shell",
        command("cargo build"),
        Err((ERROR, advice)),
    )
    .into();
    bodies.extend(call_and_result(
        "c2",
        "exec_shell",
        command("cargo build --offline"),
        later_result,
    ));
    bodies.extend(answer("so it is"));
    harness.turn(&session_key, turn, "build it", bodies).await;
    let outcomes = OutcomeTracker {
        knowledge_base: harness.knowledge_base(),
        sessions: harness.sessions(),
    };
    // Repeated and concurrent notifications count each outcome once.
    outcomes.on_turn_end(session_key.clone()).await;
    futures::join!(
        outcomes.on_turn_end(session_key.clone()),
        outcomes.on_turn_end(session_key)
    );
}

/// S83
#[tokio::test]
async fn outcomes_change_the_confidence_and_count_once() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    let learning =
        json!({ "trigger": "exec_shell: cargo cannot reach the registry", "fix": "use --offline" });
    let save = async || {
        let saved = harness.call(&session_key, "save_learning", learning.clone());
        saved.await.unwrap()
    };
    assert!(save().await.contains("learning 1"));
    assert!(save().await.contains("nothing changed"));
    let counts = async || {
        let learning = harness
            .store
            .learnings(&session_key.principal)
            .await
            .unwrap()
            .remove(0);
        (learning.helped, learning.failed, learning.confidence())
    };
    assert!(
        advice(&harness, &session_key.principal)
            .await
            .unwrap()
            .contains("use --offline")
    );
    let (_, _, initial) = counts().await;
    show_in_turn(&harness, "t1", Ok(())).await;
    let (helped, failed, after_success) = counts().await;
    assert!((helped, failed) == (1, 0) && after_success > initial);
    show_in_turn(&harness, "t2", Err(ERROR)).await;
    let (helped, failed, after_failure) = counts().await;
    assert!((helped, failed) == (1, 1) && after_failure < after_success);
    for turn in ["t3", "t4"] {
        show_in_turn(&harness, turn, Err(ERROR)).await;
    }
    assert_eq!(
        advice(&harness, &session_key.principal).await,
        None,
        "a learning that did not help is not shown any more"
    );
    // Saving it again resets its counts and does not create a second learning.
    assert!(save().await.contains("start again at zero"));
    assert!(advice(&harness, &session_key.principal).await.is_some());
    let found = harness
        .call(
            &session_key,
            "search_learnings",
            json!({ "query": "cargo registry" }),
        )
        .await
        .unwrap();
    assert!(
        found.contains("60 %") && found.lines().count() == 1,
        "{found}"
    );
}

/// B73: another process that opens the file later does not count outcomes again.
#[tokio::test]
async fn outcomes_are_counted_once_across_processes_and_forks() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    let learning = json!({ "trigger": "cargo cannot reach the registry", "fix": "use --offline" });
    harness
        .call(&session_key, "save_learning", learning)
        .await
        .unwrap();
    show_in_turn(&harness, "t1", Ok(())).await;
    let file = harness.folder.path().join("store.sqlite");
    let reopened = KnowledgeHarness {
        store: SqliteStore::open(StoreLocation::File(file)).unwrap(),
        ..harness
    };
    let outcomes = OutcomeTracker {
        knowledge_base: reopened.knowledge_base(),
        sessions: reopened.sessions(),
    };
    outcomes.on_turn_end(session_key.clone()).await;
    let fork = conversation("fork");
    reopened
        .store
        .fork(
            &session_key.principal,
            &session_key.session,
            u64::MAX,
            &fork.session,
        )
        .await
        .unwrap();
    outcomes.on_turn_end(fork).await;
    assert_eq!(
        reopened
            .store
            .learnings(&session_key.principal)
            .await
            .unwrap()[0]
            .helped,
        1
    );
}

#[tokio::test]
async fn counts_the_outcomes_of_many_earlier_turns() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    let learning = json!({ "trigger": "cargo cannot reach the registry", "fix": "use --offline" });
    harness
        .call(&session_key, "save_learning", learning)
        .await
        .unwrap();
    let shown = advice(&harness, &session_key.principal).await;
    let filler = "x".repeat(40_000);
    for turn in 0..6 {
        let mut bodies: Vec<_> = call_and_result(
            "c1",
            "exec_shell",
            command("cargo build"),
            Err((ERROR, shown.clone())),
        )
        .into();
        bodies.extend(call_and_result(
            "c2",
            "exec_shell",
            command("cargo build --offline"),
            Ok(()),
        ));
        bodies.extend(answer(&filler));
        harness
            .turn(&session_key, &format!("t{turn}"), "build it", bodies)
            .await;
    }
    let outcomes = OutcomeTracker {
        knowledge_base: harness.knowledge_base(),
        sessions: harness.sessions(),
    };
    outcomes.on_turn_end(session_key.clone()).await;
    assert_eq!(
        harness
            .store
            .learnings(&session_key.principal)
            .await
            .unwrap()[0]
            .helped,
        6
    );
}
