//! Forgetting removes learned items from every store (B106), over a real store file.

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
use lango_domain::lazy::Lazy;
use lango_domain::memory::{
    MemoryKind, MemoryLevel, MemoryNote, MemoryQuery, MemorySpeaker, MemoryStore, NewMemory,
    ObservedSpan,
};
use lango_domain::session::SessionKey;
use lango_domain::session_catalog::SessionCatalog as _;
use lango_graph::{Graph, LazyGraph, NewFact};
use lango_memory::forget::{ForgetSelection, Forgetter, LearnedItem};
use lango_memory::observational_memory;
use lango_memory::observational_memory::{
    MemoryParts, MemorySettings, ObservationalMemory, Observer,
};
use lango_text::secret_scan::SecretScanner;
use serde_json::{Value, json};

use crate::harness::{KnowledgeHarness, answer, bob_conversation, conversation};
use lango_testkit::tool_context_for as context_for;

/// A word that occurs in every learned item and in no event.
const MARK: &str = "zanzibar";
const REQUEST: &str = "that I prefer tea";

fn forgetter(harness: &KnowledgeHarness) -> Forgetter {
    Forgetter::new(
        Arc::new(harness.store.clone()),
        Arc::new(lango_graph::GraphBatchFormat),
    )
}

fn observational_memory(harness: &KnowledgeHarness) -> ObservationalMemory {
    let now = Arc::clone(&harness.now);
    ObservationalMemory::new(MemoryParts {
        memories: Arc::new(harness.store.clone()),
        observer: Observer::Rules,
        settings: MemorySettings::default(),
        secret_scanner: SecretScanner::default(),
        forgetter: forgetter(harness),
        now: Arc::new(move || *now.lock().unwrap()),
    })
}

fn source(session_key: &SessionKey, turn: &str) -> Provenance {
    Provenance {
        session: Some(session_key.session.clone()),
        turn: TurnId::new(turn),
        by: "librarian".to_owned(),
        label: Label::default(),
    }
}

fn entry(
    harness: &KnowledgeHarness,
    session_key: &SessionKey,
    key: &str,
    content: &str,
) -> NewKnowledgeEntry {
    NewKnowledgeEntry {
        key: key.to_owned(),
        category: KnowledgeCategory::Fact,
        content: content.to_owned(),
        tags: Vec::new(),
        source: source(session_key, "t1"),
        at: *harness.now.lock().unwrap(),
    }
}

async fn save_entry(
    harness: &KnowledgeHarness,
    session_key: &SessionKey,
    key: &str,
    content: &str,
) {
    let entry = entry(harness, session_key, key, content);
    let saved = harness.store.save_entry(&session_key.principal, entry);
    saved.await.unwrap();
}

/// Appends one turn, and items that each store could have learned from it.
async fn learn(harness: &KnowledgeHarness, session_key: &SessionKey) {
    let call = EventBody::ToolCall {
        id: CallId::new("c7"),
        tool: "graph_add_fact".into(),
        args: json!({}),
    };
    let mut events = vec![call];
    events.extend(answer("As you like."));
    harness
        .turn(
            session_key,
            "t1",
            "I prefer tea, and my sister lives in Vienna.",
            events,
        )
        .await;
    observe(harness, session_key).await;
    for content in [
        format!("coffee from {MARK}"),
        format!("tea from {MARK}, at four"),
    ] {
        save_entry(harness, session_key, "drink", &content).await;
    }
    save_entry(
        harness,
        session_key,
        "home",
        "Vienna is where the sister lives",
    )
    .await;
    let (trigger, fix) = (format!("tea is asked for {MARK}"), "bring milk".to_owned());
    let learning = NewLearning {
        trigger,
        fix,
        category: FailureCategory::default(),
        source: source(session_key, "t1"),
        at: *harness.now.lock().unwrap(),
    };
    harness
        .store
        .save_learning(&session_key.principal, learning)
        .await
        .unwrap();
    inquire(harness, session_key).await;
    let fact_source = FactSource::Session {
        session: session_key.session.clone(),
        event: "c7".to_owned(),
    };
    let facts = [
        NewFact::new("Ada", "drinks", format!("tea of {MARK}")),
        NewFact::new("Ada", "lives in", "Vienna"),
    ];
    open_graph(harness)
        .assert(&session_key.principal, fact_source, &facts)
        .await
        .unwrap();
}

/// Saves the observations of the turn.
async fn observe(harness: &KnowledgeHarness, session_key: &SessionKey) {
    let at = *harness.now.lock().unwrap();
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
    let span = ObservedSpan {
        after: 0,
        last: 4,
        tokens: 9,
        origin,
        observations,
    };
    harness.store.save_span(session_key, span).await.unwrap();
}

