//! Unigram tokenization: finds the most likely split of a word with the Viterbi algorithm.

use std::collections::HashMap;

use serde_json::Value;

/// A longer word is split into parts of this many characters first.
const MAX_WORD_LEN: usize = 200;
/// Score difference between the least likely token and an unknown character.
const UNKNOWN_PENALTY: f64 = 10.0;

pub(super) struct Unigrams {
    vocabulary: HashMap<String, (u32, f64)>,
    max_token_chars: usize,
    unknown: Option<u32>,
    unknown_score: f64,
}

/// The best split that ends at a position of the word.
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
            .ok_or("no vocabulary")?;
        let mut vocabulary = HashMap::with_capacity(entries.len());
        for (id, entry) in (0_u32..).zip(entries) {
            let (Some(token), Some(score)) = (entry[0].as_str(), entry[1].as_f64()) else {
                return Err(format!("the token {id} is not a string with a score"));
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

    /// Calls `each` with the tokens of a word, without unknown characters.
    pub fn tokenize_word(&self, word: &str, each: &mut impl FnMut(u32)) {
        let mut ends: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
        ends.push(word.len());
        for part in ends.chunks(MAX_WORD_LEN) {
            // Each part ends where the next one begins.
            let last = ends.get(ends.partition_point(|end| *end <= part[part.len() - 1]));
            let offsets: Vec<usize> = part.iter().chain(last).copied().collect();
            self.tokenize_part(word, &offsets, each);
        }
    }

    fn tokenize_part(&self, word: &str, offsets: &[usize], each: &mut impl FnMut(u32)) {
        let unreached = BestPath {
            score: f64::NEG_INFINITY,
            from: 0,
            token: None,
        };
        let mut paths = vec![unreached; offsets.len()];
        paths[0].score = 0.0;
        for to in 1..offsets.len() {
            for from in to.saturating_sub(self.max_token_chars)..to {
                let known = self.vocabulary.get(&word[offsets[from]..offsets[to]]);
                let (token, score) = match known {
                    Some(&(id, score)) => (Some(id), score),
                    None if to - from == 1 => (None, self.unknown_score),
                    None => continue,
                };
                let score = paths[from].score + score;
                if score > paths[to].score {
                    paths[to] = BestPath { score, from, token };
                }
            }
        }
        let mut tokens = Vec::new();
        let mut at = offsets.len() - 1;
        while at > 0 {
            tokens.extend(paths[at].token.filter(|&token| Some(token) != self.unknown));
            at = paths[at].from;
        }
        tokens.into_iter().rev().for_each(each);
    }
}
