//! Who should get a request: what was learned from many, and what this team's routing table says.

use super::addressee::parse_addressee;
use super::features::RequestFeatures;
use super::routing_table::{self, Phrase, RoutingEntry};
use super::weights::{DIRECT, LABELS, ROUTING_WEIGHTS, RoutingWeights};
use super::words::RequestWord;

/// Below this share nobody is sure enough to act.
const MIN_CONFIDENCE: f32 = 0.25;
/// Nor when another one is this close behind, unless both are far ahead of the rest.
const MIN_MARGIN: f32 = 0.03;
const CLEAR_LEAD: f32 = 0.4;
/// A word that settles a request outweighs everything that was learned.
const ALWAYS_BONUS: f32 = 30.0;
/// A keyword of an agent that the learned table knows: it mostly says what is known already.
const KNOWN_KEYWORD_BONUS: f32 = 0.2;
/// An agent that nothing was learned about speaks by its entry alone.
const NEW_AGENT_BIAS: f32 = -3.0;
/// In a team with agents of one's own, who is absent may have a namesake under another name.
const ABSENT_PENALTY: f32 = -5.0;
const NEW_KEYWORD_BONUS: f32 = 8.0;
const NEW_EXTRA_KEYWORD_BONUS: f32 = 1.0;
const NEW_WORD_BONUS: f32 = 2.5;
const NEW_MAX_WORD_BONUS: f32 = 7.0;
const CANNOT_PENALTY: f32 = -2.0;
/// Shorter words say nothing.
const MIN_WORD_LEN: usize = 3;
/// At most so many reasons are given.
const MAX_REASONS: usize = 6;
/// A word that speaks less than this for an agent is no reason.
const MIN_REASON_WEIGHT: f32 = 0.15;

/// A team's routing table, ready to judge requests.
pub struct OfflineRouter {
    entries: Vec<RoutingEntry>,
}

/// Who gets a request, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    pub decision: RoutingDecision,
    /// The agents of the team, likeliest first.
    pub ranking: Vec<RankedCandidate>,
    /// How sure the decision is, from 0 to 1.
    pub confidence: f32,
    /// What the agent is told, where the request begins with its name.
    pub task: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoutingDecision {
    Agent(String),
    /// No tool is needed.
    Direct,
    /// Nobody in the team fits; who would, where that is known.
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
    /// Nobody else is even thought of.
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
    /// Reads the table out of an orchestrator's prompt.
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

    /// The same with another table: to measure one before it is committed.
    pub fn route_with(&self, text: &str, learned: &RoutingWeights) -> Routing {
        if let Some((agent, task)) = parse_addressee(text, self.agents()) {
            return Routing::by_name(agent, task);
        }
        let reading = RequestFeatures::from_text(text);
        if reading.words.is_empty() {
            return Routing {
                decision: RoutingDecision::NoAgent { absent: None },
                ranking: Vec::new(),
                confidence: 0.0,
                task: None,
            };
        }
        let candidates = self.candidates(&reading, learned);
        let settled: Vec<f32> = candidates
            .iter()
            .map(RoutingCandidate::boosted_score)
            .collect();
        let plain: Vec<f32> = candidates.iter().map(|candidate| candidate.score).collect();
        let (settled, plain) = (softmax(&settled), softmax(&plain));
        let (decision, at) = decide(&candidates, &settled);
        let of_team = candidates
            .into_iter()
            .zip(&settled)
            .filter(|(candidate, _)| candidate.is_in_team);
        let mut ranking: Vec<RankedCandidate> = of_team
            .map(
                |(
                    RoutingCandidate {
                        name, mut matched, ..
                    },
                    share,
                )| {
                    if let Some(label) = LABELS.iter().position(|label| *label == name) {
                        matched.extend(reasons(&reading, learned, label, &matched));
                    }
                    matched.truncate(MAX_REASONS);
                    RankedCandidate {
                        agent: name.to_owned(),
                        score: *share,
                        matched,
                    }
                },
            )
            .collect();
        ranking.sort_by(|a, b| b.score.total_cmp(&a.score));
        Routing {
            decision,
            ranking,
            confidence: at.map_or(0.0, |at| plain[at]),
            task: None,
        }
    }

    /// The team, and what was learned about but is not in it: who is absent must not be replaced by anyone.
    fn candidates(
        &self,
        reading: &RequestFeatures,
        learned: &RoutingWeights,
    ) -> Vec<RoutingCandidate<'_>> {
        let scores = learned.scores(&reading.features);
        let has_new = self
            .entries
            .iter()
            .any(|entry| !LABELS.contains(&entry.agent.as_str()));
        let own = self
            .entries
            .iter()
            .map(|entry| RoutingCandidate::from_entry(entry, reading, &scores));
        let is_absent = |label: &str| self.entries.iter().all(|entry| entry.agent != label);
        let absent = LABELS
            .iter()
            .zip(scores)
            .filter(|(label, _)| is_absent(label));
        let absent = absent.map(|(label, score)| {
            let beside_new = if has_new && *label != DIRECT {
                ABSENT_PENALTY
            } else {
                0.0
            };
            RoutingCandidate {
                name: label,
                is_in_team: false,
                score: score + beside_new,
                has_always_match: false,
                matched: Vec::new(),
            }
        });
        own.chain(absent).collect()
    }
}