/// Adds a resolved and a pending inquiry.
async fn inquire(harness: &KnowledgeHarness, session_key: &SessionKey) {
    let at = *harness.now.lock().unwrap();
    let new_inquiry = |topic: &str| NewInquiry {
        topic: topic.to_owned(),
        question: format!("Which {topic} do you like?"),
        reason: format!("you spoke of tea and {MARK}"),
        priority: InquiryPriority::Medium,
        found_by: Finder::Rule,
        turn: TurnId::new("t1"),
    };
    let scan_result = |after, through, resolutions, new_inquiry| ScanResult {
        after: ScanPosition {
            answers: after,
            gaps: after,
        },
        through: ScanPosition {
            answers: through,
            gaps: through,
        },
        by: Finder::Rule,
        at,
        resolutions,
        new_inquiries: new_inquiry,
        max_pending: 9,
        expiry: ExpiryRule {
            offers: 9,
            before: at,
        },
    };
    let first = scan_result(
        0,
        3,
        Vec::new(),
        vec![new_inquiry("tea house"), new_inquiry("tea pot")],
    );
    harness.store.save_scan(session_key, first).await.unwrap();
    let inquiry = harness.store.pending(&session_key.principal).await.unwrap()[0].id;
    let answer_entry = entry(
        harness,
        session_key,
        "tea house",
        &format!("the tea house of {MARK}"),
    );
    let answer = format!("the one in {MARK}");
    let resolution = Resolution {
        inquiry,
        answer,
        entry: Some(answer_entry),
    };
    harness
        .store
        .save_scan(session_key, scan_result(3, 4, vec![resolution], Vec::new()))
        .await
        .unwrap();
}

fn open_graph(harness: &KnowledgeHarness) -> Graph {
    Graph::new(
        Arc::new(harness.store.clone()),
        Arc::new(jiff::Timestamp::now),
    )
}

async fn find_to_forget(
    harness: &KnowledgeHarness,
    principal: &Principal,
    query: &str,
) -> Vec<LearnedItem> {
    let selection = forgetter(harness).find_to_forget(principal, query).await;
    match selection.unwrap() {
        ForgetSelection::Matched { to_forget, .. } => to_forget,
        ForgetSelection::NoMatch | ForgetSelection::Ambiguous(_) => Vec::new(),
    }
}

fn kinds(items: &[LearnedItem]) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    for item in items {
        *kinds.entry(item.id.kind()).or_default() += 1;
    }
    kinds
}

/// Returns true if any file of the folder contains the text.
fn is_in_files(folder: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let holds = |file: &Path| {
        std::fs::read(file)
            .unwrap()
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    files.filter(|path| path.is_file()).any(|file| holds(&file))
}

/// Returns the combined output of all tools that read learned items.
async fn answers(harness: &KnowledgeHarness, session_key: &SessionKey) -> String {
    let mut tools = observational_memory::tools(Lazy::new({
        let memory = observational_memory(harness);
        move || Ok(Arc::new(memory.clone()))
    }));
    tools.extend(lango_graph::tools(&LazyGraph::new({
        let graph = open_graph(harness);
        move || Ok(Arc::new(graph.clone()))
    })));
    let mut text = String::new();
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
        context.principal = session_key.principal.clone();
        text += &tool
            .call(context, args)
            .await
            .map_or_else(|failure| failure.0, |output| output.content.text);
    }
    for (name, args) in [
        ("search_knowledge", json!({ "query": "tea drink house" })),
        ("search_knowledge", json!({ "query": "Vienna" })),
        ("search_learnings", json!({ "query": "tea" })),
        ("librarian_pending_inquiries", json!({})),
    ] {
        text += &harness.call(session_key, name, args).await.unwrap();
    }
    text
}

/// B106
#[tokio::test]
async fn forgetting_removes_items_from_every_store() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    learn(&harness, &session_key).await;
    assert!(answers(&harness, &session_key).await.matches(MARK).count() >= 5);
    let to_forget = find_to_forget(&harness, &session_key.principal, REQUEST).await;
    let expected = [
        ("fact", 1),
        ("inquiry", 2),
        ("knowledge", 3),
        ("learning", 1),
        ("observation", 1),
    ];
    assert_eq!(
        kinds(&to_forget),
        BTreeMap::from(expected),
        "{to_forget:#?}"
    );
    let forgotten = forgetter(&harness)
        .forget(&session_key.principal, &to_forget)
        .await
        .unwrap();
    assert_eq!(forgotten, to_forget, "returns the removed items");
    let text = answers(&harness, &session_key).await;
    assert!(!text.contains(MARK), "{text}");
    for expected in [
        "My sister lives in Vienna",
        "Vienna is where the sister lives",
        "\"Vienna\"",
    ] {
        assert!(
            text.contains(expected),
            "removes nothing else: {expected} in {text}"
        );
    }
    assert!(!is_in_files(harness.folder.path(), MARK));
    // The conversation stays, but nothing is learned again from it or from a copy.
    observational_memory(&harness)
        .on_turn_end(session_key.clone())
        .await;
    let (copy, local) = (conversation("copy"), &session_key.principal);
    harness
        .store
        .fork(local, &session_key.session, 99, &copy.session)
        .await
        .unwrap();
    observational_memory(&harness).on_turn_end(copy).await;
    let query = MemoryQuery {
        level: MemoryLevel::Observations,
        session: None,
        limit: 9,
    };
    let remaining = MemoryStore::list(&harness.store, local, query)
        .await
        .unwrap();
    assert!(
        remaining
            .iter()
            .all(|memory| !memory.note.text.contains("tea")),
        "{remaining:?}"
    );
}

