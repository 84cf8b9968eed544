//! The search for many patterns at once, in one pass over the text.

use std::collections::VecDeque;
use std::ops::Range;

const ROOT: u32 = 0;

/// A trie of patterns with failure links.
pub(super) struct Automaton {
    nodes: Vec<Node>,
    /// The children of the root by byte, since most bytes of a text are looked up there.
    first: Box<[u32; 256]>,
}

#[derive(Default)]
struct Node {
    /// Sorted by byte.
    children: Vec<(u8, u32)>,
    /// The node of the longest proper suffix that is also a prefix of a pattern.
    fallback: u32,
    depth: usize,
    /// The longest pattern that ends here: its length, and the secret it belongs to.
    longest: Option<(usize, usize)>,
}

/// A part of a text that contains values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub start: usize,
    pub end: usize,
    /// The secret with the longest match.
    pub secret: usize,
    longest: usize,
}

impl Default for Automaton {
    fn default() -> Self {
        Self {
            nodes: vec![Node::default()],
            first: Box::new([ROOT; 256]),
        }
    }
}

impl Automaton {
    pub fn insert(&mut self, pattern: &[u8], secret: usize) {
        let mut state = ROOT;
        for (index, byte) in pattern.iter().enumerate() {
            state = match self.child(state, *byte) {
                Some(child) => child,
                None => self.add_child(state, *byte, index + 1),
            };
        }
        let node = &mut self.nodes[state as usize];
        if !pattern.is_empty() && node.longest.is_none() {
            node.longest = Some((pattern.len(), secret));
        }
    }

    /// Sets the failure links, or returns `None` if there is no pattern.
    pub fn finish(mut self) -> Option<Self> {
        if self.nodes.len() == 1 {
            return None;
        }
        let mut queue: VecDeque<u32> = self.children(ROOT).map(|(_, child)| child).collect();
        while let Some(state) = queue.pop_front() {
            let children: Vec<(u8, u32)> = self.children(state).collect();
            let fallback = self.nodes[state as usize].fallback;
            for (byte, child) in children {
                let target = self.next(fallback, byte);
                let inherited = self.nodes[target as usize].longest;
                let node = &mut self.nodes[child as usize];
                node.fallback = target;
                node.longest = node.longest.or(inherited);
                queue.push_back(child);
            }
        }
        Some(self)
    }

    fn children(&self, state: u32) -> impl Iterator<Item = (u8, u32)> + '_ {
        self.nodes[state as usize].children.iter().copied()
    }

    fn add_child(&mut self, parent: u32, byte: u8, depth: usize) -> u32 {
        let child = u32::try_from(self.nodes.len()).unwrap_or(ROOT);
        self.nodes.push(Node {
            depth,
            ..Node::default()
        });
        let children = &mut self.nodes[parent as usize].children;
        let position = children.partition_point(|(other, _)| *other < byte);
        children.insert(position, (byte, child));
        if parent == ROOT {
            self.first[usize::from(byte)] = child;
        }
        child
    }

    fn child(&self, state: u32, byte: u8) -> Option<u32> {
        if state == ROOT {
            let child = self.first[usize::from(byte)];
            return (child != ROOT).then_some(child);
        }
        let children = &self.nodes[state as usize].children;
        let position = children.binary_search_by_key(&byte, |(other, _)| *other);
        position.ok().map(|position| children[position].1)
    }

    fn next(&self, mut state: u32, byte: u8) -> u32 {
        loop {
            if let Some(child) = self.child(state, byte) {
                return child;
            }
            if state == ROOT {
                return ROOT;
            }
            state = self.nodes[state as usize].fallback;
        }
    }
}

impl Drop for Automaton {
    /// Overwrites the patterns, which spell the values.
    fn drop(&mut self) {
        for node in &mut self.nodes {
            for child in &mut node.children {
                *std::hint::black_box(child) = (0, ROOT);
            }
        }
    }
}

/// A search that can be continued with the next part of a text.
pub(super) struct Scan {
    state: u32,
    /// The position of the next byte.
    position: usize,
    /// The start of each byte of the current prefix, without line breaks.
    prefix: VecDeque<usize>,
}

impl Scan {
    pub fn new(position: usize) -> Self {
        Self {
            state: ROOT,
            position,
            prefix: VecDeque::new(),
        }
    }

    /// Searches the next part of a text. Matches that overlap are joined.
    pub fn feed(&mut self, automaton: &Automaton, bytes: &[u8]) -> Vec<Found> {
        let mut all = Vec::new();
        for byte in bytes {
            let position = self.position;
            self.position += 1;
            if matches!(byte, b'\n' | b'\r') {
                continue;
            }
            self.state = automaton.next(self.state, *byte);
            if self.state == ROOT {
                self.prefix.clear();
                continue;
            }
            let node = &automaton.nodes[self.state as usize];
            self.prefix.push_back(position);
            self.prefix
                .drain(..self.prefix.len().saturating_sub(node.depth));
            if let Some((length, secret)) = node.longest {
                let first = self.prefix.len() - length;
                join(&mut all, self.prefix[first]..self.position, length, secret);
            }
            if node.children.is_empty() {
                // Nothing longer can follow, so a stream need not wait for it.
                self.state = node.fallback;
                let depth = automaton.nodes[self.state as usize].depth;
                self.prefix.drain(..self.prefix.len() - depth);
            }
        }
        all
    }

    /// Returns the position from which the text may still become a value.
    pub fn undecided_from(&self) -> usize {
        self.prefix.front().copied().unwrap_or(self.position)
    }
}

/// Adds a match. Matches come in the order of their ends.
pub(super) fn join(all: &mut Vec<Found>, range: Range<usize>, length: usize, secret: usize) {
    let mut joined = Found {
        start: range.start,
        end: range.end,
        secret,
        longest: length,
    };
    while let Some(last) = all.pop_if(|last| last.end > joined.start) {
        joined.start = joined.start.min(last.start);
        if last.longest >= joined.longest {
            (joined.secret, joined.longest) = (last.secret, last.longest);
        }
    }
    all.push(joined);
}

impl Found {
    /// Adds a later match of the next part of a text.
    pub fn append_to(self, all: &mut Vec<Self>) {
        join(all, self.start..self.end, self.longest, self.secret);
    }
}
