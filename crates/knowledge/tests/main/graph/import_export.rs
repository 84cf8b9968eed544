//! Files of facts: what is written is read back, and bad lines cost nothing but themselves.

use std::io::Cursor;

use lango_domain::graph::FactSource;
use lango_knowledge::graph::import_export::{FactFileFormat, ImportReport, export, import};
use lango_knowledge::graph::{AsOf, FactPattern, NewFact};
use serde_json::json;

use super::{GraphHarness, fact_lines, me, now};

const FORMATS: [FactFileFormat; 3] = [
    FactFileFormat::Tsv,
    FactFileFormat::NTriples,
    FactFileFormat::JsonLines,
];

async fn import_facts(
    desk: &GraphHarness,
    format: FactFileFormat,
    text: impl Into<Vec<u8>>,
) -> ImportReport {
    let source = FactSource::Import("facts".to_owned());
    import(
        &desk.graph,
        &me(),
        Box::new(Cursor::new(text.into())),
        (format, source),
        &|_| (),
    )
    .await
    .unwrap()
}

async fn export_facts(desk: &GraphHarness, format: FactFileFormat) -> String {
    let mut text = Vec::new();
    export(&desk.snapshot().await, format, now(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

async fn populated() -> GraphHarness {
    let desk = GraphHarness::new();
    let mut fact = NewFact::new("Zürich (\"ZH\")", "located in", "Schweiz");
    fact.subject_type = "city".to_owned();
    fact.properties = json!({ "since": [1351, "Bund"], "a\tb": null })
        .as_object()
        .unwrap()
        .clone();
    fact.valid_from = "1351-05-01".parse().ok();
    let ended = NewFact {
        valid_to: "1990-10-03T12:00:00Z".parse().ok(),
        ..NewFact::new("Bonn", "capital of", "Germany")
    };
    desk.graph
        .assert(
            &me(),
            FactSource::Document {
                source: "a.md".to_owned(),
                span: "lines 1-2".to_owned(),
            },
            &[fact, ended],
        )
        .await
        .unwrap();
    desk.add_facts("서울 | in | 대한민국\n# odd | -> | a:b\n urn:lango:x | p | _:b0\n http://example.org/a | http://example.org/p | x^y\n").await;
    desk.add_facts_from(
        FactSource::Import("f\tile".to_owned()),
        "東京 | in | 日本\n 東京 | in | 日本",
    )
    .await;
    desk
}

#[tokio::test]
async fn exported_facts_come_back_the_same() {
    for format in FORMATS {
        let first = export_facts(&populated().await, format).await;
        let desk = GraphHarness::new();
        let imported = import_facts(&desk, format, first.clone()).await;
        assert_eq!(imported.errors, [], "{format:?}\n{first}");
        assert_eq!(export_facts(&desk, format).await, first, "{format:?}");
        let again = import_facts(&desk, format, first.clone()).await;
        assert_eq!(
            (again.facts, again.known > 0),
            (0, true),
            "{format:?}: what is known is not kept twice"
        );
    }
}

#[tokio::test]
async fn bad_lines_are_told_and_the_rest_is_kept() {
    let desk = GraphHarness::new();
    let mut text = b"\xef\xbb\xbf# remark\nBerlin\tcapital of\tGermany\r\nonly one\n\xff\xfe\tis\tbad\n\n\tempty\tsubject\n".to_vec();
    text.extend_from_slice(format!("{}\tis\tlong\n", "x".repeat(10_000)).as_bytes());
    text.extend_from_slice("Köln\tin\tGermany\t\t\tyesterday\nKöln\tin\tGermany\tcity\tcountry\t38\nKöln\tin\tGermany\tcity\tcountry\t0050\t\t{}\tbook".as_bytes());
    let imported = import_facts(&desk, FactFileFormat::Tsv, text).await;
    let lines: Vec<usize> = imported.errors.iter().map(|(line, _)| *line).collect();
    assert_eq!((imported.facts, lines), (2, vec![3, 4, 6, 7, 8, 9]));
    let view = desk.snapshot().await;
    let koeln = view.fact_item(
        view.facts_about(view.find("köln").unwrap(), None, now(), 9)
            .facts[0],
    );
    assert_eq!(
        (
            koeln.subject_type,
            koeln.source.as_str(),
            koeln.valid_from.as_deref()
        ),
        ("city", "book", Some("0050-01-01"))
    );
    let berlin = view
        .facts_about(view.find("Berlin").unwrap(), None, now(), 9)
        .facts[0];
    assert_eq!(view.fact_item(berlin).source, "import:facts");
}

#[tokio::test]
async fn a_line_without_end_is_one_mistake() {
    let desk = GraphHarness::new();
    let text = format!(
        "{}\thidden\tfact\nRome\tin\tItaly\n",
        "x\ty\tz ".repeat(400_000)
    );
    let imported = import_facts(&desk, FactFileFormat::Tsv, text).await;
    assert_eq!(
        (imported.facts, imported.errors.len(), imported.errors[0].0),
        (1, 1, 1)
    );
    assert!(desk.snapshot().await.find("hidden").is_err());
}

#[tokio::test]
async fn columns_can_be_named() {
    let desk = GraphHarness::new();
    let imported = import_facts(
        &desk,
        FactFileFormat::Tsv,
        "predicate\tsubject\tobject\tsource\nin\tRome\tItaly\tatlas\n",
    )
    .await;
    assert_eq!((imported.facts, imported.skipped), (1, 0));
    let view = desk.snapshot().await;
    assert_eq!(
        (fact_lines(&view, &[0]), view.fact_item(0).source.as_str()),
        (vec!["Rome in Italy".to_owned()], "atlas")
    );
    let wrong = import_facts(
        &desk,
        FactFileFormat::Tsv,
        "subject\tpredicate\tobject\tcolour\n",
    )
    .await;
    assert!(wrong.errors[0].1.to_string().contains("`colour`"));
}

#[tokio::test]
async fn triples_and_json_are_read_with_care() {
    let desk = GraphHarness::new();
    let triples = "<http://e.org/B> <http://e.org/name> \"Berl\\u0069n \\\"B\\\"\"@de . # remark\n\
        <http://e.org/B> <http://e.org/size> \"3\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
        _:x <http://e.org/p> <urn:lango:two%20words> .\n\
        <http://e.org/B> <http://e.org/p> \"no end\n<a> <b> <c>\n<a b <c> .\n\"literal\" <p> <o> .\n<s> <p> \"\\q\" .\n";
    let imported = import_facts(&desk, FactFileFormat::NTriples, triples).await;
    assert_eq!((imported.facts, imported.skipped), (3, 5), "{imported:?}");
    let view = desk.snapshot().await;
    assert!(view.find("Berlin \"B\"").is_ok() && view.find("two words").is_ok());
    let literal = view
        .query(
            FactPattern {
                object: view.find("3").ok(),
                ..FactPattern::default()
            },
            AsOf::AnyTime,
            1,
        )
        .facts[0];
    assert_eq!(
        view.fact_item(literal).object_type,
        "literal^^http://www.w3.org/2001/XMLSchema#integer"
    );
    let lines = "{\"subject\":\"a1\",\"predicate\":\"is\",\"object\":\"b1\",\"properties\":{\"n\":1}}\n{\"subject\":7}\n[]\n{\"subject\":\"a\",\"predicate\":\"is\",\"object\":\"b\",\"colour\":1}\nnull\n{";
    let imported = import_facts(&desk, FactFileFormat::JsonLines, lines).await;
    assert_eq!((imported.facts, imported.skipped), (1, 5), "{imported:?}");
}

#[tokio::test]
async fn a_retired_fact_is_not_told_anew_by_the_same_file() {
    let desk = GraphHarness::new();
    import_facts(&desk, FactFileFormat::Tsv, "Bonn\tcapital of\tGermany\n").await;
    let ending = lango_knowledge::graph::FactRetirement {
        subject: "Bonn".to_owned(),
        predicate: "capital of".to_owned(),
        object: "Germany".to_owned(),
        at: "1990-10-03".parse().unwrap(),
    };
    desk.graph
        .retire(&me(), FactSource::User, &[ending])
        .await
        .unwrap();
    let again = import_facts(
        &desk,
        FactFileFormat::Tsv,
        "Bonn\tcapital of\tGermany\nBonn\ton\tRhine\n",
    )
    .await;
    assert_eq!((again.facts, again.known), (1, 1));
    let view = desk.snapshot().await;
    assert_eq!(
        fact_lines(
            &view,
            &view
                .facts_about(view.find("Bonn").unwrap(), None, now(), 9)
                .facts
        ),
        ["Bonn on Rhine"]
    );
}
