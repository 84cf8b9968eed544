//! The offline router: selects the agent of a request by trained weights and by the team's routing
//! table.

use super::addressee::parse_addressee;
use super::features::RequestFeatures;
use super::routing_table::{self, Phrase, RoutingEntry};
use super::weights::{DIRECT, LABELS, ROUTING_WEIGHTS, RoutingWeights};
use super::words::RequestWord;

/// Minimum share of the best candidate.
const MIN_CONFIDENCE: f32 = 0.25;
/// Minimum lead over the second candidate, unless the share reaches `CLEAR_LEAD`.
const MIN_MARGIN: f32 = 0.03;
const CLEAR_LEAD: f32 = 0.4;
/// Bonus of an `Always` keyword; outweighs everything else.
const ALWAYS_BONUS: f32 = 30.0;
/// Keyword bonus of agents with trained weights, which mostly cover the keyword already.
const KNOWN_KEYWORD_BONUS: f32 = 0.2;
/// Base score of agents without trained weights, which are scored by their entry alone.
const NEW_AGENT_BIAS: f32 = -3.0;
/// Penalty for absent built-in agents in teams with custom agents: a custom agent may do the same
/// work.
const ABSENT_PENALTY: f32 = -5.0;
const NEW_KEYWORD_BONUS: f32 = 8.0;
const NEW_EXTRA_KEYWORD_BONUS: f32 = 1.0;
const NEW_WORD_BONUS: f32 = 2.5;
const NEW_MAX_WORD_BONUS: f32 = 7.0;
const CANNOT_PENALTY: f32 = -2.0;
/// Minimum length of a significant word.
const MIN_WORD_LEN: usize = 3;
/// Maximum number of reported reasons.
const MAX_REASONS: usize = 6;
/// Minimum weight of a word that counts as a reason.
const MIN_REASON_WEIGHT: f32 = 0.15;

/// A router for the team of one routing table.
pub struct OfflineRouter {
    entries: Vec<RoutingEntry>,
}

/// A routing decision with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    pub decision: RoutingDecision,
    /// The agents of the team, most likely first.
    pub ranking: Vec<RankedCandidate>,
    /// Confidence of the decision, from 0 to 1.
    pub confidence: f32,
    /// The task for the agent, if the request starts with its name.
    pub task: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutingDecision {
    Agent(String),
    /// No tool is needed.
    Direct,
    /// No agent of the team fits; `absent` is the built-in agent that would.
    NoAgent {
        absent: Option<&'static str>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct RankedCandidate {
    pub agent: String,
    pub score: f32,
    pub matched: Vec<String>,
}

impl Routing {
    /// Routes to the agent that the request names; no other agent is considered.
    fn by_name(agent: &str, task: &str) -> Self {
        let named = RankedCandidate {
            agent: agent.to_owned(),
            score: 1.0,
            matched: vec!["called by name".to_owned()],
        };
        Self {
            decision: RoutingDecision::Agent(agent.to_owned()),
            ranking: vec![named],
            confidence: 1.0,
            task: Some(task.to_owned()),
        }
    }
}

impl OfflineRouter {
    /// Parses the routing table in an orchestrator's prompt.
    pub fn from_prompt(prompt: &str) -> Self {
        Self {
            entries: routing_table::parse(prompt),
        }
    }

    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.agent.as_str())
    }

    pub fn route(&self, text: &str) -> Routing {
        self.route_with(text, &ROUTING_WEIGHTS)
    }

    /// Like [`route`](Self::route), with other weights: measures weights before they are committed.
    pub fn route_with(&self, text: &str, weights: &RoutingWeights) -> Routing {
        if let Some((agent, task)) = parse_addressee(text, self.agents()) {
            return Routing::by_name(agent, task);
        }
        let features = RequestFeatures::from_text(text);
        if features.words.is_empty() {
            return Routing {
                decision: RoutingDecision::NoAgent { absent: None },
                ranking: Vec::new(),
                confidence: 0.0,
                task: None,
            };
        }
        let candidates = self.candidates(&features, weights);
        let boosted: Vec<f32> = candidates
            .iter()
            .map(RoutingCandidate::boosted_score)
            .collect();
        let plain: Vec<f32> = candidates.iter().map(|candidate| candidate.score).collect();
        let (boosted, plain) = (softmax(&boosted), softmax(&plain));
        let (decision, best) = decide(&candidates, &boosted);
        let mut ranking: Vec<RankedCandidate> = candidates
            .into_iter()
            .zip(&boosted)
            .filter(|(candidate, _)| candidate.is_in_team)
            .map(|(candidate, share)| candidate.into_ranked(*share, &features, weights))
            .collect();
        ranking.sort_by(|a, b| b.score.total_cmp(&a.score));
        Routing {
            decision,
            ranking,
            confidence: best.map_or(0.0, |best| plain[best]),
            task: None,
        }
    }

    /// Returns the agents of the team and the absent built-in agents, whose requests no other agent
    /// must get.
    fn candidates(
        &self,
        features: &RequestFeatures,
        weights: &RoutingWeights,
    ) -> Vec<RoutingCandidate<'_>> {
        let scores = weights.scores(&features.features);
        let has_custom = self
            .entries
            .iter()
            .any(|entry| !LABELS.contains(&entry.agent.as_str()));
        let own = self
            .entries
            .iter()
            .map(|entry| RoutingCandidate::from_entry(entry, features, &scores));
        let is_absent = |label: &str| self.entries.iter().all(|entry| entry.agent != label);
        let absent = LABELS
            .iter()
            .zip(scores)
            .filter(|(label, _)| is_absent(label));
        let absent = absent.map(|(label, score)| {
            let penalty = if has_custom && *label != DIRECT {
                ABSENT_PENALTY
            } else {
                0.0
            };
            RoutingCandidate {
                name: label,
                is_in_team: false,
                score: score + penalty,
                has_always_match: false,
                matched: Vec::new(),
            }
        });
        own.chain(absent).collect()
    }
}

