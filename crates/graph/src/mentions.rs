//! Finds names of the graph in running text of any script.

use unicode_segmentation::UnicodeSegmentation;

use super::interner::fold;
use super::snapshot::GraphSnapshot;

/// Longest name to search for, in words.
const MAX_WORDS: usize = 8;
/// Most names returned for one text.
const MAX_NAMES: usize = 64;
/// Most Korean particle syllables that may follow a name.
const MAX_PARTICLES: usize = 3;

impl GraphSnapshot {
    /// Returns the names that occur in a text, each once and in order. Where several names begin at
    /// the same word, the longest one counts.
    pub fn find_entities(&self, text: &str) -> Vec<u32> {
        if self.facts().is_empty() {
            return Vec::new();
        }
        let text = fold(text);
        let words: Vec<(usize, usize)> = text
            .unicode_word_indices()
            .map(|(at, word)| (at, at + word.len()))
            .collect();
        let (mut found, mut at) = (Vec::new(), 0);
        while at < words.len() && found.len() < MAX_NAMES {
            let last = (at + MAX_WORDS).min(words.len());
            let longest = (at..last).rev().find_map(|end| {
                let name = text.get(words[at].0..words[end].1)?;
                self.find_mention(name).map(|number| (number, end))
            });
            match longest {
                Some((number, end)) => {
                    if !found.contains(&number) {
                        found.push(number);
                    }
                    at = end + 1;
                }
                None => at += 1,
            }
        }
        found
    }

    /// Looks the text up as it is, then without a possessive `'s`, then without Korean particles.
    fn find_mention(&self, folded: &str) -> Option<u32> {
        if !is_name_candidate(folded) {
            return None;
        }
        let whole = self.names.find_folded(folded);
        let possessor = || {
            self.names.find_folded(
                folded
                    .strip_suffix("'s")
                    .or_else(|| folded.strip_suffix("’s"))?,
            )
        };
        let stem = || {
            let mut stems = folded.char_indices().rev().take(MAX_PARTICLES);
            stems
                .by_ref()
                .take_while(|(_, c)| is_hangul(*c))
                .find_map(|(at, _)| {
                    let stem = folded
                        .get(..at)
                        .filter(|stem| is_name_candidate(stem) && stem.ends_with(is_hangul))?;
                    self.names.find_folded(stem)
                })
        };
        whole.or_else(possessor).or_else(stem)
    }
}

fn is_hangul(c: char) -> bool {
    ('\u{ac00}'..='\u{d7a3}').contains(&c)
}

/// Rejects numbers and very short words, which occur in almost every text.
fn is_name_candidate(folded: &str) -> bool {
    let shortest = if folded.is_ascii() { 3 } else { 2 };
    folded.chars().nth(shortest - 1).is_some() && folded.contains(char::is_alphabetic)
}
