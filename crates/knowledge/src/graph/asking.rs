//! Questions to the facts in memory. They wait for nothing and read no file.

use std::collections::{HashMap, HashSet, VecDeque};

use super::moment::When;
use super::net::{Edge, End, Net};

/// More names than this are not looked at to find a way between two.
const MOST_VISITED: usize = 1_000_000;

/// Which facts; at least one part should be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
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
    fn ends(self) -> &'static [End] {
        match self {
            Self::Both => &[End::Subject, End::Object],
            Self::Out => &[End::Subject],
            Self::In => &[End::Object],
        }
    }
}

/// How far and along what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    pub depth: u32,
    /// Along any when there are none.
    pub predicates: Vec<u32>,
    pub direction: Direction,
    pub when: When,
    /// So many facts at most.
    pub limit: usize,
}

/// Facts by their numbers, and whether there are more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub facts: Vec<u32>,
    pub more: bool,
}

/// What a walk met: names with how far away they are, nearest first, and each fact once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    pub names: Vec<(u32, u32)>,
    pub found: Found,
}

impl Net {
    /// Facts that fit, each once, however many sources tell it.
    pub fn query(&self, pattern: Pattern, when: When, limit: usize) -> Found {
        let Pattern { subject, predicate, object } = pattern;
        let degree = |name, end| self.degree(name, end);
        let (own, end, other) = match (subject, object) {
            (Some(subject), Some(object)) if degree(object, End::Object) < degree(subject, End::Subject) => {
                (object, End::Object, Some(subject))
            }
            (Some(subject), object) => (subject, End::Subject, object),
            (None, Some(object)) => (object, End::Object, None),
            (None, None) => return self.scan(predicate, when, limit),
        };
        let fits = |edge: &&Edge| {
            predicate.is_none_or(|predicate| edge.predicate() == predicate)
                && other.is_none_or(|other| edge.other == other)
                && self.holds(edge, when)
        };
        self.distinct(self.edges(own, end).filter(fits).map(|edge| edge.fact), limit)
    }

    /// Everything around a name, as its subject or its object.
    pub fn about(&self, name: u32, predicate: Option<u32>, when: When, limit: usize) -> Found {
        let ends = [End::Subject, End::Object].into_iter().flat_map(|end| self.edges(name, end));
        let fits = |edge: &&Edge| {
            predicate.is_none_or(|predicate| edge.predicate() == predicate) && self.holds(edge, when)
        };
        self.distinct(ends.filter(fits).map(|edge| edge.fact), limit)
    }

    fn scan(&self, predicate: Option<u32>, when: When, limit: usize) -> Found {
        let numbers = 0..self.facts().len() as u32;
        let fits = |number: &u32| {
            predicate.is_none_or(|predicate| self.fact(*number).predicate == predicate)
                && self.holds_fact(*number, when)
        };
        self.distinct(numbers.filter(fits), limit)
    }

    fn distinct(&self, facts: impl Iterator<Item = u32>, limit: usize) -> Found {
        let (mut known, mut found) = (HashSet::new(), Found::default());
        for fact in facts {
            let detail = self.detail(fact);
            if !known.insert((self.fact(fact).triple(), detail.from, detail.to)) {
                continue;
            }
            if found.facts.len() == limit {
                found.more = true;
                break;
            }
            found.facts.push(fact);
        }
        found
    }

    /// Breadth first, both ways round cycles, no name and no fact twice.
    pub fn walk(&self, start: u32, walk: &Walk) -> Walked {
        let (mut names, mut facts) = (vec![(start, 0)], Vec::new());
        let (mut met, mut told) = (Numbers::default(), Numbers::default());
        met.insert([start, 0, 0]);
        let mut at = 0;
        while let Some(&(name, depth)) = names.get(at).filter(|(_, depth)| *depth < walk.depth) {
            at += 1;
            for &end in walk.direction.ends() {
                for edge in self.edges(name, end) {
                    let predicate = edge.predicate();
                    if !walk.predicates.is_empty() && !walk.predicates.contains(&predicate)
                        || !self.holds(edge, walk.when)
                    {
                        continue;
                    }
                    let triple = match end {
                        End::Subject => [name, predicate, edge.other],
                        End::Object => [edge.other, predicate, name],
                    };
                    if !told.insert(triple) {
                        continue;
                    }
                    if facts.len() == walk.limit {
                        return Walked { names, found: Found { facts, more: true } };
                    }
                    facts.push(edge.fact);
                    if met.insert([edge.other, 0, 0]) {
                        names.push((edge.other, depth + 1));
                    }
                }
            }
        }
        Walked { names, found: Found { facts, more: false } }
    }