/// Somebody who might get a request.
struct RoutingCandidate<'a> {
    name: &'a str,
    is_in_team: bool,
    score: f32,
    /// Whether a word settles it.
    has_always_match: bool,
    matched: Vec<String>,
}

impl<'a> RoutingCandidate<'a> {
    /// How much speaks for an agent, and which words of its entry do.
    fn from_entry(
        entry: &'a RoutingEntry,
        reading: &RequestFeatures,
        learned: &[f32; LABELS.len()],
    ) -> Self {
        let held = |phrases: &'a [Phrase]| {
            phrases
                .iter()
                .filter(|phrase| phrase.is_in(&reading.words))
                .map(|phrase| phrase.text.clone())
        };
        let mut matched: Vec<String> = held(&entry.always).collect();
        let is_settled = !matched.is_empty();
        let keywords: Vec<String> = held(&entry.keywords).collect();
        let score = match LABELS.iter().position(|label| *label == entry.agent) {
            Some(label) => learned[label] + KNOWN_KEYWORD_BONUS * keywords.len().min(2) as f32,
            None => score_by_entry(entry, reading, keywords.len()),
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
            has_always_match: is_settled,
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

/// The likeliest, if it is likely enough and nobody is too close behind it; and its place.
fn decide(candidates: &[RoutingCandidate<'_>], shares: &[f32]) -> (RoutingDecision, Option<usize>) {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
    let Some(&best) = order.first() else {
        return (RoutingDecision::NoAgent { absent: None }, None);
    };
    let behind = order.get(1).map_or(0.0, |second| shares[*second]);
    let is_close = shares[best] < CLEAR_LEAD && shares[best] - behind < MIN_MARGIN;
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

fn score_by_entry(entry: &RoutingEntry, reading: &RequestFeatures, keywords: usize) -> f32 {
    let said: Vec<&str> = reading
        .words
        .iter()
        .filter(|word| is_significant(word))
        .map(|word| word.stem.as_str())
        .collect();
    let shared = said
        .iter()
        .filter(|stem| entry.stems.iter().any(|known| known == *stem))
        .count();
    let alike = entry
        .examples
        .iter()
        .filter(|example| is_similar(example, &said))
        .count();
    let cannot = entry
        .cannot
        .iter()
        .filter(|phrase| phrase.is_in(&reading.words))
        .count();
    let by_keywords = match keywords + alike {
        0 => 0.0,
        more => NEW_KEYWORD_BONUS + NEW_EXTRA_KEYWORD_BONUS * (more - 1) as f32,
    };
    NEW_AGENT_BIAS
        + by_keywords
        + (NEW_WORD_BONUS * shared as f32).min(NEW_MAX_WORD_BONUS)
        + CANNOT_PENALTY * cannot as f32
}

/// Whether a request holds at least half of an example's words, and two of them.
fn is_similar(example: &Phrase, said: &[&str]) -> bool {
    let shared = example
        .stems
        .iter()
        .filter(|stem| said.contains(&stem.as_str()))
        .count();
    shared >= 2 && shared * 2 >= example.stems.len()
}

/// Words like "what", "with" and "please" stand in every request.
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

/// The words that speak most for a label, neighbours together.
fn reasons(
    reading: &RequestFeatures,
    learned: &RoutingWeights,
    label: usize,
    known: &[String],
) -> Vec<String> {
    let mut weights = vec![0.0_f32; reading.words.len()];
    for feature in &reading.features {
        let Some((first, last)) = feature.word_range else {
            continue;
        };
        let scores = learned.feature_scores(feature);
        let average = scores.iter().sum::<f32>() / scores.len() as f32;
        let share = (scores[label] - average) / (last - first + 1) as f32;
        weights[first..=last]
            .iter_mut()
            .for_each(|weight| *weight += share);
    }
    let mut named: Vec<(f32, String)> = weights
        .iter()
        .zip(&reading.words)
        .filter(|(weight, word)| {
            **weight >= MIN_REASON_WEIGHT && (is_significant(word) || word.has_token_kind())
        })
        .map(|(weight, word)| (*weight, word.normalized.clone()))
        .collect();
    named.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut reasons: Vec<String> = Vec::new();
    for (_, word) in named {
        let is_said = known
            .iter()
            .any(|phrase| phrase.split_whitespace().any(|part| part == word));
        if !reasons.contains(&word) && !is_said {
            reasons.push(word);
        }
    }
    reasons
}

/// Scores as shares of one.
pub fn softmax(scores: &[f32]) -> Vec<f32> {
    let largest = scores.iter().copied().fold(f32::MIN, f32::max);
    let powers: Vec<f32> = scores.iter().map(|score| (score - largest).exp()).collect();
    let total: f32 = powers.iter().sum();
    powers.into_iter().map(|power| power / total).collect()
}
