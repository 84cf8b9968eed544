//! Immutable snapshots of the graph, with names instead of numbers.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use lango_domain::Label;
use lango_domain::graph::FactSource;
use serde::Serialize;
use serde_json::Value;

use super::fact::FactRef;
use super::in_memory::{EdgeEnd, InMemoryGraph};
use super::interner::NameInterner;
use super::validity::AsOf;

/// Most sources listed for a fact.
const MAX_SOURCES: usize = 8;
/// Most facts of a name scanned for its type, or for further sources of a fact.
const MAX_SCANNED: usize = 256;

/// An immutable view of the facts; later writes do not change it. Cheap to clone.
#[derive(Clone)]
pub struct GraphSnapshot {
    graph: Arc<InMemoryGraph>,
}

impl Deref for GraphSnapshot {
    type Target = InMemoryGraph;

    fn deref(&self) -> &InMemoryGraph {
        &self.graph
    }
}

/// Error for a name or predicate that occurs in no fact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the graph has no {what} `{name}`{}", suggestion(near))]
pub struct UnknownName {
    what: &'static str,
    pub name: String,
    pub near: Vec<String>,
}

fn suggestion(near: &[String]) -> String {
    let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", quoted.join(" or "))
    }
}

/// A fact in the form that every command and tool returns.
#[derive(Debug, Serialize)]
pub struct FactItem<'a> {
    pub subject: &'a str,
    pub predicate: &'a str,
    pub object: &'a str,
    pub valid_from: Option<String>,
    pub valid_to: Option<String>,
    pub source: String,
    /// All sources, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub subject_type: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub object_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<Value>,
}

/// Counts of names and facts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GraphStats {
    pub names: usize,
    pub facts: usize,
    /// Facts that are valid at the requested moment.
    pub holding: usize,
    pub predicates: Vec<FactCount>,
    pub sources: Vec<FactCount>,
    /// The names with the most facts.
    pub busiest: Vec<FactCount>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactCount {
    pub name: String,
    pub facts: usize,
}

impl GraphSnapshot {
    pub(super) fn new(graph: Arc<InMemoryGraph>) -> Self {
        Self { graph }
    }

    /// Finds a name as written, then without a leading article, so that "the Spree" finds the Spree
    /// while "The Hague" keeps its article.
    pub fn find(&self, name: &str) -> Result<u32, UnknownName> {
        find_name(&self.graph.names, "name", name).or_else(|unknown| {
            without_article(name)
                .and_then(|name| self.graph.names.find(name))
                .ok_or(unknown)
        })
    }

    pub fn find_predicate(&self, name: &str) -> Result<u32, UnknownName> {
        find_name(&self.graph.predicates, "predicate", name)
    }

    pub fn name(&self, number: u32) -> &str {
        self.graph.names.display_name(number)
    }

    pub fn predicate_name(&self, number: u32) -> &str {
        self.graph.predicates.display_name(number)
    }

    /// Returns the type of a name from the newest fact that states one.
    pub fn entity_type(&self, name: u32) -> &str {
        let types_at = |end: EdgeEnd| {
            self.graph
                .edges(name, end)
                .take(MAX_SCANNED)
                .filter_map(move |edge| {
                    let detail = self.graph.detail(edge.fact);
                    let number = if end == EdgeEnd::Subject {
                        detail.subject_type
                    } else {
                        detail.object_type
                    };
                    (number != 0).then_some((edge.fact, number))
                })
        };
        let newest = types_at(EdgeEnd::Subject)
            .chain(types_at(EdgeEnd::Object))
            .max();
        newest.map_or("", |(_, number)| self.graph.text(number))
    }

