//! Queries on the in-memory graph: patterns, traversal and shortest paths. None of them waits or
//! reads a file.

use std::collections::{HashMap, HashSet, VecDeque};

use super::in_memory::{Edge, EdgeEnd, InMemoryGraph};
use super::validity::AsOf;

/// Most names visited from one side by a shortest-path search.
const MAX_VISITED: usize = 1_000_000;

/// A pattern for facts; at least one part should be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactPattern {
    pub subject: Option<u32>,
    pub predicate: Option<u32>,
    pub object: Option<u32>,
}

/// The direction in which edges are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    Both,
    /// From subjects to objects.
    Out,
    /// From objects to subjects.
    In,
}

impl Direction {
    fn ends(self) -> &'static [EdgeEnd] {
        match self {
            Self::Both => &[EdgeEnd::Subject, EdgeEnd::Object],
            Self::Out => &[EdgeEnd::Subject],
            Self::In => &[EdgeEnd::Object],
        }
    }
}

/// Parameters of a traversal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traversal {
    pub depth: u32,
    /// Follows only these predicates; all if empty.
    pub predicates: Vec<u32>,
    pub direction: Direction,
    pub as_of: AsOf,
    /// Most facts to return.
    pub limit: usize,
}

/// The numbers of the facts that a query found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactHits {
    pub facts: Vec<u32>,
    pub has_more: bool,
}

/// The names that a traversal reached, with their distances and nearest first, and each fact once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraversalResult {
    pub names: Vec<(u32, u32)>,
    pub hits: FactHits,
}

impl InMemoryGraph {
    /// Returns the facts that match, each once even if it has several sources.
    pub fn query(&self, pattern: FactPattern, as_of: AsOf, limit: usize) -> FactHits {
        let FactPattern {
            subject,
            predicate,
            object,
        } = pattern;
        let degree = |name, end| self.degree(name, end);
        let (near, end, other) = match (subject, object) {
            (Some(subject), Some(object))
                if degree(object, EdgeEnd::Object) < degree(subject, EdgeEnd::Subject) =>
            {
                (object, EdgeEnd::Object, Some(subject))
            }
            (Some(subject), object) => (subject, EdgeEnd::Subject, object),
            (None, Some(object)) => (object, EdgeEnd::Object, None),
            (None, None) => return self.scan(predicate, as_of, limit),
        };
        let matches = |edge: &&Edge| {
            predicate.is_none_or(|predicate| edge.predicate() == predicate)
                && other.is_none_or(|other| edge.other == other)
                && self.is_edge_valid(edge, as_of)
        };
        let edges = self.edges(near, end).filter(matches);
        dedupe_facts(
            edges.map(|edge| {
                (
                    (edge.other, edge.predicate(), end, self.validity(edge)),
                    edge.fact,
                )
            }),
            limit,
        )
    }

    /// Returns the facts that have a name as their subject or object.
    pub fn facts_about(
        &self,
        name: u32,
        predicate: Option<u32>,
        as_of: AsOf,
        limit: usize,
    ) -> FactHits {
        let matches = |edge: &&Edge| {
            predicate.is_none_or(|predicate| edge.predicate() == predicate)
                && self.is_edge_valid(edge, as_of)
        };
        let facts = [EdgeEnd::Subject, EdgeEnd::Object]
            .into_iter()
            .flat_map(|end| {
                // Facts from a name to itself were found at the subject end.
                let edges = self
                    .edges(name, end)
                    .filter(move |edge| end == EdgeEnd::Subject || edge.other != name);
                edges.filter(matches).map(move |edge| {
                    (
                        (edge.other, edge.predicate(), end, self.validity(edge)),
                        edge.fact,
                    )
                })
            });
        dedupe_facts(facts, limit)
    }

    fn scan(&self, predicate: Option<u32>, as_of: AsOf, limit: usize) -> FactHits {
        let numbers = 0..self.facts().len() as u32;
        let matches = |number: &u32| {
            predicate.is_none_or(|predicate| self.fact(*number).predicate == predicate)
                && self.is_fact_valid(*number, as_of)
        };
        let key = |number: u32| {
            let detail = self.detail(number);
            (self.fact(number).triple(), detail.from, detail.to)
        };
        dedupe_facts(
            numbers.filter(matches).map(|number| (key(number), number)),
            limit,
        )
    }

    /// Traverses the graph breadth first. Returns no name and no fact twice, also around cycles.
    pub fn traverse(&self, start: u32, traversal: &Traversal) -> TraversalResult {
        let mut state = TraversalState::new(start, traversal.limit);
        let mut at = 0;
        while let Some(&(name, depth)) = state
            .names
            .get(at)
            .filter(|(_, depth)| *depth < traversal.depth)
        {
            for &end in traversal.direction.ends() {
                for edge in self.edges(name, end) {
                    let predicate = edge.predicate();
                    let is_wanted = traversal.predicates.is_empty()
                        || traversal.predicates.contains(&predicate);
                    if !is_wanted || !self.is_edge_valid(edge, traversal.as_of) {
                        continue;
                    }
                    let triple = match end {
                        EdgeEnd::Subject => [name, predicate, edge.other],
                        EdgeEnd::Object => [edge.other, predicate, name],
                    };
                    // A name that was expanded in both directions has already returned all its facts.
                    let expanded_count = if traversal.direction == Direction::Both {
                        at
                    } else {
                        0
                    };
                    if !state.visit_edge(edge, triple, (depth + 1, expanded_count)) {
                        return state.finish(true);
                    }
                }
            }
            at += 1;
        }
        state.finish(false)
    }

