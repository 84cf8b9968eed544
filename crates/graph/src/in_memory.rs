//! The facts of one principal in memory. Names are numbers; the edges of a name are adjacent in
//! memory, first those to objects, then those to subjects.

use std::collections::HashMap;

use lango_domain::Label;
use lango_domain::graph::{FactBatch, FactChanges, FactLogPosition, FactSource};

use super::batch::{self, BatchError, FactDetail};
use super::interner::{FoldMode, NameInterner, StringInterner};
use super::validity::{AsOf, Moment};

/// A fact as the numbers of its names, its predicate and its detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    pub subject: u32,
    pub predicate: u32,
    pub object: u32,
    detail: u32,
}

impl Fact {
    pub fn triple(&self) -> [u32; 3] {
        [self.subject, self.predicate, self.object]
    }
}

/// A fact seen from one of its ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edge {
    pub other: u32,
    /// The predicate, with a low bit that is set if the fact has a detail. Most facts have none,
    /// which saves a lookup.
    packed_predicate: u32,
    pub fact: u32,
}

impl Edge {
    fn new(other: u32, fact: &Fact, number: usize) -> Self {
        Self {
            other,
            packed_predicate: fact.predicate << 1 | u32::from(fact.detail != 0),
            fact: number as u32,
        }
    }

    pub fn predicate(&self) -> u32 {
        self.packed_predicate >> 1
    }
}

/// The end of a fact that a name is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeEnd {
    Subject,
    Object,
}

impl EdgeEnd {
    fn index(self) -> usize {
        usize::from(self == Self::Object)
    }
}

#[derive(Clone)]
pub struct InMemoryGraph {
    pub(super) names: NameInterner,
    pub(super) predicates: NameInterner,
    texts: StringInterner,
    details: Vec<FactDetail>,
    detail_numbers: HashMap<FactDetail, u32>,
    facts: Vec<Fact>,
    /// The number of its first fact, the source and the label of each batch, in order.
    batches: Vec<(u32, FactSource, Label)>,
    /// For each name, the start of its edges as subject and of its edges as object.
    starts: Vec<[u32; 2]>,
    edges: Vec<Edge>,
    /// Edges of facts added since `edges` was sorted. They are merged once there are enough of them.
    recent_edges: HashMap<u32, [Vec<Edge>; 2]>,
    /// Number of facts that have edges.
    linked_count: usize,
    /// Number of facts whose edges are in `edges`.
    sorted_count: usize,
    /// Retirements that are not applied yet. Each affects only facts before the given number.
    retirements: Vec<([u32; 3], Moment, usize)>,
    position: FactLogPosition,
}

impl Default for InMemoryGraph {
    fn default() -> Self {
        let mut texts = StringInterner::default();
        texts.intern("");
        Self {
            names: NameInterner::new(FoldMode::Name),
            predicates: NameInterner::new(FoldMode::Predicate),
            texts,
            details: vec![FactDetail::default()],
            detail_numbers: HashMap::from([(FactDetail::default(), 0)]),
            facts: Vec::new(),
            batches: Vec::new(),
            starts: Vec::new(),
            edges: Vec::new(),
            recent_edges: HashMap::new(),
            linked_count: 0,
            sorted_count: 0,
            retirements: Vec::new(),
            position: FactLogPosition::default(),
        }
    }
}

/// Result of applying changes from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyResult {
    Applied,
    /// A batch in the graph was removed, so the graph has to be loaded again from the start.
    Outdated,
}

impl InMemoryGraph {
    pub fn position(&self) -> FactLogPosition {
        self.position
    }

    /// Applies changes. Call [`Self::rebuild_edges`] before the next query.
    pub fn apply(&mut self, changes: &FactChanges) -> Result<ApplyResult, BatchError> {
        if changes
            .removed
            .iter()
            .any(|batch| *batch <= self.position.batch)
        {
            return Ok(ApplyResult::Outdated);
        }
        for batch in &changes.batches {
            self.apply_batch(batch)?;
        }
        self.position = changes.position;
        Ok(ApplyResult::Applied)
    }

