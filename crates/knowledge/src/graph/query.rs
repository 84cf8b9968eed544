//! Questions to the facts in memory. They wait for nothing and read no file.

use std::collections::{HashMap, HashSet, VecDeque};

use super::in_memory::{Edge, EdgeEnd, InMemoryGraph};
use super::validity::AsOf;

/// More names than this are not looked at to find a way between two.
const MAX_VISITED: usize = 1_000_000;

/// Which facts; at least one part should be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactPattern {
    pub subject: Option<u32>,
    pub predicate: Option<u32>,
    pub object: Option<u32>,
}

/// Which way facts are followed.
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

/// How far and along what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traversal {
    pub depth: u32,
    /// Along any when there are none.
    pub predicates: Vec<u32>,
    pub direction: Direction,
    pub as_of: AsOf,
    /// So many facts at most.
    pub limit: usize,
}

/// Facts by their numbers, and whether there are more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactHits {
    pub facts: Vec<u32>,
    pub has_more: bool,
}

/// What a walk met: names with how far away they are, nearest first, and each fact once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraversalResult {
    pub names: Vec<(u32, u32)>,
    pub hits: FactHits,
}

impl InMemoryGraph {
    /// Facts that fit, each once, however many sources tell it.
    pub fn query(&self, pattern: FactPattern, when: AsOf, limit: usize) -> FactHits {
        let FactPattern {
            subject,
            predicate,
            object,
        } = pattern;
        let degree = |name, end| self.degree(name, end);
        let (own, end, other) = match (subject, object) {
            (Some(subject), Some(object))
                if degree(object, EdgeEnd::Object) < degree(subject, EdgeEnd::Subject) =>
            {
                (object, EdgeEnd::Object, Some(subject))
            }
            (Some(subject), object) => (subject, EdgeEnd::Subject, object),
            (None, Some(object)) => (object, EdgeEnd::Object, None),
            (None, None) => return self.scan(predicate, when, limit),
        };
        let fits = |edge: &&Edge| {
            predicate.is_none_or(|predicate| edge.predicate() == predicate)
                && other.is_none_or(|other| edge.other == other)
                && self.is_edge_valid(edge, when)
        };
        let edges = self.edges(own, end).filter(fits);
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

    /// Everything around a name, as its subject or its object.
    pub fn facts_about(
        &self,
        name: u32,
        predicate: Option<u32>,
        when: AsOf,
        limit: usize,
    ) -> FactHits {
        let fits = |edge: &&Edge| {
            predicate.is_none_or(|predicate| edge.predicate() == predicate)
                && self.is_edge_valid(edge, when)
        };
        let facts = [EdgeEnd::Subject, EdgeEnd::Object]
            .into_iter()
            .flat_map(|end| {
                // What it is to itself was seen from the other end.
                let edges = self
                    .edges(name, end)
                    .filter(move |edge| end == EdgeEnd::Subject || edge.other != name);
                edges.filter(fits).map(move |edge| {
                    (
                        (edge.other, edge.predicate(), end, self.validity(edge)),
                        edge.fact,
                    )
                })
            });
        dedupe_facts(facts, limit)
    }

    fn scan(&self, predicate: Option<u32>, when: AsOf, limit: usize) -> FactHits {
        let numbers = 0..self.facts().len() as u32;
        let fits = |number: &u32| {
            predicate.is_none_or(|predicate| self.fact(*number).predicate == predicate)
                && self.is_fact_valid(*number, when)
        };
        let key = |number: u32| {
            let detail = self.detail(number);
            (self.fact(number).triple(), detail.from, detail.to)
        };
        dedupe_facts(
            numbers.filter(fits).map(|number| (key(number), number)),
            limit,
        )
    }

    /// Breadth first, both ways round cycles, no name and no fact twice.
    pub fn traverse(&self, start: u32, walk: &Traversal) -> TraversalResult {
        let mut walking = TraversalState::new(start, walk.limit);
        let mut at = 0;
        while let Some(&(name, depth)) = walking
            .names
            .get(at)
            .filter(|(_, depth)| *depth < walk.depth)
        {
            for &end in walk.direction.ends() {
                for edge in self.edges(name, end) {
                    let predicate = edge.predicate();
                    let is_wanted =
                        walk.predicates.is_empty() || walk.predicates.contains(&predicate);
                    if !is_wanted || !self.is_edge_valid(edge, walk.as_of) {
                        continue;
                    }
                    let triple = match end {
                        EdgeEnd::Subject => [name, predicate, edge.other],
                        EdgeEnd::Object => [edge.other, predicate, name],
                    };
                    // Whoever was asked before told everything that it is an end of.
                    let told_before = if walk.direction == Direction::Both {
                        at
                    } else {
                        0
                    };
                    if !walking.visit_edge(edge, triple, (depth + 1, told_before)) {
                        return walking.finish(true);
                    }
                }
            }
            at += 1;
        }
        walking.finish(false)
    }

    /// A shortest way from one name to another, whichever way its facts point. It goes from both sides at once, always on
    /// where there is less to look at.
    pub fn shortest_path(&self, from: u32, to: u32, most: u32, when: AsOf) -> Option<Vec<u32>> {
        if from == to {
            return Some(Vec::new());
        }
        let mut sides = [PathFrontier::new(from), PathFrontier::new(to)];
        for _ in 0..most {
            let nearer = usize::from(sides[1].frontier.len() < sides[0].frontier.len());
            let (own, other) = match &mut sides {
                [first, second] if nearer == 0 => (first, &*second),
                [first, second] => (second, &*first),
            };
            if let Some(meeting) = self.expand_frontier(own, other, when) {
                let mut way = sides[0].path_to(meeting);
                way.reverse();
                way.extend(sides[1].path_to(meeting));
                return Some(way);
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

    /// All names one fact further; the first that the other side knows.
    fn expand_frontier(
        &self,
        own: &mut PathFrontier,
        other: &PathFrontier,
        when: AsOf,
    ) -> Option<u32> {
        for name in std::mem::take(&mut own.frontier) {
            for edge in Direction::Both
                .ends()
                .iter()
                .flat_map(|end| self.edges(name, *end))
            {
                if own.parents.contains_key(&edge.other) || !self.is_edge_valid(edge, when) {
                    continue;
                }
                own.parents.insert(edge.other, Some((name, edge.fact)));
                if other.parents.contains_key(&edge.other) {
                    return Some(edge.other);
                }
                own.frontier.push_back(edge.other);
            }
        }
        None
    }
}

/// What was reached from one end.
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

    /// The facts back to where it began.
    fn path_to(&self, mut name: u32) -> Vec<u32> {
        let mut facts = Vec::new();
        while let Some(Some((before, fact))) = self.parents.get(&name) {
            facts.push(*fact);
            name = *before;
        }
        facts
    }
}

/// What a walk has met so far.
struct TraversalState {
    names: Vec<(u32, u32)>,
    /// The fact by which each name was met.
    reached_by: Vec<[u32; 3]>,
    slots: NameSlots,
    /// Facts between names that were met already.
    extra_facts: HashSet<[u32; 3]>,
    facts: Vec<u32>,
    limit: usize,
}

impl TraversalState {
    fn new(start: u32, limit: usize) -> Self {
        let mut places = NameSlots::default();
        places.get_or_insert(start, 0);
        let (names, by, facts) = (vec![(start, 0)], vec![[u32::MAX; 3]], Vec::new());
        Self {
            names,
            reached_by: by,
            slots: places,
            extra_facts: HashSet::new(),
            facts,
            limit,
        }
    }

    /// Takes a fact in that was not met before; false when there is no room for it.
    fn visit_edge(
        &mut self,
        edge: &Edge,
        triple: [u32; 3],
        (depth, told_before): (u32, usize),
    ) -> bool {
        let next = self.names.len();
        let place = self.slots.get_or_insert(edge.other, next);
        let is_new = place == next
            || place >= told_before
                && self.reached_by[place] != triple
                && !self.extra_facts.contains(&triple);
        if !is_new {
            return true;
        }
        if self.facts.len() == self.limit {
            return false;
        }
        self.facts.push(edge.fact);
        if place == next {
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

/// Names with their places in a list, for thousands of looks in microseconds.
#[derive(Default)]
struct NameSlots {
    /// A name and one; zero where there is none.
    slots: Vec<(u32, u32)>,
    count: usize,
}

impl NameSlots {
    /// The place of a name; a new one gets this.
    fn get_or_insert(&mut self, name: u32, place: usize) -> usize {
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
            self.slots[at] = (name + 1, place as u32);
            self.count += 1;
        }
        self.slots[at].1 as usize
    }

    /// Where it stands or would stand.
    fn slot(&self, name: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = (u64::from(name).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[at].0 != 0 && self.slots[at].0 != name + 1 {
            at = (at + 1) & mask;
        }
        at
    }
}

/// Each once, however many sources tell it.
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
