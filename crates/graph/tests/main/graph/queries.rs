//! Queries, traversal and paths, with names in any script and facts with a validity.

use std::collections::{HashMap, HashSet};

use lango_domain::graph::FactSource;
use lango_graph::{
    AsOf, Direction, FactPattern, FactRetirement, GraphSnapshot, NewFact, Traversal,
};
use proptest::prelude::*;

use super::{GraphHarness, at, fact_lines, facts, me, now};

fn both_ways(depth: u32, limit: usize) -> Traversal {
    Traversal {
        depth,
        predicates: Vec::new(),
        direction: Direction::Both,
        as_of: now(),
        limit,
    }
}

/// S80
#[tokio::test]
async fn finds_facts_by_their_parts_in_any_spelling() {
    let harness = GraphHarness::new();
    harness.add_facts("Berlin | capital of | Germany\n berlin | located-in | Europe\n Bonn | Capital_Of | GERMANY")
        .await;
    let snapshot = harness.snapshot().await;
    let berlin = snapshot.find("  BERLIN ").unwrap();
    let capital = snapshot.find_predicate("capital-of").unwrap();
    let germany = snapshot.find("germany").unwrap();
    let ask = |subject, predicate, object| {
        fact_lines(
            &snapshot,
            &snapshot
                .query(
                    FactPattern {
                        subject,
                        predicate,
                        object,
                    },
                    now(),
                    10,
                )
                .facts,
        )
    };
    assert_eq!(
        ask(Some(berlin), None, None),
        ["Berlin capital of Germany", "Berlin located-in Europe"]
    );
    assert_eq!(
        ask(None, None, Some(germany)),
        ["Berlin capital of Germany", "Bonn capital of Germany"]
    );
    assert_eq!(
        ask(Some(berlin), Some(capital), None),
        ["Berlin capital of Germany"]
    );
    assert_eq!(ask(Some(berlin), Some(capital), Some(germany)).len(), 1);
    assert_eq!(ask(None, Some(capital), None).len(), 2);
    assert_eq!(
        fact_lines(
            &snapshot,
            &snapshot.facts_about(germany, None, now(), 10).facts
        )
        .len(),
        2
    );
    let limited = snapshot.query(
        FactPattern {
            object: Some(germany),
            ..FactPattern::default()
        },
        now(),
        1,
    );
    assert!(limited.has_more && limited.facts.len() == 1);
    let unknown = snapshot.find("Brelin").unwrap_err();
    assert_eq!(unknown.near, ["Berlin"]);
    assert!(unknown.to_string().contains("did you mean `Berlin`"));
}

/// S80
#[tokio::test]
async fn ignores_an_article_that_is_not_part_of_a_name() {
    let harness = GraphHarness::new();
    harness
        .add_facts(
            "Spree | flows through | Berlin\n The Hague | in | Holland\n Hague | kind of | name",
        )
        .await;
    let snapshot = harness.snapshot().await;
    let find_name = |name: &str| {
        snapshot
            .find(name)
            .map(|found| snapshot.name(found).to_owned())
    };
    assert_eq!(find_name("the Spree").as_deref(), Ok("Spree"));
    assert_eq!(find_name(" THE \u{3000} spree ").as_deref(), Ok("Spree"));
    assert_eq!(find_name("the hague").as_deref(), Ok("The Hague"));
    for unknown in ["the", "the ", "the Rhine", "theSpree", "the the Spree", ""] {
        assert!(find_name(unknown).is_err(), "{unknown}");
    }
    assert_eq!(find_name("the Rhine").unwrap_err().name, "the Rhine");
}

async fn facts_to_germany(harness: &GraphHarness, as_of: AsOf) -> Vec<String> {
    let snapshot = harness.snapshot().await;
    let pattern = FactPattern {
        object: snapshot.find("Germany").ok(),
        ..FactPattern::default()
    };
    fact_lines(&snapshot, &snapshot.query(pattern, as_of, 10).facts)
}

#[tokio::test]
async fn facts_are_found_by_their_validity() {
    let harness = GraphHarness::new();
    let from_to = |from: &str, to: &str| NewFact {
        valid_from: Some(from.parse().unwrap()),
        valid_to: (!to.is_empty()).then(|| to.parse().unwrap()),
        ..NewFact::new("Bonn", "capital of", "Germany")
    };
    let facts = [from_to("1949-05-23", "1990-10-03"), from_to("2030", "")];
    harness
        .graph
        .assert(&me(), FactSource::User, &facts)
        .await
        .unwrap();
    harness.add_facts("Berlin | capital of | Germany").await;
    let (bonn, berlin) = ("Bonn capital of Germany", "Berlin capital of Germany");
    assert_eq!(facts_to_germany(&harness, now()).await, [berlin]);
    assert_eq!(facts_to_germany(&harness, at("1960")).await, [bonn, berlin]);
    assert_eq!(
        facts_to_germany(&harness, at("1990-10-03")).await,
        [berlin],
        "the end is exclusive"
    );
    assert_eq!(facts_to_germany(&harness, AsOf::AnyTime).await.len(), 3);
}