    pub fn fact_item(&self, fact: u32) -> FactItem<'_> {
        let (triple, detail) = (self.graph.fact(fact), self.graph.detail(fact));
        let sources = self.all_sources(fact);
        FactItem {
            subject: self.name(triple.subject),
            predicate: self.predicate_name(triple.predicate),
            object: self.name(triple.object),
            valid_from: detail.from.map(|from| from.to_string()),
            valid_to: detail.to.map(|to| to.to_string()),
            source: self.graph.source(fact).to_string(),
            sources: if sources.len() > 1 {
                sources
            } else {
                Vec::new()
            },
            subject_type: self.graph.text(detail.subject_type),
            object_type: self.graph.text(detail.object_type),
            properties: serde_json::from_str(self.graph.text(detail.properties)).ok(),
        }
    }

    /// Returns the combined label of facts.
    pub fn label(&self, facts: &[u32]) -> Label {
        let mut label = Label::private("the knowledge graph");
        facts
            .iter()
            .for_each(|fact| label.join(self.graph.label(*fact)));
        label
    }

    pub fn fact_source(&self, fact: u32) -> &FactSource {
        self.graph.source(fact)
    }

    /// Returns true if the graph has exactly this fact from the given source.
    pub fn contains_fact(&self, fact_ref: &FactRef<'_>, source: &str) -> bool {
        let names = &self.graph.names;
        let (Some(subject), Some(object)) =
            (names.find(fact_ref.subject), names.find(fact_ref.object))
        else {
            return false;
        };
        let is_same = |fact: u32| {
            let (detail, text) = (self.graph.detail(fact), |number| self.graph.text(number));
            // A fact that was retired since is still known, so that importing it again does not
            // revive it.
            let has_same_end = fact_ref.valid_to.is_none() || detail.to == fact_ref.valid_to;
            has_same_end
                && detail.from == fact_ref.valid_from
                && text(detail.subject_type) == fact_ref.subject_type
                && text(detail.object_type) == fact_ref.object_type
                && text(detail.properties) == fact_ref.properties
                && self.graph.source(fact).to_string() == source
        };
        let is_less = self.graph.degree(object, EdgeEnd::Object)
            < self.graph.degree(subject, EdgeEnd::Subject);
        let (own, end, other) = if is_less {
            (object, EdgeEnd::Object, subject)
        } else {
            (subject, EdgeEnd::Subject, object)
        };
        let Some(predicate) = self.graph.predicates.find(fact_ref.predicate) else {
            return false;
        };
        let mut edges = self.graph.edges(own, end);
        edges.any(|edge| edge.other == other && edge.predicate() == predicate && is_same(edge.fact))
    }

    /// Returns the sources of a fact and of its duplicates.
    fn all_sources(&self, fact: u32) -> Vec<String> {
        let (triple, detail) = (self.graph.fact(fact), self.graph.detail(fact));
        let (subject, object) = (triple.subject, triple.object);
        let is_less = self.graph.degree(object, EdgeEnd::Object)
            < self.graph.degree(subject, EdgeEnd::Subject);
        let (own, end) = if is_less {
            (object, EdgeEnd::Object)
        } else {
            (subject, EdgeEnd::Subject)
        };
        let mut sources = vec![self.graph.source(fact).to_string()];
        let other_end = if is_less { subject } else { object };
        for edge in self.graph.edges(own, end).take(MAX_SCANNED) {
            let is_other = edge.other == other_end
                && edge.predicate() == triple.predicate
                && edge.fact != fact;
            let is_same = is_other && self.graph.validity(edge) == (detail.from, detail.to);
            if !is_same || sources.len() == MAX_SOURCES {
                continue;
            }
            let source = self.graph.source(edge.fact).to_string();
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }

    /// Counts all facts and returns the `limit` largest counts of each kind.
    pub fn stats(&self, as_of: AsOf, limit: usize) -> GraphStats {
        let (mut predicates, mut busiest, mut sources) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut holding = 0;
        for (number, fact) in (0_u32..).zip(self.graph.facts()) {
            holding += usize::from(self.graph.is_fact_valid(number, as_of));
            *predicates.entry(fact.predicate).or_insert(0) += 1;
            *busiest.entry(fact.subject).or_insert(0) += 1;
            if fact.object != fact.subject {
                *busiest.entry(fact.object).or_insert(0) += 1;
            }
        }
        for (source, facts) in self.graph.sources().filter(|(_, facts)| *facts > 0) {
            *sources.entry(source.to_string()).or_insert(0) += facts;
        }
        let names = busiest.len();
        let named = |counts: BTreeMap<u32, usize>, name: &dyn Fn(u32) -> String| {
            top_counts(
                counts.into_iter().map(|(number, facts)| FactCount {
                    name: name(number),
                    facts,
                }),
                limit,
            )
        };
        GraphStats {
            names,
            facts: self.graph.facts().len(),
            holding,
            predicates: named(predicates, &|number| self.predicate_name(number).to_owned()),
            sources: top_counts(
                sources
                    .into_iter()
                    .map(|(name, facts)| FactCount { name, facts }),
                limit,
            ),
            busiest: named(busiest, &|number| self.name(number).to_owned()),
        }
    }
}

fn top_counts(counts: impl Iterator<Item = FactCount>, limit: usize) -> Vec<FactCount> {
    let mut counts: Vec<FactCount> = counts.collect();
    counts.sort_by(|a, b| b.facts.cmp(&a.facts).then_with(|| a.name.cmp(&b.name)));
    counts.truncate(limit);
    counts
}

fn without_article(name: &str) -> Option<&str> {
    let (article, name) = name.trim_start().split_once(char::is_whitespace)?;
    ["the", "a", "an"]
        .iter()
        .any(|known| article.eq_ignore_ascii_case(known))
        .then_some(name)
}

fn find_name(names: &NameInterner, what: &'static str, name: &str) -> Result<u32, UnknownName> {
    names.find(name).ok_or_else(|| {
        let near = names.similar(name).into_iter().map(str::to_owned).collect();
        let name = super::interner::normalize_spaces(name)
            .chars()
            .take(80)
            .collect();
        UnknownName { what, name, near }
    })
}
