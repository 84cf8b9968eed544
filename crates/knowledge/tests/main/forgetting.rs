//! What is forgotten is gone from every place that learned it from the same words (B106). The store here is the real one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lango_domain::Label;
use lango_domain::event::{CallId, EventBody, Principal, TurnId};
use lango_domain::graph::{FactSource, GraphStore};
use lango_domain::hooks::AfterTurn;
use lango_domain::inquiries::{
    ExpiryRule, Finder, InquiryPriority, InquiryStore, NewInquiry, Resolution, ScanPosition,
    ScanResult,
};
use lango_domain::knowledge::{
    FailureCategory, KnowledgeCategory, KnowledgeStore, NewKnowledgeEntry, NewLearning, Provenance,
};
use lango_domain::memory::{
    MemoryKind, MemoryLevel, MemoryNote, MemoryQuery, MemorySpeaker, MemoryStore, NewMemory,
    ObservedSpan,
};
use lango_domain::session::SessionKey;
use lango_knowledge::forget::{ForgetSelection, Forgetter, LearnedItem};
use lango_knowledge::graph::{Graph, LazyGraph, NewFact};
use lango_knowledge::memory::{MemoryParts, MemorySettings, ObservationalMemory, Observer};
use lango_knowledge::secret_scan::SecretScanner;
use lango_knowledge::{Lazy, graph, memory};
use serde_json::{Value, json};

use crate::harness::{KnowledgeHarness, answer, bob_conversation, conversation};
use crate::tool_calls::context_for;

/// Stands in everything that was learned, and in no event.
const MARK: &str = "zanzibar";
const REQUEST: &str = "that I prefer tea";

fn forgetting(desk: &KnowledgeHarness) -> Forgetter {
    Forgetter::new(Arc::new(desk.store.clone()))
}

fn observational_memory(desk: &KnowledgeHarness) -> ObservationalMemory {
    let now = Arc::clone(&desk.now);
    ObservationalMemory::new(MemoryParts {
        memories: Arc::new(desk.store.clone()),
        observer: Observer::Rules,
        settings: MemorySettings::default(),
        secret_scanner: SecretScanner::default(),
        forgetter: forgetting(desk),
        now: Arc::new(move || *now.lock().unwrap()),
    })
}

fn source(of: &SessionKey, turn: &str) -> Provenance {
    Provenance {
        session: Some(of.session.clone()),
        turn: TurnId::new(turn),
        by: "librarian".to_owned(),
        label: Label::default(),
    }
}

fn entry(desk: &KnowledgeHarness, of: &SessionKey, key: &str, content: &str) -> NewKnowledgeEntry {
    NewKnowledgeEntry {
        key: key.to_owned(),
        category: KnowledgeCategory::Fact,
        content: content.to_owned(),
        tags: Vec::new(),
        source: source(of, "t1"),
        at: *desk.now.lock().unwrap(),
    }
}

