//! What facts answer, with names in any script and times of their own.

use std::collections::{HashMap, HashSet};

use lango_domain::graph::FactSource;
use lango_knowledge::graph::{
    AsOf, Direction, FactPattern, FactRetirement, GraphSnapshot, NewFact, Traversal,
};
use proptest::prelude::*;

use super::{GraphHarness, at, fact_lines, facts, me, now};

fn everywhere(depth: u32, limit: usize) -> Traversal {
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
async fn facts_are_found_by_their_parts_however_names_are_written() {
    let desk = GraphHarness::new();
    desk.add_facts("Berlin | capital of | Germany\n berlin | located-in | Europe\n Bonn | Capital_Of | GERMANY")
        .await;
    let view = desk.snapshot().await;
    let berlin = view.find("  BERLIN ").unwrap();
    let capital = view.find_predicate("capital-of").unwrap();
    let germany = view.find("germany").unwrap();
    let ask = |subject, predicate, object| {
        fact_lines(
            &view,
            &view
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
        fact_lines(&view, &view.facts_about(germany, None, now(), 10).facts).len(),
        2
    );
    let limited = view.query(
        FactPattern {
            object: Some(germany),
            ..FactPattern::default()
        },
        now(),
        1,
    );
    assert!(limited.has_more && limited.facts.len() == 1);
    let unknown = view.find("Brelin").unwrap_err();
    assert_eq!(unknown.near, ["Berlin"]);
    assert!(unknown.to_string().contains("did you mean `Berlin`"));
}

/// S80
#[tokio::test]
async fn an_article_before_a_name_is_left_out_where_it_is_no_part_of_it() {
    let desk = GraphHarness::new();
    desk.add_facts(
        "Spree | flows through | Berlin\n The Hague | in | Holland\n Hague | kind of | name",
    )
    .await;
    let view = desk.snapshot().await;
    let named = |name: &str| view.find(name).map(|found| view.name(found).to_owned());
    assert_eq!(named("the Spree").as_deref(), Ok("Spree"));
    assert_eq!(named(" THE \u{3000} spree ").as_deref(), Ok("Spree"));
    assert_eq!(named("the hague").as_deref(), Ok("The Hague"));
    for unknown in ["the", "the ", "the Rhine", "theSpree", "the the Spree", ""] {
        assert!(named(unknown).is_err(), "{unknown}");
    }
    assert_eq!(named("the Rhine").unwrap_err().name, "the Rhine");
}

#[tokio::test]
async fn facts_hold_for_a_time_and_can_be_retired() {
    let desk = GraphHarness::new();
    let from_to = |from: &str, to: &str| NewFact {
        valid_from: Some(from.parse().unwrap()),
        valid_to: (!to.is_empty()).then(|| to.parse().unwrap()),
        ..NewFact::new("Bonn", "capital of", "Germany")
    };
    desk.graph
        .assert(
            &me(),
            FactSource::User,
            &[from_to("1949-05-23", "1990-10-03"), from_to("2030", "")],
        )
        .await
        .unwrap();
    desk.add_facts("Berlin | capital of | Germany").await;
    let germany = async |when: AsOf| {
        let view = desk.snapshot().await;
        let object = view.find("Germany").ok();
        fact_lines(
            &view,
            &view
                .query(
                    FactPattern {
                        object,
                        ..FactPattern::default()
                    },
                    when,
                    10,
                )
                .facts,
        )
    };
    assert_eq!(germany(now()).await, ["Berlin capital of Germany"]);
    assert_eq!(
        germany(at("1960")).await,
        ["Bonn capital of Germany", "Berlin capital of Germany"]
    );
    assert_eq!(
        germany(at("1990-10-03")).await,
        ["Berlin capital of Germany"],
        "the end is no part of it"
    );
    assert_eq!(germany(AsOf::AnyTime).await.len(), 3);
    let ending = FactRetirement {
        subject: "BERLIN".to_owned(),
        predicate: "capital-of".to_owned(),
        object: "germany".to_owned(),
        at: "2025-06-01".parse().unwrap(),
    };
    desk.graph
        .retire(&me(), FactSource::User, &[ending])
        .await
        .unwrap();
    assert!(germany(now()).await.is_empty());
    assert_eq!(
        germany(at("2025-05-31")).await,
        ["Berlin capital of Germany"]
    );
    let view = desk.snapshot().await;
    let berlin = view
        .facts_about(view.find("Berlin").unwrap(), None, AsOf::AnyTime, 10)
        .facts[0];
    assert_eq!(
        view.fact_item(berlin).valid_to.as_deref(),
        Some("2025-06-01")
    );
    assert!(
        view.traverse(view.find("Berlin").unwrap(), &everywhere(2, 10))
            .hits
            .facts
            .is_empty()
    );
    desk.add_facts("Berlin | capital of | Germany").await;
    assert_eq!(
        germany(now()).await,
        ["Berlin capital of Germany"],
        "told again, it holds again"
    );
}

/// S80: both directions, cycles, no fact twice, depth, predicates and limit.
#[tokio::test]
async fn a_walk_meets_every_fact_once() {
    let desk = GraphHarness::new();
    desk.add_facts("a1 | knows | b1\n b1 | knows | c1\n c1 | knows | a1\n d1 | hates | a1\n d1 | knows | e1\n a1 | knows | a1\n c1 | hates | b1").await;
    desk.add_facts_from(FactSource::Other("again".to_owned()), "a1 | knows | b1")
        .await;
    let view = desk.snapshot().await;
    let start = view.find("A1").unwrap();
    let facts = |walk: &Traversal| fact_lines(&view, &view.traverse(start, walk).hits.facts);
    assert_eq!(
        facts(&everywhere(1, 99)),
        ["a1 knows b1", "a1 knows a1", "c1 knows a1", "d1 hates a1"]
    );
    let two = facts(&everywhere(2, 99));
    assert_eq!(two.len(), 7);
    assert_eq!(two.iter().collect::<HashSet<_>>().len(), 7, "{two:?}");
    assert_eq!(facts(&everywhere(9, 99)), two, "a cycle has an end");
    let walked = view.traverse(start, &everywhere(2, 2));
    assert!(walked.hits.has_more && walked.hits.facts.len() == 2);
    let out = Traversal {
        direction: Direction::Out,
        ..everywhere(2, 99)
    };
    assert_eq!(facts(&out), ["a1 knows b1", "a1 knows a1", "b1 knows c1"]);
    let into = Traversal {
        direction: Direction::In,
        ..everywhere(1, 99)
    };
    assert_eq!(facts(&into), ["c1 knows a1", "d1 hates a1", "a1 knows a1"]);
    let hates = view.find_predicate("hates").unwrap();
    assert_eq!(
        facts(&Traversal {
            predicates: vec![hates],
            ..everywhere(3, 99)
        }),
        ["d1 hates a1"]
    );
    let told_twice = view.fact_item(view.traverse(start, &everywhere(1, 1)).hits.facts[0]);
    assert_eq!(
        (told_twice.source.as_str(), told_twice.sources),
        ("user", vec!["user".to_owned(), "again".to_owned()])
    );
    let names: Vec<(&str, u32)> = view
        .traverse(start, &everywhere(2, 99))
        .names
        .iter()
        .map(|(name, depth)| (view.name(*name), *depth))
        .collect();
    assert_eq!(
        names,
        [("a1", 0), ("b1", 1), ("c1", 1), ("d1", 1), ("e1", 2)]
    );
}

#[tokio::test]
async fn a_way_between_names_is_a_shortest_one() {
    let desk = GraphHarness::new();
    desk.add_facts("ann | works at | acme\n bob | works at | acme\n bob | lives in | berlin\n ann | knows | cem\n cem | knows | dia\n dia | lives in | berlin\n zoe | is | alone").await;
    let view = desk.snapshot().await;
    let way = |from: &str, to: &str, most| {
        let path = view.shortest_path(
            view.find(from).unwrap(),
            view.find(to).unwrap(),
            most,
            now(),
        );
        path.map(|facts| fact_lines(&view, &facts))
    };
    let wanted = [
        "ann works at acme",
        "bob works at acme",
        "bob lives in berlin",
    ];
    assert_eq!(way("Ann", "Berlin", 6).unwrap(), wanted);
    assert_eq!(way("Ann", "Berlin", 2), None, "not that far");
    assert_eq!(way("ann", "zoe", 9), None);
    assert_eq!(way("ann", "ann", 3), Some(Vec::new()));
    assert_eq!(way("berlin", "ann", 3).unwrap().len(), 3);
}

#[tokio::test]
async fn names_of_any_script_are_found_in_text() {
    let desk = GraphHarness::new();
    desk.add_facts("New York City | in | USA\n New York | in | USA\n 서울 | in | 대한민국\n 東京 | in | 日本\n Zürich | in | Schweiz\n القاهرة | in | مصر\n 42 | is | answer").await;
    let view = desk.snapshot().await;
    let names = |text: &str| {
        view.find_entities(text)
            .into_iter()
            .map(|name| view.name(name).to_owned())
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

/// What a plain search over a list of triples finds.
fn traverse_naively(
    triples: &HashSet<Triple>,
    start: u8,
    depth: u32,
) -> (HashMap<u8, u32>, HashSet<Triple>) {
    let (mut depths, mut met) = (HashMap::from([(start, 0)]), HashSet::new());
    for level in 0..depth {
        let border: HashSet<u8> = depths
            .iter()
            .filter(|(_, at)| **at == level)
            .map(|(name, _)| *name)
            .collect();
        for triple in triples
            .iter()
            .filter(|(s, _, o)| border.contains(s) || border.contains(o))
        {
            met.insert(*triple);
            for name in [triple.0, triple.2] {
                depths.entry(name).or_insert(level + 1);
            }
        }
    }
    (depths, met)
}

fn traverse_all(
    view: &GraphSnapshot,
    start: u8,
    depth: u32,
) -> (HashMap<String, u32>, HashSet<String>) {
    let Ok(start) = view.find(&format!("n{start}")) else {
        return Default::default();
    };
    let walked = view.traverse(start, &everywhere(depth, usize::MAX));
    let texts = fact_lines(view, &walked.hits.facts);
    let distinct: HashSet<String> = texts.iter().cloned().collect();
    assert_eq!(distinct.len(), texts.len(), "no fact twice");
    (
        walked
            .names
            .iter()
            .map(|(name, depth)| (view.name(*name).to_owned(), *depth))
            .collect(),
        distinct,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn walks_agree_with_a_plain_search(
        batches in prop::collection::vec(prop::collection::vec((0_u8..12, 0_u8..3, 0_u8..12), 0..30), 1..4),
        depth in 0_u32..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let desk = GraphHarness::new();
            let mut triples = HashSet::new();
            for batch in &batches {
                let lines: String = batch.iter().map(|(s, p, o)| format!("n{s} | p{p} | n{o}\n")).collect();
                desk.graph.assert(&me(), FactSource::User, &facts(&lines)).await.unwrap();
                triples.extend(batch.iter().copied());
                // Asked in between, so that what comes later is put beside what is there.
                let view = desk.snapshot().await;
                for start in 0..12 {
                    if triples.iter().any(|(s, _, o)| *s == start || *o == start) {
                        let (depths, met) = traverse_naively(&triples, start, depth);
                        let depths: HashMap<String, u32> =
                            depths.into_iter().map(|(name, at)| (format!("n{name}"), at)).collect();
                        let met: HashSet<String> = met.into_iter().map(|(s, p, o)| format!("n{s} p{p} n{o}")).collect();
                        assert_eq!(traverse_all(&view, start, depth), (depths, met));
                    }
                }
            }
        });
    }
}
