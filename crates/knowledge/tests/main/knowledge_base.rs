//! What is known and what helped, from the tool to the file and back.

use lango_domain::event::Principal;
use lango_domain::hooks::{Advisor, AfterTurn, ContextRequest, ContextSource, FailedCall};
use lango_domain::knowledge::{KnowledgeCategory, KnowledgeStore};
use lango_knowledge::knowledge_base::{KnowledgeContext, LearningAdvisor, OutcomeTracker};
use lango_store::{SqliteStore, StoreLocation};
use serde_json::{Value, json};

use crate::harness::{KnowledgeHarness, answer, bob_conversation, call_and_result, conversation};

/// S83
#[tokio::test]
async fn knowledge_is_versioned_and_the_same_again_changes_nothing() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    desk.turn(&of, "t1", "hello", answer("hi")).await;
    let save = async |content: &str| {
        let args = json!({ "key": "Office Hours", "category": "fact", "content": content, "tags": ["Office"] });
        desk.call(&of, "save_knowledge", args).await.unwrap()
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
    desk.advance_minutes(5);
    assert!(
        save("The office closes at seven.")
            .await
            .contains("version 2")
    );
    let versions = desk
        .store
        .history(&of.principal, "office hours")
        .await
        .unwrap();
    let told: Vec<(u32, &str)> = versions
        .iter()
        .map(|one| (one.version, one.content.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (2, "The office closes at seven."),
            (1, "The office closes at six.")
        ]
    );
    assert!(versions[0].at > versions[1].at);
    let source = &versions[0].source;
    assert_eq!(
        (source.session.as_ref(), source.turn.as_str()),
        (Some(&of.session), "t1")
    );
    assert_eq!(source.by, "librarian");
    assert_eq!(desk.store.entries(&of.principal).await.unwrap().len(), 1);
}

/// S83
#[tokio::test]
async fn knowledge_is_found_by_key_content_tags_and_category_in_any_script() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    for (key, category, content, tags) in [
        (
            "office hours",
            "fact",
            "The door is open until six.",
            json!(["opening"]),
        ),
        ("회의", "rule", "회의는 세 시에 시작한다", json!([])),
        (
            "Tee",
            "preference",
            "Grüner Tee schmeckt am besten",
            json!(["getränke"]),
        ),
        (
            "العنوان",
            "definition",
            "المكتب في الطابق الثالث",
            json!([]),
        ),
    ] {
        let args = json!({ "key": key, "category": category, "content": content, "tags": tags });
        desk.call(&of, "save_knowledge", args).await.unwrap();
    }
    let search = async |query: &str| {
        desk.call(&of, "search_knowledge", json!({ "query": query }))
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
        assert!(
            search(query)
                .await
                .lines()
                .next()
                .unwrap()
                .contains(expected),
            "{query}"
        );
    }
    assert!(search("submarines").await.starts_with("Nothing is known"));
    let rules = json!({ "query": "office tee 회의", "category": "rule" });
    let found = desk.call(&of, "search_knowledge", rules).await.unwrap();
    assert!(
        found.contains("세 시에") && found.lines().count() == 1,
        "{found}"
    );
    assert!(
        desk.call(&of, "search_knowledge", json!({ "query": " " }))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn what_must_not_or_cannot_be_kept_is_refused_with_the_reason() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
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
        let refused = desk.call(&of, "save_knowledge", args).await.unwrap_err().0;
        assert!(
            refused.contains(reason) && !refused.contains("hunter2"),
            "{refused}"
        );
    }
    let learning = json!({ "trigger": "login fails", "fix": "use password=hunter2" });
    assert!(desk.call(&of, "save_learning", learning).await.is_err());
    assert!(desk.store.entries(&of.principal).await.unwrap().is_empty());
    assert!(
        desk.store
            .learnings(&of.principal)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_key_is_made_from_the_content_where_none_is_given() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    desk.call(
        &of,
        "save_knowledge",
        json!({ "content": "The wifi name is Falcon" }),
    )
    .await
    .unwrap();
    let known = desk.store.entries(&of.principal).await.unwrap();
    assert_eq!(
        (known[0].key.as_str(), known[0].category),
        ("wifi name", KnowledgeCategory::Fact)
    );
}