/// One turn, and what every part of the house could have learned from it, in words of its own.
async fn learn(desk: &KnowledgeHarness, of: &SessionKey) {
    let call = EventBody::ToolCall {
        id: CallId::new("c7"),
        tool: "graph_add_fact".into(),
        args: json!({}),
    };
    let mut then = vec![call];
    then.extend(answer("As you like."));
    desk.turn(
        of,
        "t1",
        "I prefer tea, and my sister lives in Vienna.",
        then,
    )
    .await;
    let at = *desk.now.lock().unwrap();
    let note = |text: &str, kind: MemoryKind| MemoryNote {
        text: text.to_owned(),
        kind,
        priority: lango_domain::memory::MemoryPriority::Medium,
        speaker: MemorySpeaker::User,
        label: Label::default(),
        at,
    };
    let new = |note: MemoryNote| NewMemory {
        note,
        turn: TurnId::new("t1"),
        sources: vec![1],
    };
    let observations = vec![
        new(note(
            &format!("I prefer tea ({MARK})"),
            MemoryKind::Preference,
        )),
        new(note("My sister lives in Vienna", MemoryKind::Fact)),
    ];
    let origin = lango_domain::memory::MemoryOrigin::Rules;
    let piece = ObservedSpan {
        after: 0,
        last: 4,
        tokens: 9,
        origin,
        observations,
    };
    desk.store.save_span(of, piece).await.unwrap();
    for content in [
        format!("coffee from {MARK}"),
        format!("tea from {MARK}, at four"),
    ] {
        desk.store
            .save_entry(&of.principal, entry(desk, of, "drink", &content))
            .await
            .unwrap();
    }
    desk.store
        .save_entry(
            &of.principal,
            entry(desk, of, "home", "Vienna is where the sister lives"),
        )
        .await
        .unwrap();
    let (trigger, fix) = (format!("tea is asked for {MARK}"), "bring milk".to_owned());
    let learning = NewLearning {
        trigger,
        fix,
        category: FailureCategory::default(),
        source: source(of, "t1"),
        at,
    };
    desk.store
        .save_learning(&of.principal, learning)
        .await
        .unwrap();
    inquire(desk, of).await;
    let told = FactSource::Session {
        session: of.session.clone(),
        event: "c7".to_owned(),
    };
    let facts = [
        NewFact::new("Ada", "drinks", format!("tea of {MARK}")),
        NewFact::new("Ada", "lives in", "Vienna"),
    ];
    open_graph(desk)
        .assert(&of.principal, told, &facts)
        .await
        .unwrap();
}

/// An inquiry that was answered, and one that waits.
async fn inquire(desk: &KnowledgeHarness, of: &SessionKey) {
    let at = *desk.now.lock().unwrap();
    let found = |topic: &str| NewInquiry {
        topic: topic.to_owned(),
        question: format!("Which {topic} do you like?"),
        reason: format!("you spoke of tea and {MARK}"),
        priority: InquiryPriority::Medium,
        found_by: Finder::Rule,
        turn: TurnId::new("t1"),
    };
    let settled = |behind, through, resolutions, found| ScanResult {
        after: ScanPosition {
            answers: behind,
            gaps: behind,
        },
        through: ScanPosition {
            answers: through,
            gaps: through,
        },
        by: Finder::Rule,
        at,
        resolutions,
        new_inquiries: found,
        max_pending: 9,
        expiry: ExpiryRule {
            offers: 9,
            before: at,
        },
    };
    let first = settled(0, 3, Vec::new(), vec![found("tea house"), found("tea pot")]);
    desk.store.save_scan(of, first).await.unwrap();
    let inquiry = desk.store.pending(&of.principal).await.unwrap()[0].id;
    let known = entry(desk, of, "tea house", &format!("the tea house of {MARK}"));
    let answer = format!("the one in {MARK}");
    let resolution = Resolution {
        inquiry,
        answer,
        entry: Some(known),
    };
    desk.store
        .save_scan(of, settled(3, 4, vec![resolution], Vec::new()))
        .await
        .unwrap();
}

fn open_graph(desk: &KnowledgeHarness) -> Graph {
    Graph::new(Arc::new(desk.store.clone()), Arc::new(jiff::Timestamp::now))
}

async fn find_to_forget(desk: &KnowledgeHarness, of: &Principal, what: &str) -> Vec<LearnedItem> {
    match forgetting(desk).find_to_forget(of, what).await.unwrap() {
        ForgetSelection::Matched {
            to_forget: gone, ..
        } => gone,
        ForgetSelection::NoMatch | ForgetSelection::Ambiguous(_) => Vec::new(),
    }
}

fn kinds(traces: &[LearnedItem]) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    for trace in traces {
        *kinds.entry(trace.id.kind()).or_default() += 1;
    }
    kinds
}

/// Whether any file of the folder holds these bytes.
fn is_in_files(folder: &Path, words: &str) -> bool {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let holds = |file: &Path| {
        std::fs::read(file)
            .unwrap()
            .windows(words.len())
            .any(|window| window == words.as_bytes())
    };
    files.filter(|path| path.is_file()).any(|file| holds(&file))
}