#[tokio::test]
async fn facts_can_be_retired_and_added_again() {
    let harness = GraphHarness::new();
    harness.add_facts("Berlin | capital of | Germany").await;
    let retirement = FactRetirement {
        subject: "BERLIN".to_owned(),
        predicate: "capital-of".to_owned(),
        object: "germany".to_owned(),
        at: "2025-06-01".parse().unwrap(),
    };
    harness
        .graph
        .retire(&me(), FactSource::User, &[retirement])
        .await
        .unwrap();
    let fact = "Berlin capital of Germany";
    assert!(facts_to_germany(&harness, now()).await.is_empty());
    assert_eq!(facts_to_germany(&harness, at("2025-05-31")).await, [fact]);
    let snapshot = harness.snapshot().await;
    let berlin = snapshot.find("Berlin").unwrap();
    let retired = snapshot.facts_about(berlin, None, AsOf::AnyTime, 10).facts[0];
    assert_eq!(
        snapshot.fact_item(retired).valid_to.as_deref(),
        Some("2025-06-01")
    );
    let reached = snapshot.traverse(berlin, &both_ways(2, 10)).hits;
    assert!(reached.facts.is_empty());
    harness.add_facts("Berlin | capital of | Germany").await;
    assert_eq!(
        facts_to_germany(&harness, now()).await,
        [fact],
        "a fact that is added again is valid again"
    );
}

/// S80: both directions, cycles, no fact twice, depth, predicates and limit.
#[tokio::test]
async fn traversal_returns_every_fact_once() {
    let harness = GraphHarness::new();
    harness.add_facts("a1 | knows | b1\n b1 | knows | c1\n c1 | knows | a1\n d1 | hates | a1\n d1 | knows | e1\n a1 | knows | a1\n c1 | hates | b1").await;
    harness
        .add_facts_from(FactSource::Other("again".to_owned()), "a1 | knows | b1")
        .await;
    let snapshot = harness.snapshot().await;
    let start = snapshot.find("A1").unwrap();
    let facts = |traversal: &Traversal| {
        fact_lines(&snapshot, &snapshot.traverse(start, traversal).hits.facts)
    };
    assert_eq!(
        facts(&both_ways(1, 99)),
        ["a1 knows b1", "a1 knows a1", "c1 knows a1", "d1 hates a1"]
    );
    let depth_two = facts(&both_ways(2, 99));
    assert_eq!(depth_two.len(), 7);
    assert_eq!(
        depth_two.iter().collect::<HashSet<_>>().len(),
        7,
        "{depth_two:?}"
    );
    assert_eq!(facts(&both_ways(9, 99)), depth_two, "cycles terminate");
    let result = snapshot.traverse(start, &both_ways(2, 2));
    assert!(result.hits.has_more && result.hits.facts.len() == 2);
    let out = Traversal {
        direction: Direction::Out,
        ..both_ways(2, 99)
    };
    assert_eq!(facts(&out), ["a1 knows b1", "a1 knows a1", "b1 knows c1"]);
    let incoming = Traversal {
        direction: Direction::In,
        ..both_ways(1, 99)
    };
    assert_eq!(
        facts(&incoming),
        ["c1 knows a1", "d1 hates a1", "a1 knows a1"]
    );
    let hates = snapshot.find_predicate("hates").unwrap();
    assert_eq!(
        facts(&Traversal {
            predicates: vec![hates],
            ..both_ways(3, 99)
        }),
        ["d1 hates a1"]
    );
    let duplicated = snapshot.fact_item(snapshot.traverse(start, &both_ways(1, 1)).hits.facts[0]);
    assert_eq!(
        (duplicated.source.as_str(), duplicated.sources),
        ("user", vec!["user".to_owned(), "again".to_owned()])
    );
    let names: Vec<(&str, u32)> = snapshot
        .traverse(start, &both_ways(2, 99))
        .names
        .iter()
        .map(|(name, depth)| (snapshot.name(*name), *depth))
        .collect();
    assert_eq!(
        names,
        [("a1", 0), ("b1", 1), ("c1", 1), ("d1", 1), ("e1", 2)]
    );
}