/// B74
#[tokio::test]
async fn nothing_is_seen_or_advised_across_principals() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    desk.call(
        &of,
        "save_knowledge",
        json!({ "key": "tea", "content": "oolong" }),
    )
    .await
    .unwrap();
    let learning = json!({ "trigger": "cargo cannot reach the registry", "fix": "use --offline" });
    desk.call(&of, "save_learning", learning.clone())
        .await
        .unwrap();
    let bob = bob_conversation("s");
    assert!(
        desk.call(&bob, "search_knowledge", json!({ "query": "tea" }))
            .await
            .unwrap()
            .starts_with("Nothing")
    );
    let found = desk
        .call(
            &bob,
            "search_learnings",
            json!({ "query": "cargo registry" }),
        )
        .await
        .unwrap();
    assert!(found.starts_with("Nothing"));
    assert_eq!(advice(&desk, &bob.principal).await, None);
    let request = |of: &lango_domain::session::SessionKey| {
        let (session, principal) = (of.session.clone(), of.principal.clone());
        ContextRequest {
            session,
            principal,
            text: "order tea".into(),
        }
    };
    let recalling = KnowledgeContext(desk.knowledge_base());
    assert_eq!(recalling.gather(request(&bob)).await, Ok(None));
    assert!(
        recalling
            .gather(request(&of))
            .await
            .unwrap()
            .unwrap()
            .text
            .contains("oolong")
    );
    assert_eq!(desk.store.forget(&bob.principal, "tea").await, Ok(0));
}

#[tokio::test]
async fn what_a_request_names_is_recalled_and_nothing_else() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    for (key, content) in [
        ("usual tea", "oolong"),
        ("usual server", "build-7"),
        ("회의", "세 시"),
    ] {
        desk.call(
            &of,
            "save_knowledge",
            json!({ "key": key, "content": content }),
        )
        .await
        .unwrap();
    }
    let recalling = KnowledgeContext(desk.knowledge_base());
    let recalled = async |text: &str| {
        let (session, principal) = (of.session.clone(), of.principal.clone());
        recalling
            .gather(ContextRequest {
                session,
                principal,
                text: text.to_owned(),
            })
            .await
            .unwrap()
            .map(|recalled| recalled.text)
    };
    let tea = recalled("please order my usual tea for tomorrow")
        .await
        .unwrap();
    assert!(tea.contains("oolong") && !tea.contains("build-7"), "{tea}");
    assert!(recalled("회의 언제야?").await.unwrap().contains("세 시"));
    for nothing in ["what is usual?", "", "🦀"] {
        assert_eq!(recalled(nothing).await, None, "{nothing}");
    }
}

const ERROR: &str = "error: failed to get `serde`: could not reach the registry index";

async fn advice(desk: &KnowledgeHarness, principal: &Principal) -> Option<String> {
    let about = FailedCall {
        session: lango_domain::event::SessionId::new("s"),
        principal: principal.clone(),
        tool: "exec_shell".to_owned(),
        args: command("cargo build"),
        error: ERROR.to_owned(),
    };
    LearningAdvisor(desk.knowledge_base())
        .advice(about)
        .await
        .map(|advice| advice.text)
}

fn command(words: &str) -> Value {
    json!({ "command": words })
}

