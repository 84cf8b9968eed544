//! Unigram tokens: of all ways to cut a word, the one whose tokens are likeliest together.

use std::collections::HashMap;

use serde_json::Value;

/// A longer word is cut in parts of this many characters; nobody writes such words.
const MAX_WORD_LEN: usize = 200;
/// How much less likely than any token a character is that no token has.
const UNKNOWN_PENALTY: f64 = 10.0;

pub(super) struct Unigrams {
    vocabulary: HashMap<String, (u32, f64)>,
    max_token_chars: usize,
    unknown: Option<u32>,
    unknown_score: f64,
}

/// The best way to a place in the word.
#[derive(Clone, Copy)]
struct BestPath {
    score: f64,
    from: usize,
    token: Option<u32>,
}

impl Unigrams {
    pub fn parse(model: &Value) -> Result<Self, String> {
        let entries = model["vocab"]
            .as_array()
            .filter(|vocab| !vocab.is_empty())
            .ok_or("it has no vocabulary")?;
        let mut vocabulary = HashMap::with_capacity(entries.len());
        for (id, entry) in (0_u32..).zip(entries) {
            let (Some(token), Some(score)) = (entry[0].as_str(), entry[1].as_f64()) else {
                return Err(format!("the token {id} is not a text with a score"));
            };
            vocabulary.insert(token.to_owned(), (id, score));
        }
        let worst = vocabulary
            .values()
            .map(|&(_, score)| score)
            .fold(0.0, f64::min);
        Ok(Self {
            max_token_chars: vocabulary
                .keys()
                .map(|token| token.chars().count())
                .max()
                .unwrap_or(1),
            vocabulary,
            unknown: model["unk_id"]
                .as_u64()
                .and_then(|id| u32::try_from(id).ok()),
            unknown_score: worst - UNKNOWN_PENALTY,
        })
    }

    /// Hands out the tokens of a word; what no token has is left out.
    pub fn tokenize_word(&self, word: &str, each: &mut impl FnMut(u32)) {
        let mut ends: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
        ends.push(word.len());
        for part in ends.chunks(MAX_WORD_LEN) {
            // Each part ends where the next one begins.
            let last = ends.get(ends.partition_point(|end| *end <= part[part.len() - 1]));
            let places: Vec<usize> = part.iter().chain(last).copied().collect();
            self.tokenize_part(word, &places, each);
        }
    }

    fn tokenize_part(&self, word: &str, places: &[usize], each: &mut impl FnMut(u32)) {
        let unreached = BestPath {
            score: f64::NEG_INFINITY,
            from: 0,
            token: None,
        };
        let mut ways = vec![unreached; places.len()];
        ways[0].score = 0.0;
        for to in 1..places.len() {
            for from in to.saturating_sub(self.max_token_chars)..to {
                let known = self.vocabulary.get(&word[places[from]..places[to]]);
                let (token, score) = match known {
                    Some(&(id, score)) => (Some(id), score),
                    None if to - from == 1 => (None, self.unknown_score),
                    None => continue,
                };
                let score = ways[from].score + score;
                if score > ways[to].score {
                    ways[to] = BestPath { score, from, token };
                }
            }
        }
        let mut tokens = Vec::new();
        let mut at = places.len() - 1;
        while at > 0 {
            tokens.extend(ways[at].token.filter(|&token| Some(token) != self.unknown));
            at = ways[at].from;
        }
        tokens.into_iter().rev().for_each(each);
    }
}
