//! Every fact as a line, in an order that does not depend on when it was told.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::{FactFileFormat, json_lines, ntriples, tsv};
use crate::graph::interner::normalize_spaces;
use crate::graph::snapshot::{FactItem, GraphSnapshot};
use crate::graph::validity::AsOf;

/// Writes every fact, also those that do not hold any more. N-Triples have no place for when a fact holds, so that they get
/// those that do at the moment given.
pub fn export(
    view: &GraphSnapshot,
    format: FactFileFormat,
    when: AsOf,
    out: &mut dyn Write,
) -> io::Result<usize> {
    match format {
        FactFileFormat::NTriples => {
            let lines = ntriples_lines(view, when);
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            Ok(lines.len())
        }
        FactFileFormat::Tsv => {
            tsv::write_header(out)?;
            write_facts(view, &mut |item| tsv::write_line(out, item))
        }
        FactFileFormat::JsonLines => {
            write_facts(view, &mut |item| json_lines::write_line(out, item))
        }
    }
}

fn write_facts(
    view: &GraphSnapshot,
    write: &mut dyn FnMut(&FactItem<'_>) -> io::Result<()>,
) -> io::Result<usize> {
    let facts = sorted_facts(view);
    let (mut before, mut count) = (String::new(), 0);
    for fact in facts {
        let mut item = view.fact_item(fact);
        item.sources.clear();
        item.source = normalize_spaces(&item.source).into_owned();
        let line = serde_json::to_string(&item)?;
        if line != before {
            write(&item)?;
            count += 1;
        }
        before = line;
    }
    Ok(count)
}

/// By names first, each compared once; then by everything else.
fn sorted_facts(view: &GraphSnapshot) -> Vec<u32> {
    let names = ranks(view.names.len(), |number| view.name(number));
    let predicates = ranks(view.predicates.len(), |number| view.predicate_name(number));
    let rank = |fact: u32| {
        let [subject, predicate, object] = view.fact(fact).triple();
        (
            names[subject as usize],
            predicates[predicate as usize],
            names[object as usize],
        )
    };
    let rest = |fact: u32| {
        let detail = view.detail(fact);
        let text = |number| view.text(number);
        let texts = (
            text(detail.subject_type),
            text(detail.object_type),
            text(detail.properties),
        );
        (
            detail.from,
            detail.to,
            texts,
            normalize_spaces(&view.fact_source(fact).to_string()).into_owned(),
        )
    };
    let mut facts: Vec<u32> = (0..view.facts().len() as u32).collect();
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

fn ntriples_lines(view: &GraphSnapshot, when: AsOf) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for number in (0..view.facts().len() as u32).filter(|number| view.is_fact_valid(*number, when))
    {
        let (fact, detail) = (view.fact(number), view.detail(number));
        let (subject, object) = (view.name(fact.subject), view.name(fact.object));
        let object_type = view.text(detail.object_type);
        lines.insert(ntriples::triple_line(
            subject,
            view.predicate_name(fact.predicate),
            object,
            object_type,
        ));
        let types = [
            (subject, view.text(detail.subject_type)),
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