/// A learning that fits, shown in a turn, with what came of it afterwards.
async fn show_in_turn(desk: &KnowledgeHarness, turn: &str, then: Result<(), &str>) {
    let of = conversation("s");
    let advice = advice(desk, &of.principal).await;
    let then = then.map_err(|error| (error, None));
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
        then,
    ));
    bodies.extend(answer("so it is"));
    desk.turn(&of, turn, "build it", bodies).await;
    let outcomes = OutcomeTracker {
        knowledge_base: desk.knowledge_base(),
        sessions: desk.sessions(),
    };
    // Told twice, and twice at once: counted once.
    outcomes.on_turn_end(of.clone()).await;
    futures::join!(outcomes.on_turn_end(of.clone()), outcomes.on_turn_end(of));
}

/// S83
#[tokio::test]
async fn confidence_follows_outcomes_up_and_down_and_each_counts_once() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    let learning =
        json!({ "trigger": "exec_shell: cargo cannot reach the registry", "fix": "use --offline" });
    assert!(
        desk.call(&of, "save_learning", learning.clone())
            .await
            .unwrap()
            .contains("learning 1")
    );
    assert!(
        desk.call(&of, "save_learning", learning.clone())
            .await
            .unwrap()
            .contains("nothing changed")
    );
    let counts = async || {
        let one = desk.store.learnings(&of.principal).await.unwrap().remove(0);
        (one.helped, one.failed, one.confidence())
    };
    assert!(
        advice(&desk, &of.principal)
            .await
            .unwrap()
            .contains("use --offline")
    );
    let (_, _, begun) = counts().await;
    show_in_turn(&desk, "t1", Ok(())).await;
    let (helped, failed, risen) = counts().await;
    assert!((helped, failed) == (1, 0) && risen > begun);
    show_in_turn(&desk, "t2", Err(ERROR)).await;
    let (helped, failed, fallen) = counts().await;
    assert!((helped, failed) == (1, 1) && fallen < risen);
    for turn in ["t3", "t4"] {
        show_in_turn(&desk, turn, Err(ERROR)).await;
    }
    assert_eq!(
        advice(&desk, &of.principal).await,
        None,
        "what did not help is not shown any more"
    );
    // Said again it begins anew, and there is still one of it.
    assert!(
        desk.call(&of, "save_learning", learning)
            .await
            .unwrap()
            .contains("anew")
    );
    assert!(advice(&desk, &of.principal).await.is_some());
    let found = desk
        .call(
            &of,
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

/// B73: another process that opens the file afterwards counts nothing again.
#[tokio::test]
async fn outcomes_are_counted_once_across_processes_and_forks() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    let learning = json!({ "trigger": "cargo cannot reach the registry", "fix": "use --offline" });
    desk.call(&of, "save_learning", learning).await.unwrap();
    show_in_turn(&desk, "t1", Ok(())).await;
    let file = desk.folder.path().join("store.sqlite");
    let again = KnowledgeHarness {
        store: SqliteStore::open(StoreLocation::File(file)).unwrap(),
        ..desk
    };
    let outcomes = OutcomeTracker {
        knowledge_base: again.knowledge_base(),
        sessions: again.sessions(),
    };
    outcomes.on_turn_end(of.clone()).await;
    let fork = conversation("fork");
    again
        .store
        .fork(&of.principal, &of.session, u64::MAX, &fork.session)
        .await
        .unwrap();
    outcomes.on_turn_end(fork).await;
    assert_eq!(
        again.store.learnings(&of.principal).await.unwrap()[0].helped,
        1
    );
}

#[tokio::test]
async fn many_turns_that_nobody_counted_are_caught_up_with() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    let learning = json!({ "trigger": "cargo cannot reach the registry", "fix": "use --offline" });
    desk.call(&of, "save_learning", learning).await.unwrap();
    let shown = advice(&desk, &of.principal).await;
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
        desk.turn(&of, &format!("t{turn}"), "build it", bodies)
            .await;
    }
    let outcomes = OutcomeTracker {
        knowledge_base: desk.knowledge_base(),
        sessions: desk.sessions(),
    };
    outcomes.on_turn_end(of.clone()).await;
    assert_eq!(
        desk.store.learnings(&of.principal).await.unwrap()[0].helped,
        6
    );
}