/// An agent that may get a request.
struct RoutingCandidate<'a> {
    name: &'a str,
    is_in_team: bool,
    score: f32,
    /// True if an `Always` keyword matches.
    has_always_match: bool,
    matched: Vec<String>,
}

impl<'a> RoutingCandidate<'a> {
    /// Scores an agent of the team and collects the matching words of its entry.
    fn from_entry(
        entry: &'a RoutingEntry,
        features: &RequestFeatures,
        label_scores: &[f32; LABELS.len()],
    ) -> Self {
        let matching = |phrases: &'a [Phrase]| {
            phrases
                .iter()
                .filter(|phrase| phrase.is_in(&features.words))
                .map(|phrase| phrase.text.clone())
        };
        let mut matched: Vec<String> = matching(&entry.always).collect();
        let has_always_match = !matched.is_empty();
        let keywords: Vec<String> = matching(&entry.keywords).collect();
        let score = match LABELS.iter().position(|label| *label == entry.agent) {
            Some(label) => label_scores[label] + KNOWN_KEYWORD_BONUS * keywords.len().min(2) as f32,
            None => score_by_entry(entry, features, keywords.len()),
        };
        matched.extend(
            keywords
                .into_iter()
                .filter(|keyword| !entry.always.iter().any(|known| known.text == *keyword)),
        );
        Self {
            name: &entry.agent,
            is_in_team: true,
            score,
            has_always_match,
            matched,
        }
    }

    /// Adds the reasons from the trained weights.
    fn into_ranked(
        self,
        share: f32,
        features: &RequestFeatures,
        weights: &RoutingWeights,
    ) -> RankedCandidate {
        let mut matched = self.matched;
        if let Some(label) = LABELS.iter().position(|label| *label == self.name) {
            matched.extend(reasons(features, weights, label, &matched));
        }
        matched.truncate(MAX_REASONS);
        RankedCandidate {
            agent: self.name.to_owned(),
            score: share,
            matched,
        }
    }

    fn boosted_score(&self) -> f32 {
        if self.has_always_match {
            self.score + ALWAYS_BONUS
        } else {
            self.score
        }
    }
}

