//! Which agent a request's words point to, by the keywords of the routing table alone (S38).

use lango_domain::{Agent, AgentTree};
use serde::Serialize;

/// How strongly a request's words point to one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeywordMatch {
    pub agent: String,
    pub score: u32,
    pub matched: Vec<String>,
}

/// A keyword tells more the more words it has; one that decides by itself outweighs them all, however many stand
/// against it.
const DECISIVE: u32 = 1_000;

/// Every agent with at least one keyword in `request`, strongest first; ties keep the order of the team.
pub fn rank_by_keywords(tree: &AgentTree, request: &str) -> Vec<KeywordMatch> {
    let request = stems(request);
    let mut ranking: Vec<KeywordMatch> =
        tree.specialists.iter().map(|agent| matches(agent, &request)).filter(|m| m.score > 0).collect();
    ranking.sort_by_key(|found| std::cmp::Reverse(found.score));
    ranking
}

fn matches(agent: &Agent, request: &[String]) -> KeywordMatch {
    let mut found = KeywordMatch { agent: agent.name.to_string(), score: 0, matched: Vec::new() };
    for keyword in &agent.keywords {
        let phrase = stems(keyword);
        if !phrase.is_empty() && contains_in_order(request, &phrase) {
            found.score += phrase.len() as u32;
            found.matched.push(keyword.clone());
        }
    }
    if found.matched.iter().any(|keyword| agent.decisive.contains(keyword)) {
        found.score += DECISIVE;
    }
    found
}

/// Whether the words of `phrase` stand in `request` in order, each at most two words behind the one before it:
/// "read the file" holds "read file".
fn contains_in_order(request: &[String], phrase: &[String]) -> bool {
    const REACH: usize = 3;
    let Some((first, rest)) = phrase.split_first() else { return true };
    let starts = request.iter().enumerate().filter(|(_, word)| *word == first).map(|(at, _)| at);
    starts.into_iter().any(|start| {
        rest.iter()
            .try_fold(start, |at, word| (at + 1..=at + REACH).find(|next| request.get(*next) == Some(word)))
            .is_some()
    })
}

fn stems(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(stem).collect()
}

/// English endings that do not change what a word points to.
fn stem(word: &str) -> String {
    for (ending, instead, shortest) in
        [("ies", "y", 2), ("ing", "", 4), ("ed", "", 4), ("es", "", 4), ("s", "", 3)]
    {
        if let Some(base) = word.strip_suffix(ending)
            && base.len() >= shortest
            && !base.ends_with('s')
        {
            return format!("{base}{instead}").trim_end_matches('e').to_owned();
        }
    }
    word.trim_end_matches('e').to_owned()
}