    fn apply_batch(&mut self, batch: &FactBatch) -> Result<(), BatchError> {
        let decoded = batch::decode(&batch.body)?;
        let names: Vec<u32> = decoded
            .names
            .iter()
            .map(|name| self.names.intern(name))
            .collect();
        let predicates: Vec<u32> = decoded
            .predicates
            .iter()
            .map(|name| self.predicates.intern(name))
            .collect();
        let texts: Vec<u32> = decoded
            .texts
            .iter()
            .map(|text| self.texts.intern(text))
            .collect();
        let local = |detail: &FactDetail| FactDetail {
            subject_type: texts[detail.subject_type as usize],
            object_type: texts[detail.object_type as usize],
            properties: texts[detail.properties as usize],
            ..*detail
        };
        let details: Vec<u32> = decoded
            .details
            .iter()
            .skip(1)
            .map(|detail| self.intern_detail(local(detail)))
            .collect();
        self.batches.push((
            self.facts.len() as u32,
            batch.source.clone(),
            batch.label.clone(),
        ));
        self.facts.extend(
            decoded
                .facts
                .iter()
                .map(|&[subject, predicate, object, detail]| Fact {
                    subject: names[subject as usize],
                    predicate: predicates[predicate as usize],
                    object: names[object as usize],
                    detail: detail
                        .checked_sub(1)
                        .map_or(0, |detail| details[detail as usize]),
                }),
        );
        let before = self.facts.len();
        self.retirements.extend(decoded.retirements.iter().map(
            |&([subject, predicate, object], at)| {
                let triple = [
                    names[subject as usize],
                    predicates[predicate as usize],
                    names[object as usize],
                ];
                (triple, at, before)
            },
        ));
        Ok(())
    }

    fn intern_detail(&mut self, detail: FactDetail) -> u32 {
        *self.detail_numbers.entry(detail).or_insert_with(|| {
            self.details.push(detail);
            self.details.len() as u32 - 1
        })
    }

    /// Adds edges for new facts and applies pending retirements. Few new edges go to `recent_edges`;
    /// many cause all edges to be sorted again.
    pub fn rebuild_edges(&mut self) {
        if self.facts.len() - self.sorted_count > self.sorted_count / 4 + 1_024 {
            self.sort_edges();
        }
        for number in self.linked_count..self.facts.len() {
            let fact = self.facts[number];
            for (name, end, other) in [
                (fact.subject, EdgeEnd::Subject, fact.object),
                (fact.object, EdgeEnd::Object, fact.subject),
            ] {
                let edges = self.recent_edges.entry(name).or_default();
                edges[end.index()].push(Edge::new(other, &fact, number));
            }
        }
        self.linked_count = self.facts.len();
        for (triple, at, before) in std::mem::take(&mut self.retirements) {
            self.retire(triple, at, before);
        }
    }

    fn sort_edges(&mut self) {
        let mut starts = vec![[0_u32; 2]; self.names.len() + 1];
        for fact in &self.facts {
            starts[fact.subject as usize][0] += 1;
            starts[fact.object as usize][1] += 1;
        }
        let mut at = 0;
        for start in &mut starts {
            let [from, to] = *start;
            *start = [at, at + from];
            at += from + to;
        }
        let (mut next, mut edges) = (starts.clone(), vec![Edge::default(); at as usize]);
        for (number, fact) in self.facts.iter().enumerate() {
            for (end, local, other) in [
                (0, fact.subject, fact.object),
                (1, fact.object, fact.subject),
            ] {
                let position = &mut next[local as usize][end];
                edges[*position as usize] = Edge::new(other, fact, number);
                *position += 1;
            }
        }
        (self.starts, self.edges) = (starts, edges);
        self.recent_edges.clear();
        self.linked_count = self.facts.len();
        self.sorted_count = self.linked_count;
    }

    /// Ends the validity of earlier facts with this triple at a moment.
    fn retire(&mut self, triple: [u32; 3], at: Moment, before: usize) {
        let [subject, predicate, object] = triple;
        let matches = |edge: &&Edge| {
            edge.predicate() == predicate && edge.other == object && (edge.fact as usize) < before
        };
        let matching: Vec<usize> = self
            .edges(subject, EdgeEnd::Subject)
            .filter(matches)
            .map(|edge| edge.fact as usize)
            .collect();
        for number in matching {
            let detail = self.details[self.facts[number].detail as usize];
            if detail.to.is_some_and(|to| to <= at) {
                continue;
            }
            // A fact that was not yet valid then gets an empty validity.
            let to = Some(detail.from.map_or(at, |from| from.max(at)));
            self.facts[number].detail = self.intern_detail(FactDetail { to, ..detail });
            self.mark_detailed(subject, EdgeEnd::Subject, number as u32);
            self.mark_detailed(object, EdgeEnd::Object, number as u32);
        }
    }