/// Returns the decision and the index of the best candidate. No agent is chosen if the best share
/// is too low or too close to the second.
fn decide(candidates: &[RoutingCandidate<'_>], shares: &[f32]) -> (RoutingDecision, Option<usize>) {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
    let Some(&best) = order.first() else {
        return (RoutingDecision::NoAgent { absent: None }, None);
    };
    let second = order.get(1).map_or(0.0, |index| shares[*index]);
    let is_close = shares[best] < CLEAR_LEAD && shares[best] - second < MIN_MARGIN;
    if shares[best] < MIN_CONFIDENCE || is_close {
        return (RoutingDecision::NoAgent { absent: None }, Some(best));
    }
    let candidate = &candidates[best];
    let decision = match LABELS.iter().find(|label| **label == candidate.name) {
        Some(label) if !candidate.is_in_team && *label != DIRECT => RoutingDecision::NoAgent {
            absent: Some(label),
        },
        _ if !candidate.is_in_team => RoutingDecision::Direct,
        _ => RoutingDecision::Agent(candidate.name.to_owned()),
    };
    (decision, Some(best))
}

fn score_by_entry(entry: &RoutingEntry, features: &RequestFeatures, keywords: usize) -> f32 {
    let significant: Vec<&str> = features
        .words
        .iter()
        .filter(|word| is_significant(word))
        .map(|word| word.stem.as_str())
        .collect();
    let shared = significant
        .iter()
        .filter(|stem| entry.stems.iter().any(|known| known == *stem))
        .count();
    let similar = entry
        .examples
        .iter()
        .filter(|example| is_similar(example, &significant))
        .count();
    let cannot = entry
        .cannot
        .iter()
        .filter(|phrase| phrase.is_in(&features.words))
        .count();
    let by_keywords = match keywords + similar {
        0 => 0.0,
        more => NEW_KEYWORD_BONUS + NEW_EXTRA_KEYWORD_BONUS * (more - 1) as f32,
    };
    NEW_AGENT_BIAS
        + by_keywords
        + (NEW_WORD_BONUS * shared as f32).min(NEW_MAX_WORD_BONUS)
        + CANNOT_PENALTY * cannot as f32
}

/// Returns true if a request contains at least half of an example's words, and at least two.
fn is_similar(example: &Phrase, significant: &[&str]) -> bool {
    let shared = example
        .stems
        .iter()
        .filter(|stem| significant.contains(&stem.as_str()))
        .count();
    shared >= 2 && shared * 2 >= example.stems.len()
}

/// Returns false for short words and for words like "what", "with" and "please".
fn is_significant(word: &RequestWord) -> bool {
    const STOP_WORDS: &str = "the and for you your are was can could would will what when where which who why how with from this \
        that these those have has had not but all any some out into about please just get got does did its our their them \
        they she him her his there here then than too very more most also need want";
    let is_long = word.normalized.len() >= MIN_WORD_LEN;
    is_long
        && !STOP_WORDS
            .split_whitespace()
            .any(|common| common == word.normalized)
}

/// Returns the words with the highest weights for a label, without those in `known`.
fn reasons(
    features: &RequestFeatures,
    weights: &RoutingWeights,
    label: usize,
    known: &[String],
) -> Vec<String> {
    let mut word_weights = vec![0.0_f32; features.words.len()];
    for feature in &features.features {
        let Some((first, last)) = feature.word_range else {
            continue;
        };
        let scores = weights.feature_scores(feature);
        let average = scores.iter().sum::<f32>() / scores.len() as f32;
        let share = (scores[label] - average) / (last - first + 1) as f32;
        word_weights[first..=last]
            .iter_mut()
            .for_each(|weight| *weight += share);
    }
    let mut weighted: Vec<(f32, String)> = word_weights
        .iter()
        .zip(&features.words)
        .filter(|(weight, word)| {
            **weight >= MIN_REASON_WEIGHT && (is_significant(word) || word.has_token_kind())
        })
        .map(|(weight, word)| (*weight, word.normalized.clone()))
        .collect();
    weighted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut reasons: Vec<String> = Vec::new();
    for (_, word) in weighted {
        let is_known = known
            .iter()
            .any(|phrase| phrase.split_whitespace().any(|part| part == word));
        if !reasons.contains(&word) && !is_known {
            reasons.push(word);
        }
    }
    reasons
}

/// Converts scores to shares that sum to one.
pub fn softmax(scores: &[f32]) -> Vec<f32> {
    let largest = scores.iter().copied().fold(f32::MIN, f32::max);
    let powers: Vec<f32> = scores.iter().map(|score| (score - largest).exp()).collect();
    let total: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / total).collect()
}