/// What every tool says about it.
async fn answers(desk: &KnowledgeHarness, of: &SessionKey) -> String {
    let mut tools = memory::tools(Lazy::new({
        let chronicle = observational_memory(desk);
        move || Ok(Arc::new(chronicle.clone()))
    }));
    tools.extend(graph::tools(&LazyGraph::new({
        let graph = open_graph(desk);
        move || Ok(Arc::new(graph.clone()))
    })));
    let mut said = String::new();
    for (name, args) in [
        (
            "memory_recall",
            json!({ "query": "what do I like to drink? tea" }),
        ),
        ("memory_list_observations", json!({})),
        ("memory_list_reflections", json!({})),
        ("graph_query", json!({ "subject": "Ada" })),
    ] {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let mut context = context_for("chronicler");
        context.principal = of.principal.clone();
        said += &tool
            .call(context, args)
            .await
            .map_or_else(|failure| failure.0, |output| output.text);
    }
    for (name, args) in [
        ("search_knowledge", json!({ "query": "tea drink house" })),
        ("search_knowledge", json!({ "query": "Vienna" })),
        ("search_learnings", json!({ "query": "tea" })),
        ("librarian_pending_inquiries", json!({})),
    ] {
        said += &desk.call(of, name, args).await.unwrap();
    }
    said
}

/// B106
#[tokio::test]
async fn what_is_forgotten_is_gone_from_every_place() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    learn(&desk, &of).await;
    assert!(answers(&desk, &of).await.matches(MARK).count() >= 5);
    let gone = find_to_forget(&desk, &of.principal, REQUEST).await;
    let expected = [
        ("fact", 1),
        ("inquiry", 2),
        ("knowledge", 3),
        ("learning", 1),
        ("observation", 1),
    ];
    assert_eq!(kinds(&gone), BTreeMap::from(expected), "{gone:#?}");
    let forgotten = forgetting(&desk)
        .forget(&of.principal, &gone)
        .await
        .unwrap();
    assert_eq!(forgotten, gone, "it says what it removed");
    let said = answers(&desk, &of).await;
    assert!(!said.contains(MARK), "{said}");
    for kept in [
        "My sister lives in Vienna",
        "Vienna is where the sister lives",
        "\"Vienna\"",
    ] {
        assert!(
            said.contains(kept),
            "no more than what was meant: {kept} in {said}"
        );
    }
    assert!(!is_in_files(desk.folder.path(), MARK));
    // The conversation stays; nothing is learned from it again, in a copy of it neither.
    observational_memory(&desk).on_turn_end(of.clone()).await;
    let (copy, local) = (conversation("copy"), &of.principal);
    desk.store
        .fork(local, &of.session, 99, &copy.session)
        .await
        .unwrap();
    observational_memory(&desk).on_turn_end(copy).await;
    let which = MemoryQuery {
        level: MemoryLevel::Observations,
        session: None,
        limit: 9,
    };
    let left = MemoryStore::list(&desk.store, local, which).await.unwrap();
    assert!(
        left.iter().all(|memory| !memory.note.text.contains("tea")),
        "{left:?}"
    );
}

/// B106: whichever of them is named.
#[tokio::test]
async fn forgetting_one_of_them_forgets_the_others() {
    for by_key in [true, false] {
        let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
        learn(&desk, &of).await;
        let gone = match by_key {
            true => forgetting(&desk)
                .find_keys_to_forget(&of.principal, &["drink".to_owned()])
                .await
                .unwrap(),
            false => forgetting(&desk)
                .find_to_forget(&of.principal, "o1")
                .await
                .unwrap(),
        };
        let ForgetSelection::Matched {
            to_forget: gone, ..
        } = gone
        else {
            panic!("{gone:?}")
        };
        forgetting(&desk)
            .forget(&of.principal, &gone)
            .await
            .unwrap();
        assert!(!is_in_files(desk.folder.path(), MARK), "{gone:#?}");
    }
}