    /// A shortest way from one name to another, whichever way its facts point. It goes from both sides at once, always on
    /// where there is less to look at.
    pub fn path(&self, from: u32, to: u32, most: u32, when: When) -> Option<Vec<u32>> {
        if from == to {
            return Some(Vec::new());
        }
        let mut sides = [Side::new(from), Side::new(to)];
        for _ in 0..most {
            let nearer = usize::from(sides[1].border.len() < sides[0].border.len());
            let (own, other) = match &mut sides {
                [first, second] if nearer == 0 => (first, &*second),
                [first, second] => (second, &*first),
            };
            if let Some(meeting) = self.step(own, other, when) {
                let mut way = sides[0].way_to(meeting);
                way.reverse();
                way.extend(sides[1].way_to(meeting));
                return Some(way);
            }
            if sides.iter().any(|side| side.border.is_empty() || side.came.len() > MOST_VISITED) {
                return None;
            }
        }
        None
    }

    /// All names one fact further; the first that the other side knows.
    fn step(&self, own: &mut Side, other: &Side, when: When) -> Option<u32> {
        for name in std::mem::take(&mut own.border) {
            for edge in Direction::Both.ends().iter().flat_map(|end| self.edges(name, *end)) {
                if own.came.contains_key(&edge.other) || !self.holds(edge, when) {
                    continue;
                }
                own.came.insert(edge.other, Some((name, edge.fact)));
                if other.came.contains_key(&edge.other) {
                    return Some(edge.other);
                }
                own.border.push_back(edge.other);
            }
        }
        None
    }
}

/// What was reached from one end.
struct Side {
    came: HashMap<u32, Option<(u32, u32)>>,
    border: VecDeque<u32>,
}

impl Side {
    fn new(start: u32) -> Self {
        Self { came: HashMap::from([(start, None)]), border: VecDeque::from([start]) }
    }

    /// The facts back to where it began.
    fn way_to(&self, mut name: u32) -> Vec<u32> {
        let mut facts = Vec::new();
        while let Some(Some((before, fact))) = self.came.get(&name) {
            facts.push(*fact);
            name = *before;
        }
        facts
    }
}

/// A small set of numbers that belong together, for thousands of looks in microseconds.
#[derive(Default)]
struct Numbers {
    slots: Vec<Option<[u32; 3]>>,
    count: usize,
}

impl Numbers {
    fn insert(&mut self, key: [u32; 3]) -> bool {
        if self.slots.len() < (self.count + 1) * 2 {
            let size = (self.slots.len() * 4).max(256);
            let before = std::mem::replace(&mut self.slots, vec![None; size]);
            for key in before.into_iter().flatten() {
                let place = self.place(key);
                self.slots[place] = Some(key);
            }
        }
        let place = self.place(key);
        let is_new = self.slots[place].is_none();
        self.slots[place] = Some(key);
        self.count += usize::from(is_new);
        is_new
    }

    /// Where it stands or would stand.
    fn place(&self, [a, b, c]: [u32; 3]) -> usize {
        let mixed = (u64::from(a) | u64::from(c) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(b);
        let mixed = mixed.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mask = self.slots.len() - 1;
        let mut at = (mixed >> 32) as usize & mask;
        while self.slots[at].is_some_and(|found| found != [a, b, c]) {
            at = (at + 1) & mask;
        }
        at
    }
}