/// B106: by session_key or by memory id.
#[tokio::test]
async fn forgetting_one_item_forgets_the_related_ones() {
    for by_key in [true, false] {
        let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
        learn(&harness, &session_key).await;
        let selection = match by_key {
            true => forgetter(&harness)
                .find_keys_to_forget(&session_key.principal, &["drink".to_owned()])
                .await
                .unwrap(),
            false => forgetter(&harness)
                .find_to_forget(&session_key.principal, "o1")
                .await
                .unwrap(),
        };
        let ForgetSelection::Matched { to_forget, .. } = selection else {
            panic!("{selection:?}")
        };
        forgetter(&harness)
            .forget(&session_key.principal, &to_forget)
            .await
            .unwrap();
        assert!(!is_in_files(harness.folder.path(), MARK), "{to_forget:#?}");
    }
}

/// B106, B74
#[tokio::test]
async fn principals_cannot_forget_for_each_other() {
    let (harness, session_key, bob) = (
        KnowledgeHarness::new(),
        conversation("s"),
        bob_conversation("s"),
    );
    learn(&harness, &session_key).await;
    learn(&harness, &bob).await;
    let to_forget = find_to_forget(&harness, &session_key.principal, REQUEST).await;
    assert!(
        forgetter(&harness)
            .forget(&Principal::new("eve"), &to_forget)
            .await
            .unwrap()
            .is_empty()
    );
    forgetter(&harness)
        .forget(&session_key.principal, &to_forget)
        .await
        .unwrap();
    assert!(!answers(&harness, &session_key).await.contains(MARK));
    assert!(
        answers(&harness, &bob).await.matches(MARK).count() >= 5,
        "bob's items stay"
    );
}

/// B106, B73: all stores change in one transaction, so a failure removes nothing and can be repeated.
#[tokio::test]
async fn forgetting_is_atomic_and_can_be_repeated() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    learn(&harness, &session_key).await;
    let sqlite = |sql: &str| {
        rusqlite::Connection::open(harness.store.location().path())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
    };
    let before = answers(&harness, &session_key).await;
    let to_forget = find_to_forget(&harness, &session_key.principal, REQUEST).await;
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
            forgetter(&harness)
                .forget(&session_key.principal, &to_forget)
                .await
                .is_err(),
            "{table}"
        );
        sqlite("DROP TRIGGER dies");
        assert_eq!(answers(&harness, &session_key).await, before, "{table}");
    }
    assert_eq!(
        forgetter(&harness)
            .forget(&session_key.principal, &to_forget)
            .await
            .unwrap()
            .len(),
        to_forget.len()
    );
    assert!(
        forgetter(&harness)
            .forget(&session_key.principal, &to_forget)
            .await
            .unwrap()
            .is_empty(),
        "repeating it removes nothing"
    );
    assert_eq!(
        forgetter(&harness)
            .find_to_forget(&session_key.principal, REQUEST)
            .await
            .unwrap(),
        ForgetSelection::NoMatch
    );
}

/// Saves three entries that mention tea.
async fn save_tea_entries(harness: &KnowledgeHarness, session_key: &SessionKey) {
    harness
        .turn(session_key, "t1", "hello", answer("hello"))
        .await;
    for (key, content) in [
        ("assam", "I like green tea from Assam"),
        ("party", "The tea party is at six"),
        ("bob", "My brother Bob prefers tea"),
    ] {
        save_entry(harness, session_key, key, content).await;
    }
}

async fn find(
    harness: &KnowledgeHarness,
    session_key: &SessionKey,
    query: &str,
) -> ForgetSelection {
    let forgetter = forgetter(harness);
    let selection = forgetter.find_to_forget(&session_key.principal, query);
    selection.await.unwrap()
}