/// B106, B74
#[tokio::test]
async fn nobody_forgets_for_another() {
    let (desk, of, bob) = (
        KnowledgeHarness::new(),
        conversation("s"),
        bob_conversation("s"),
    );
    learn(&desk, &of).await;
    learn(&desk, &bob).await;
    let gone = find_to_forget(&desk, &of.principal, REQUEST).await;
    assert!(
        forgetting(&desk)
            .forget(&Principal::new("eve"), &gone)
            .await
            .unwrap()
            .is_empty()
    );
    forgetting(&desk)
        .forget(&of.principal, &gone)
        .await
        .unwrap();
    assert!(!answers(&desk, &of).await.contains(MARK));
    assert!(
        answers(&desk, &bob).await.matches(MARK).count() >= 5,
        "bob's own stays"
    );
}

/// B106, B73: one change for all places, so that there is nothing between them to crash in; what failed can be repeated.
#[tokio::test]
async fn forgetting_is_all_or_nothing_and_can_be_repeated() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    learn(&desk, &of).await;
    let sqlite = |sql: &str| {
        rusqlite::Connection::open(desk.store.location().path())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
    };
    let before = answers(&desk, &of).await;
    let gone = find_to_forget(&desk, &of.principal, REQUEST).await;
    for table in [
        "graph_batches",
        "knowledge",
        "learnings",
        "inquiries",
        "observations",
    ] {
        sqlite(&format!(
            "CREATE TRIGGER dies BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'died'); END"
        ));
        assert!(
            forgetting(&desk)
                .forget(&of.principal, &gone)
                .await
                .is_err(),
            "{table}"
        );
        sqlite("DROP TRIGGER dies");
        assert_eq!(answers(&desk, &of).await, before, "{table}");
    }
    assert_eq!(
        forgetting(&desk)
            .forget(&of.principal, &gone)
            .await
            .unwrap()
            .len(),
        gone.len()
    );
    assert!(
        forgetting(&desk)
            .forget(&of.principal, &gone)
            .await
            .unwrap()
            .is_empty(),
        "twice is once"
    );
    assert_eq!(
        forgetting(&desk)
            .find_to_forget(&of.principal, REQUEST)
            .await
            .unwrap(),
        ForgetSelection::NoMatch
    );
}

/// B106
#[tokio::test]
async fn what_is_not_surely_meant_is_shown_and_stays() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    desk.turn(&of, "t1", "hello", answer("hello")).await;
    for (key, content) in [
        ("assam", "I like green tea from Assam"),
        ("party", "The tea party is at six"),
        ("bob", "My brother Bob prefers tea"),
    ] {
        desk.store
            .save_entry(&of.principal, entry(&desk, &of, key, content))
            .await
            .unwrap();
    }
    let forgetting = forgetting(&desk);
    let meant = async |what: &str| {
        forgetting
            .find_to_forget(&of.principal, what)
            .await
            .unwrap()
    };
    for nothing in [
        "",
        "it",
        "that",
        "o77",
        "unrelated things",
        "\u{0}",
        "DROP TABLE knowledge",
        "%",
    ] {
        assert_eq!(meant(nothing).await, ForgetSelection::NoMatch, "{nothing}");
    }
    let ForgetSelection::Ambiguous(several) = meant("tea").await else {
        panic!("three things are about tea")
    };
    assert_eq!(several.len(), 3);
    let ForgetSelection::Matched {
        to_forget: gone, ..
    } = meant("everything about tea").await
    else {
        panic!("all three")
    };
    assert_eq!(gone.len(), 3);
    let ForgetSelection::Matched {
        to_forget: gone, ..
    } = meant("that the tea party is at six").await
    else {
        panic!("that one")
    };
    assert_eq!(
        gone[0].to_json(),
        json!({ "kind": "knowledge", "id": "party", "text": "The tea party is at six" })
    );
    // What says it plainly is meant; what says something else, too, is named and stays.
    desk.store
        .save_entry(&of.principal, entry(&desk, &of, "drink", "I prefer tea"))
        .await
        .unwrap();
    let ForgetSelection::Matched {
        to_forget: gone,
        related: left,
    } = meant("that I prefer tea").await
    else {
        panic!("that one")
    };
    assert_eq!(
        (gone.len(), gone[0].text.as_str(), left.len()),
        (1, "I prefer tea", 2)
    );
}