    fn mark_detailed(&mut self, name: u32, end: EdgeEnd, fact: u32) {
        let range = self.edge_range(name, end);
        let recent = self.recent_edges.get_mut(&name);
        let recent = recent.into_iter().flat_map(|ends| &mut ends[end.index()]);
        let edges = self.edges[range].iter_mut().chain(recent);
        for edge in edges.filter(|edge| edge.fact == fact) {
            edge.packed_predicate |= 1;
        }
    }

    fn edge_range(&self, name: u32, end: EdgeEnd) -> std::ops::Range<usize> {
        let (Some(local), Some(next)) = (
            self.starts.get(name as usize),
            self.starts.get(name as usize + 1),
        ) else {
            return 0..0;
        };
        match end {
            EdgeEnd::Subject => local[0] as usize..local[1] as usize,
            EdgeEnd::Object => local[1] as usize..next[0] as usize,
        }
    }

    /// Returns the edges of the facts that have a name at this end, in the order they were added.
    pub fn edges(&self, name: u32, end: EdgeEnd) -> impl Iterator<Item = &Edge> {
        let recent = if self.recent_edges.is_empty() {
            None
        } else {
            self.recent_edges.get(&name)
        };
        let recent = recent.into_iter().flat_map(move |ends| &ends[end.index()]);
        self.edges[self.edge_range(name, end)].iter().chain(recent)
    }

    pub fn degree(&self, name: u32, end: EdgeEnd) -> usize {
        let recent = self
            .recent_edges
            .get(&name)
            .map_or(0, |ends| ends[end.index()].len());
        self.edge_range(name, end).len() + recent
    }

    /// Returns true if the fact of an edge is valid.
    pub fn is_edge_valid(&self, edge: &Edge, as_of: AsOf) -> bool {
        edge.packed_predicate & 1 == 0 || self.is_fact_valid(edge.fact, as_of)
    }

    /// Returns the start and the end of the validity of an edge's fact.
    pub fn validity(&self, edge: &Edge) -> (Option<Moment>, Option<Moment>) {
        if edge.packed_predicate & 1 == 0 {
            return (None, None);
        }
        let detail = self.detail(edge.fact);
        (detail.from, detail.to)
    }

    pub fn is_fact_valid(&self, number: u32, as_of: AsOf) -> bool {
        let AsOf::At(at) = as_of else { return true };
        let detail = self.detail(number);
        detail.from.is_none_or(|from| from <= at) && detail.to.is_none_or(|to| at < to)
    }

    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    pub fn fact(&self, number: u32) -> Fact {
        self.facts[number as usize]
    }

    pub fn detail(&self, number: u32) -> &FactDetail {
        &self.details[self.facts[number as usize].detail as usize]
    }

    pub fn text(&self, number: u32) -> &str {
        self.texts.text(number)
    }

    pub fn source(&self, fact: u32) -> &FactSource {
        &self.batch_containing(fact).1
    }

    pub fn label(&self, fact: u32) -> &Label {
        &self.batch_containing(fact).2
    }

    fn batch_containing(&self, fact: u32) -> &(u32, FactSource, Label) {
        let at = self.batches.partition_point(|(first, ..)| *first <= fact);
        // Invariant: the first batch begins with the first fact.
        &self.batches[at - 1]
    }

    /// Returns the source and the number of facts of each batch.
    pub fn sources(&self) -> impl Iterator<Item = (&FactSource, usize)> {
        let ends = self
            .batches
            .iter()
            .skip(1)
            .map(|(first, ..)| *first)
            .chain([self.facts.len() as u32]);
        self.batches
            .iter()
            .zip(ends)
            .map(|((first, source, _), end)| (source, (end - first) as usize))
    }
}
