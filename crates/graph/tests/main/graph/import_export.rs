//! Import and export of fact files. Exports can be imported again, and invalid lines are skipped.

use std::io::Cursor;

use lango_domain::graph::FactSource;
use lango_graph::import_export::{FactFileFormat, ImportReport, export, import};
use lango_graph::{AsOf, FactPattern, NewFact};
use serde_json::json;

use super::{GraphHarness, fact_lines, me, now};

const FORMATS: [FactFileFormat; 3] = [
    FactFileFormat::Tsv,
    FactFileFormat::NTriples,
    FactFileFormat::JsonLines,
];

async fn import_facts(
    harness: &GraphHarness,
    format: FactFileFormat,
    text: impl Into<Vec<u8>>,
) -> ImportReport {
    let source = FactSource::Import("facts".to_owned());
    import(
        &harness.graph,
        &me(),
        Box::new(Cursor::new(text.into())),
        (format, source),
        &|_| (),
    )
    .await
    .unwrap()
}

async fn export_facts(harness: &GraphHarness, format: FactFileFormat) -> String {
    let mut text = Vec::new();
    export(&harness.snapshot().await, format, now(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

async fn populated() -> GraphHarness {
    let harness = GraphHarness::new();
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
    harness
        .graph
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
    harness.add_facts("서울 | in | 대한민국\n# odd | -> | a:b\n urn:lango:x | p | _:b0\n http://example.org/a | http://example.org/p | x^y\n").await;
    harness
        .add_facts_from(
            FactSource::Import("f\tile".to_owned()),
            "東京 | in | 日本\n 東京 | in | 日本",
        )
        .await;
    harness
}

#[tokio::test]
async fn exports_round_trip() {
    for format in FORMATS {
        let first = export_facts(&populated().await, format).await;
        let harness = GraphHarness::new();
        let report = import_facts(&harness, format, first.clone()).await;
        assert_eq!(report.errors, [], "{format:?}\n{first}");
        assert_eq!(export_facts(&harness, format).await, first, "{format:?}");
        let again = import_facts(&harness, format, first.clone()).await;
        assert_eq!(
            (again.facts, again.known > 0),
            (0, true),
            "{format:?}: known facts are not added twice"
        );
    }
}

#[tokio::test]
async fn reports_invalid_lines_and_imports_the_rest() {
    let harness = GraphHarness::new();
    let mut text = b"\xef\xbb\xbf# remark\nBerlin\tcapital of\tGermany\r\nonly one\n\xff\xfe\tis\tbad\n\n\tempty\tsubject\n".to_vec();
    text.extend_from_slice(format!("{}\tis\tlong\n", "x".repeat(10_000)).as_bytes());
    text.extend_from_slice("Köln\tin\tGermany\t\t\tyesterday\nKöln\tin\tGermany\tcity\tcountry\t38\nKöln\tin\tGermany\tcity\tcountry\t0050\t\t{}\tbook".as_bytes());
    let report = import_facts(&harness, FactFileFormat::Tsv, text).await;
    let lines: Vec<usize> = report.errors.iter().map(|(line, _)| *line).collect();
    assert_eq!((report.facts, lines), (2, vec![3, 4, 6, 7, 8, 9]));
    let snapshot = harness.snapshot().await;
    let koeln = snapshot.fact_item(
        snapshot
            .facts_about(snapshot.find("köln").unwrap(), None, now(), 9)
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
    let berlin = snapshot
        .facts_about(snapshot.find("Berlin").unwrap(), None, now(), 9)
        .facts[0];
    assert_eq!(snapshot.fact_item(berlin).source, "import:facts");
}

#[tokio::test]
async fn an_overlong_line_is_one_error() {
    let harness = GraphHarness::new();
    let text = format!(
        "{}\thidden\tfact\nRome\tin\tItaly\n",
        "x\ty\tz ".repeat(400_000)
    );
    let report = import_facts(&harness, FactFileFormat::Tsv, text).await;
    assert_eq!(
        (report.facts, report.errors.len(), report.errors[0].0),
        (1, 1, 1)
    );
    assert!(harness.snapshot().await.find("hidden").is_err());
}

#[tokio::test]
async fn a_header_names_the_columns() {
    let harness = GraphHarness::new();
    let report = import_facts(
        &harness,
        FactFileFormat::Tsv,
        "predicate\tsubject\tobject\tsource\nin\tRome\tItaly\tatlas\n",
    )
    .await;
    assert_eq!((report.facts, report.skipped), (1, 0));
    let snapshot = harness.snapshot().await;
    assert_eq!(
        (
            fact_lines(&snapshot, &[0]),
            snapshot.fact_item(0).source.as_str()
        ),
        (vec!["Rome in Italy".to_owned()], "atlas")
    );
    let invalid = import_facts(
        &harness,
        FactFileFormat::Tsv,
        "subject\tpredicate\tobject\tcolour\n",
    )
    .await;
    assert!(invalid.errors[0].1.to_string().contains("`colour`"));
}

#[tokio::test]
async fn parses_triples_and_json_strictly() {
    let harness = GraphHarness::new();
    let triples = "<http://e.org/B> <http://e.org/name> \"Berl\\u0069n \\\"B\\\"\"@de . # remark\n\
        <http://e.org/B> <http://e.org/size> \"3\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
        _:x <http://e.org/p> <urn:lango:two%20words> .\n\
        <http://e.org/B> <http://e.org/p> \"no end\n<a> <b> <c>\n<a b <c> .\n\"literal\" <p> <o> .\n<s> <p> \"\\q\" .\n";
    let report = import_facts(&harness, FactFileFormat::NTriples, triples).await;
    assert_eq!((report.facts, report.skipped), (3, 5), "{report:?}");
    let snapshot = harness.snapshot().await;
    assert!(snapshot.find("Berlin \"B\"").is_ok() && snapshot.find("two words").is_ok());
    let literal = snapshot
        .query(
            FactPattern {
                object: snapshot.find("3").ok(),
                ..FactPattern::default()
            },
            AsOf::AnyTime,
            1,
        )
        .facts[0];
    assert_eq!(
        snapshot.fact_item(literal).object_type,
        "literal^^http://www.w3.org/2001/XMLSchema#integer"
    );
    let lines = "{\"subject\":\"a1\",\"predicate\":\"is\",\"object\":\"b1\",\"properties\":{\"n\":1}}\n{\"subject\":7}\n[]\n{\"subject\":\"a\",\"predicate\":\"is\",\"object\":\"b\",\"colour\":1}\nnull\n{";
    let report = import_facts(&harness, FactFileFormat::JsonLines, lines).await;
    assert_eq!((report.facts, report.skipped), (1, 5), "{report:?}");
}

#[tokio::test]
async fn importing_a_file_again_does_not_revive_retired_facts() {
    let harness = GraphHarness::new();
    import_facts(&harness, FactFileFormat::Tsv, "Bonn\tcapital of\tGermany\n").await;
    let retirement = lango_graph::FactRetirement {
        subject: "Bonn".to_owned(),
        predicate: "capital of".to_owned(),
        object: "Germany".to_owned(),
        at: "1990-10-03".parse().unwrap(),
    };
    harness
        .graph
        .retire(&me(), FactSource::User, &[retirement])
        .await
        .unwrap();
    let again = import_facts(
        &harness,
        FactFileFormat::Tsv,
        "Bonn\tcapital of\tGermany\nBonn\ton\tRhine\n",
    )
    .await;
    assert_eq!((again.facts, again.known), (1, 1));
    let snapshot = harness.snapshot().await;
    assert_eq!(
        fact_lines(
            &snapshot,
            &snapshot
                .facts_about(snapshot.find("Bonn").unwrap(), None, now(), 9)
                .facts
        ),
        ["Bonn on Rhine"]
    );
}