/// B106: an older version alone goes alone.
#[tokio::test]
async fn a_version_that_is_not_the_newest_goes_alone() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    desk.turn(&of, "t1", "hello", answer("hello")).await;
    for content in ["I prefer tea", "I prefer cocoa"] {
        desk.store
            .save_entry(&of.principal, entry(&desk, &of, "drink", content))
            .await
            .unwrap();
    }
    let gone = find_to_forget(&desk, &of.principal, REQUEST).await;
    forgetting(&desk)
        .forget(&of.principal, &gone)
        .await
        .unwrap();
    let left = desk.store.history(&of.principal, "drink").await.unwrap();
    assert_eq!(
        left.iter()
            .map(|entry| entry.content.as_str())
            .collect::<Vec<_>>(),
        ["I prefer cocoa"]
    );
}

/// B106: what was said and not observed yet is not observed later.
#[tokio::test]
async fn what_nobody_observed_yet_is_not_learned_later() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    desk.turn(&of, "t1", "I prefer tea.", answer("As you like."))
        .await;
    desk.turn(&of, "t2", "I live in Vienna.", answer("As you like."))
        .await;
    desk.store
        .save_entry(
            &of.principal,
            entry(&desk, &conversation("other"), "drink", "I prefer tea"),
        )
        .await
        .unwrap();
    let gone = find_to_forget(&desk, &of.principal, REQUEST).await;
    forgetting(&desk)
        .forget(&of.principal, &gone)
        .await
        .unwrap();
    observational_memory(&desk).on_turn_end(of.clone()).await;
    let which = MemoryQuery {
        level: MemoryLevel::Observations,
        session: None,
        limit: 9,
    };
    let observed = MemoryStore::list(&desk.store, &of.principal, which)
        .await
        .unwrap();
    let texts: Vec<&str> = observed
        .iter()
        .map(|memory| memory.note.text.as_str())
        .collect();
    assert_eq!(texts, ["I live in Vienna"]);
}

/// B106: facts of documents are not the user's words, and order and endings of what stays are as they were.
#[tokio::test]
async fn only_what_somebody_told_is_taken_out_of_the_graph() {
    let (desk, of) = (KnowledgeHarness::new(), conversation("s"));
    let graph = open_graph(&desk);
    let tea = || {
        [
            NewFact::new("user", "prefers", "tea"),
            NewFact::new("user", "owns", "a boat"),
        ]
    };
    graph
        .assert(&of.principal, FactSource::User, &tea())
        .await
        .unwrap();
    graph
        .assert(
            &of.principal,
            FactSource::Import("drinks.tsv".to_owned()),
            &tea(),
        )
        .await
        .unwrap();
    let before = graph.snapshot(&of.principal).await.unwrap();
    let gone = find_to_forget(&desk, &of.principal, REQUEST).await;
    assert_eq!(kinds(&gone), BTreeMap::from([("fact", 1)]));
    forgetting(&desk)
        .forget(&of.principal, &gone)
        .await
        .unwrap();
    let after = graph.snapshot(&of.principal).await.unwrap();
    assert_eq!((before.facts().len(), after.facts().len()), (4, 3));
    let batches = GraphStore::changes(
        &desk.store,
        &of.principal,
        lango_domain::graph::FactLogPosition::default(),
    );
    assert_eq!(batches.await.unwrap().batches.len(), 2);
    let again: Value = serde_json::to_value(after.fact_item(0)).unwrap();
    assert_eq!(
        (again["predicate"].as_str(), again["source"].as_str()),
        (Some("owns"), Some("user"))
    );
}