/// B106
#[tokio::test]
async fn ambiguous_matches_are_returned_and_stay() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    save_tea_entries(&harness, &session_key).await;
    let find = async |query: &str| find(&harness, &session_key, query).await;
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
        assert_eq!(find(nothing).await, ForgetSelection::NoMatch, "{nothing}");
    }
    let ForgetSelection::Ambiguous(items) = find("tea").await else {
        panic!("three items mention tea")
    };
    assert_eq!(items.len(), 3);
    let ForgetSelection::Matched { to_forget, .. } = find("everything about tea").await else {
        panic!("all three match")
    };
    assert_eq!(to_forget.len(), 3);
    let ForgetSelection::Matched { to_forget, .. } = find("that the tea party is at six").await
    else {
        panic!("one item matches")
    };
    assert_eq!(
        to_forget[0].to_json(),
        json!({ "kind": "knowledge", "id": "party", "text": "The tea party is at six" })
    );
}

/// B106: an item that states exactly the query is selected; items that also state other things stay.
#[tokio::test]
async fn exact_matches_are_selected_and_related_ones_stay() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    save_tea_entries(&harness, &session_key).await;
    save_entry(&harness, &session_key, "drink", "I prefer tea").await;
    let ForgetSelection::Matched { to_forget, related } =
        find(&harness, &session_key, "that I prefer tea").await
    else {
        panic!("one item matches")
    };
    assert_eq!(
        (to_forget.len(), to_forget[0].text.as_str(), related.len()),
        (1, "I prefer tea", 2)
    );
}

/// B106: forgetting an older version does not remove the newest one.
#[tokio::test]
async fn forgetting_an_old_version_keeps_the_newest() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    harness
        .turn(&session_key, "t1", "hello", answer("hello"))
        .await;
    for content in ["I prefer tea", "I prefer cocoa"] {
        save_entry(&harness, &session_key, "drink", content).await;
    }
    let to_forget = find_to_forget(&harness, &session_key.principal, REQUEST).await;
    forgetter(&harness)
        .forget(&session_key.principal, &to_forget)
        .await
        .unwrap();
    let remaining = harness
        .store
        .history(&session_key.principal, "drink")
        .await
        .unwrap();
    assert_eq!(
        remaining
            .iter()
            .map(|entry| entry.content.as_str())
            .collect::<Vec<_>>(),
        ["I prefer cocoa"]
    );
}

/// B106: forgotten messages that are not observed yet are not observed later.
#[tokio::test]
async fn forgotten_messages_are_not_observed_later() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    harness
        .turn(&session_key, "t1", "I prefer tea.", answer("As you like."))
        .await;
    harness
        .turn(
            &session_key,
            "t2",
            "I live in Vienna.",
            answer("As you like."),
        )
        .await;
    save_entry(&harness, &conversation("other"), "drink", "I prefer tea").await;
    let to_forget = find_to_forget(&harness, &session_key.principal, REQUEST).await;
    forgetter(&harness)
        .forget(&session_key.principal, &to_forget)
        .await
        .unwrap();
    observational_memory(&harness)
        .on_turn_end(session_key.clone())
        .await;
    let query = MemoryQuery {
        level: MemoryLevel::Observations,
        session: None,
        limit: 9,
    };
    let observed = MemoryStore::list(&harness.store, &session_key.principal, query)
        .await
        .unwrap();
    let texts: Vec<&str> = observed
        .iter()
        .map(|memory| memory.note.text.as_str())
        .collect();
    assert_eq!(texts, ["I live in Vienna"]);
}

/// B106: imported facts are not forgotten, and the remaining facts do not change.
#[tokio::test]
async fn removes_only_facts_that_the_user_stated() {
    let (harness, session_key) = (KnowledgeHarness::new(), conversation("s"));
    let graph = open_graph(&harness);
    let tea = || {
        [
            NewFact::new("user", "prefers", "tea"),
            NewFact::new("user", "owns", "a boat"),
        ]
    };
    graph
        .assert(&session_key.principal, FactSource::User, &tea())
        .await
        .unwrap();
    graph
        .assert(
            &session_key.principal,
            FactSource::Import("drinks.tsv".to_owned()),
            &tea(),
        )
        .await
        .unwrap();
    let before = graph.snapshot(&session_key.principal).await.unwrap();
    let to_forget = find_to_forget(&harness, &session_key.principal, REQUEST).await;
    assert_eq!(kinds(&to_forget), BTreeMap::from([("fact", 1)]));
    forgetter(&harness)
        .forget(&session_key.principal, &to_forget)
        .await
        .unwrap();
    let after = graph.snapshot(&session_key.principal).await.unwrap();
    assert_eq!((before.facts().len(), after.facts().len()), (4, 3));
    let batches = GraphStore::changes(
        &harness.store,
        &session_key.principal,
        lango_domain::graph::FactLogPosition::default(),
    );
    assert_eq!(batches.await.unwrap().batches.len(), 2);
    let again: Value = serde_json::to_value(after.fact_item(0)).unwrap();
    assert_eq!(
        (again["predicate"].as_str(), again["source"].as_str()),
        (Some("owns"), Some("user"))
    );
}