#[tokio::test]
async fn finds_a_shortest_path() {
    let harness = GraphHarness::new();
    harness.add_facts("ann | works at | acme\n bob | works at | acme\n bob | lives in | berlin\n ann | knows | cem\n cem | knows | dia\n dia | lives in | berlin\n zoe | is | alone").await;
    let snapshot = harness.snapshot().await;
    let path = |from: &str, to: &str, max_len| {
        let (from, to) = (snapshot.find(from).unwrap(), snapshot.find(to).unwrap());
        let facts = snapshot.shortest_path(from, to, max_len, now());
        facts.map(|facts| fact_lines(&snapshot, &facts))
    };
    let expected = [
        "ann works at acme",
        "bob works at acme",
        "bob lives in berlin",
    ];
    assert_eq!(path("Ann", "Berlin", 6).unwrap(), expected);
    assert_eq!(path("Ann", "Berlin", 2), None, "the path is longer than 2");
    assert_eq!(path("ann", "zoe", 9), None);
    assert_eq!(path("ann", "ann", 3), Some(Vec::new()));
    assert_eq!(path("berlin", "ann", 3).unwrap().len(), 3);
}

#[tokio::test]
async fn finds_names_of_any_script_in_text() {
    let harness = GraphHarness::new();
    harness.add_facts("New York City | in | USA\n New York | in | USA\n 서울 | in | 대한민국\n 東京 | in | 日本\n Zürich | in | Schweiz\n القاهرة | in | مصر\n 42 | is | answer").await;
    let snapshot = harness.snapshot().await;
    let names = |text: &str| {
        snapshot
            .find_entities(text)
            .into_iter()
            .map(|name| snapshot.name(name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names("From NEW YORK CITY to zu\u{308}rich's lake, in 42 days."),
        ["New York City", "Zürich"]
    );
    assert_eq!(names("서울에서 만나요"), ["서울"]);
    assert_eq!(names("明日は東京へ行く"), ["東京"]);
    assert_eq!(names("زرت القاهرة أمس"), ["القاهرة"]);
    assert!(names("in is at").is_empty());
    assert!(names("").is_empty());
    assert!(
        GraphHarness::new()
            .snapshot()
            .await
            .find_entities("New York")
            .is_empty()
    );
}

type Triple = (u8, u8, u8);

/// A simple reference implementation over a set of triples.
fn traverse_naively(
    triples: &HashSet<Triple>,
    start: u8,
    depth: u32,
) -> (HashMap<u8, u32>, HashSet<Triple>) {
    let (mut depths, mut reached) = (HashMap::from([(start, 0)]), HashSet::new());
    for level in 0..depth {
        let frontier: HashSet<u8> = depths
            .iter()
            .filter(|(_, at)| **at == level)
            .map(|(name, _)| *name)
            .collect();
        for triple in triples
            .iter()
            .filter(|(s, _, o)| frontier.contains(s) || frontier.contains(o))
        {
            reached.insert(*triple);
            for name in [triple.0, triple.2] {
                depths.entry(name).or_insert(level + 1);
            }
        }
    }
    (depths, reached)
}

fn traverse_all(
    snapshot: &GraphSnapshot,
    start: u8,
    depth: u32,
) -> (HashMap<String, u32>, HashSet<String>) {
    let Ok(start) = snapshot.find(&format!("n{start}")) else {
        return Default::default();
    };
    let result = snapshot.traverse(start, &both_ways(depth, usize::MAX));
    let texts = fact_lines(snapshot, &result.hits.facts);
    let distinct: HashSet<String> = texts.iter().cloned().collect();
    assert_eq!(distinct.len(), texts.len(), "no fact twice");
    (
        result
            .names
            .iter()
            .map(|(name, depth)| (snapshot.name(*name).to_owned(), *depth))
            .collect(),
        distinct,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn traversal_agrees_with_a_reference_implementation(
        batches in prop::collection::vec(prop::collection::vec((0_u8..12, 0_u8..3, 0_u8..12), 0..30), 1..4),
        depth in 0_u32..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let harness = GraphHarness::new();
            let mut triples = HashSet::new();
            for batch in &batches {
                let lines: String = batch.iter().map(|(s, p, o)| format!("n{s} | p{p} | n{o}\n")).collect();
                harness.graph.assert(&me(), FactSource::User, &facts(&lines)).await.unwrap();
                triples.extend(batch.iter().copied());
                // Query between batches, so that later facts are added to existing edges.
                let snapshot = harness.snapshot().await;
                for start in 0..12 {
                    if triples.iter().any(|(s, _, o)| *s == start || *o == start) {
                        let (depths, reached) = traverse_naively(&triples, start, depth);
                        let depths: HashMap<String, u32> =
                            depths.into_iter().map(|(name, at)| (format!("n{name}"), at)).collect();
                        let reached: HashSet<String> = reached.into_iter().map(|(s, p, o)| format!("n{s} p{p} n{o}")).collect();
                        assert_eq!(traverse_all(&snapshot, start, depth), (depths, reached));
                    }
                }
            }
        });
    }
}