    /// Returns a shortest path between two names, ignoring the direction of facts. Searches from both
    /// ends and always expands the smaller frontier.
    pub fn shortest_path(&self, from: u32, to: u32, max_len: u32, as_of: AsOf) -> Option<Vec<u32>> {
        if from == to {
            return Some(Vec::new());
        }
        let mut sides = [PathFrontier::new(from), PathFrontier::new(to)];
        for _ in 0..max_len {
            let nearer = usize::from(sides[1].frontier.len() < sides[0].frontier.len());
            let (near, other) = match &mut sides {
                [first, second] if nearer == 0 => (first, &*second),
                [first, second] => (second, &*first),
            };
            if let Some(meeting) = self.expand_frontier(near, other, as_of) {
                let mut path = sides[0].path_to(meeting);
                path.reverse();
                path.extend(sides[1].path_to(meeting));
                return Some(path);
            }
            if sides
                .iter()
                .any(|side| side.frontier.is_empty() || side.parents.len() > MAX_VISITED)
            {
                return None;
            }
        }
        None
    }

    /// Expands a frontier by one fact. Returns the first name that the other side has reached too.
    fn expand_frontier(
        &self,
        near: &mut PathFrontier,
        other: &PathFrontier,
        as_of: AsOf,
    ) -> Option<u32> {
        for name in std::mem::take(&mut near.frontier) {
            for edge in Direction::Both
                .ends()
                .iter()
                .flat_map(|end| self.edges(name, *end))
            {
                if near.parents.contains_key(&edge.other) || !self.is_edge_valid(edge, as_of) {
                    continue;
                }
                near.parents.insert(edge.other, Some((name, edge.fact)));
                if other.parents.contains_key(&edge.other) {
                    return Some(edge.other);
                }
                near.frontier.push_back(edge.other);
            }
        }
        None
    }
}

/// The names reached from one end of a path.
struct PathFrontier {
    parents: HashMap<u32, Option<(u32, u32)>>,
    frontier: VecDeque<u32>,
}

impl PathFrontier {
    fn new(start: u32) -> Self {
        Self {
            parents: HashMap::from([(start, None)]),
            frontier: VecDeque::from([start]),
        }
    }

    /// Returns the facts from a name back to the start.
    fn path_to(&self, mut name: u32) -> Vec<u32> {
        let mut facts = Vec::new();
        while let Some(Some((before, fact))) = self.parents.get(&name) {
            facts.push(*fact);
            name = *before;
        }
        facts
    }
}

/// The state of a traversal.
struct TraversalState {
    names: Vec<(u32, u32)>,
    /// The fact through which each name was reached.
    reached_by: Vec<[u32; 3]>,
    slots: NameSlots,
    /// Facts between names that had been reached before.
    extra_facts: HashSet<[u32; 3]>,
    facts: Vec<u32>,
    limit: usize,
}

impl TraversalState {
    fn new(start: u32, limit: usize) -> Self {
        let mut slots = NameSlots::default();
        slots.get_or_insert(start, 0);
        Self {
            names: vec![(start, 0)],
            reached_by: vec![[u32::MAX; 3]],
            slots,
            extra_facts: HashSet::new(),
            facts: Vec::new(),
            limit,
        }
    }

    /// Adds the fact of an edge if it is new. Returns false if the limit is reached.
    fn visit_edge(
        &mut self,
        edge: &Edge,
        triple: [u32; 3],
        (depth, expanded_count): (u32, usize),
    ) -> bool {
        let next = self.names.len();
        let index = self.slots.get_or_insert(edge.other, next);
        let is_new = index == next
            || index >= expanded_count
                && self.reached_by[index] != triple
                && !self.extra_facts.contains(&triple);
        if !is_new {
            return true;
        }
        if self.facts.len() == self.limit {
            return false;
        }
        self.facts.push(edge.fact);
        if index == next {
            self.names.push((edge.other, depth));
            self.reached_by.push(triple);
        } else {
            self.extra_facts.insert(triple);
        }
        true
    }

    fn finish(self, more: bool) -> TraversalResult {
        TraversalResult {
            names: self.names,
            hits: FactHits {
                facts: self.facts,
                has_more: more,
            },
        }
    }
}

/// A hash table from names to their indexes, faster than `HashMap` for many small lookups.
#[derive(Default)]
struct NameSlots {
    /// The name plus one, and its index. Zero marks an empty slot.
    slots: Vec<(u32, u32)>,
    count: usize,
}

impl NameSlots {
    /// Returns the index of a name; a new name gets the given index.
    fn get_or_insert(&mut self, name: u32, index: usize) -> usize {
        if self.slots.len() < (self.count + 1) * 2 {
            let size = (self.slots.len() * 4).max(1_024);
            let before = std::mem::replace(&mut self.slots, vec![(0, 0); size]);
            for slot in before.into_iter().filter(|slot| slot.0 != 0) {
                let at = self.slot(slot.0 - 1);
                self.slots[at] = slot;
            }
        }
        let at = self.slot(name);
        if self.slots[at].0 == 0 {
            self.slots[at] = (name + 1, index as u32);
            self.count += 1;
        }
        self.slots[at].1 as usize
    }

    /// Returns the slot that holds a name, or the free slot for it.
    fn slot(&self, name: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (u64::from(name).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[at].0 != 0 && self.slots[at].0 != name + 1 {
            at = (at + 1) & mask;
        }
        at
    }
}

/// Drops duplicates of a fact from several sources.
fn dedupe_facts<Key: std::hash::Hash + Eq>(
    facts: impl Iterator<Item = (Key, u32)>,
    limit: usize,
) -> FactHits {
    let (mut known, mut found) = (HashSet::new(), FactHits::default());
    for (key, fact) in facts {
        if !known.insert(key) {
            continue;
        }
        if found.facts.len() == limit {
            found.has_more = true;
            break;
        }
        found.facts.push(fact);
    }
    found
}
