//! Writes every fact as a line, in an order that does not depend on when it was added.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::{FactFileFormat, json_lines, ntriples, tsv};
use crate::interner::normalize_spaces;
use crate::snapshot::{FactItem, GraphSnapshot};
use crate::validity::AsOf;

/// Writes every fact, including those that are no longer valid, and returns their number.
/// N-Triples cannot express validity, so that format gets only the facts that are valid at `as_of`.
pub fn export(
    snapshot: &GraphSnapshot,
    format: FactFileFormat,
    as_of: AsOf,
    out: &mut dyn Write,
) -> io::Result<usize> {
    match format {
        FactFileFormat::NTriples => {
            let lines = ntriples_lines(snapshot, as_of);
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            Ok(lines.len())
        }
        FactFileFormat::Tsv => {
            tsv::write_header(out)?;
            write_facts(snapshot, &mut |item| tsv::write_line(out, item))
        }
        FactFileFormat::JsonLines => {
            write_facts(snapshot, &mut |item| json_lines::write_line(out, item))
        }
    }
}

fn write_facts(
    snapshot: &GraphSnapshot,
    write: &mut dyn FnMut(&FactItem<'_>) -> io::Result<()>,
) -> io::Result<usize> {
    let facts = sorted_facts(snapshot);
    let (mut previous, mut count) = (String::new(), 0);
    for fact in facts {
        let mut item = snapshot.fact_item(fact);
        item.sources.clear();
        item.source = normalize_spaces(&item.source).into_owned();
        let line = serde_json::to_string(&item)?;
        if line != previous {
            write(&item)?;
            count += 1;
        }
        previous = line;
    }
    Ok(count)
}

/// Sorts by the ranks of names, which are compared once each, then by all other parts.
fn sorted_facts(snapshot: &GraphSnapshot) -> Vec<u32> {
    let names = ranks(snapshot.names.len(), |number| snapshot.name(number));
    let predicates = ranks(snapshot.predicates.len(), |number| {
        snapshot.predicate_name(number)
    });
    let rank = |fact: u32| {
        let [subject, predicate, object] = snapshot.fact(fact).triple();
        (
            names[subject as usize],
            predicates[predicate as usize],
            names[object as usize],
        )
    };
    let rest = |fact: u32| {
        let detail = snapshot.detail(fact);
        let text = |number| snapshot.text(number);
        let texts = (
            text(detail.subject_type),
            text(detail.object_type),
            text(detail.properties),
        );
        (
            detail.from,
            detail.to,
            texts,
            normalize_spaces(&snapshot.fact_source(fact).to_string()).into_owned(),
        )
    };
    let mut facts: Vec<u32> = (0..snapshot.facts().len() as u32).collect();
    facts.sort_by(|a, b| {
        rank(*a)
            .cmp(&rank(*b))
            .then_with(|| rest(*a).cmp(&rest(*b)))
    });
    facts
}

fn ranks<'a>(count: usize, name: impl Fn(u32) -> &'a str) -> Vec<u32> {
    let mut sorted: Vec<u32> = (0..count as u32).collect();
    sorted.sort_by_key(|number| name(*number));
    let mut ranks = vec![0; count];
    for (rank, number) in (0..).zip(sorted) {
        ranks[number as usize] = rank;
    }
    ranks
}

fn ntriples_lines(snapshot: &GraphSnapshot, as_of: AsOf) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for number in
        (0..snapshot.facts().len() as u32).filter(|number| snapshot.is_fact_valid(*number, as_of))
    {
        let (fact, detail) = (snapshot.fact(number), snapshot.detail(number));
        let (subject, object) = (snapshot.name(fact.subject), snapshot.name(fact.object));
        let object_type = snapshot.text(detail.object_type);
        lines.insert(ntriples::triple_line(
            subject,
            snapshot.predicate_name(fact.predicate),
            object,
            object_type,
        ));
        let types = [
            (subject, snapshot.text(detail.subject_type)),
            (object, object_type),
        ];
        for (name, kind) in types
            .into_iter()
            .filter(|(_, kind)| !kind.is_empty() && !ntriples::is_literal(kind))
        {
            lines.insert(ntriples::triple_line(name, ntriples::RDF_TYPE, kind, ""));
        }
    }
    lines
}
