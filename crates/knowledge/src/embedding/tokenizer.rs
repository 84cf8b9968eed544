//! How a static model cuts texts: `tokenizer.json`, as far as word pieces and unigrams need it.

use std::collections::HashMap;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::viterbi::Unigrams;

/// What marks the beginning of a word for unigrams.
const WORD_START_MARKER: char = '▁';

/// Cuts texts into numbered tokens.
pub(super) struct Tokenizer {
    normalizer: TextNormalizer,
    model: TokenizerModel,
}

enum TokenizerModel {
    Pieces(WordPieces),
    Unigrams(Unigrams),
}

/// What happens to a text before it is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TextNormalizer {
    lowercase: bool,
    strip_accents: bool,
}

/// Greedy: always the longest piece that is known, from left to right.
struct WordPieces {
    vocabulary: HashMap<String, u32>,
    continuation_prefix: String,
    max_word_chars: usize,
    unknown: Option<u32>,
}

impl Tokenizer {
    /// Why the file is not understood, in words, where it is not.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let model = &file["model"];
        // Old files do not say what they are, but only word pieces have such a prefix.
        let kind = model["type"].as_str().or(model["continuing_subword_prefix"]
            .as_str()
            .map(|_| "WordPiece"));
        let cutter = match kind {
            Some("WordPiece") => TokenizerModel::Pieces(WordPieces::parse(model)?),
            Some("Unigram") => TokenizerModel::Unigrams(Unigrams::parse(model)?),
            Some(other) => {
                return Err(format!(
                    "tokens of the kind {other} are not known; WordPiece and Unigram are"
                ));
            }
            None => return Err("it does not say what kind of tokens it has".to_owned()),
        };
        let mut normaliser = TextNormalizer::default();
        normaliser.add_config(&file["normalizer"]);
        Ok(Self {
            normalizer: normaliser,
            model: cutter,
        })
    }

    /// Hands out the tokens of a text; what is not known is left out.
    pub fn tokenize(&self, text: &str, mut each: impl FnMut(u32)) {
        match &self.model {
            TokenizerModel::Pieces(pieces) => for_each_word(text, self.normalizer, |word| {
                pieces.tokenize_word(word, &mut each)
            }),
            TokenizerModel::Unigrams(unigrams) => {
                let text: String = text
                    .nfkc()
                    .filter(|c| !c.is_control() || c.is_whitespace())
                    .collect();
                let text = if self.normalizer.lowercase {
                    text.to_lowercase()
                } else {
                    text
                };
                for word in text.split_whitespace() {
                    unigrams.tokenize_word(&format!("{WORD_START_MARKER}{word}"), &mut each);
                }
            }
        }
    }
}

impl TextNormalizer {
    /// Normalisers may stand within each other.
    fn add_config(&mut self, described: &Value) {
        match described["type"].as_str() {
            Some("BertNormalizer") => {
                self.lowercase |= described["lowercase"].as_bool().unwrap_or(true);
                // Not saying it means: where letters are made small.
                self.strip_accents |= described["strip_accents"]
                    .as_bool()
                    .unwrap_or(self.lowercase);
            }
            Some("Lowercase") => self.lowercase = true,
            Some("StripAccents") => self.strip_accents = true,
            Some("Sequence") => {
                let parts = described["normalizers"].as_array();
                parts
                    .into_iter()
                    .flatten()
                    .for_each(|part| self.add_config(part));
            }
            _ => {}
        }
    }
}

/// Words and single signs, as models of the BERT family have them.
fn for_each_word(text: &str, normaliser: TextNormalizer, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut finish = |word: &mut String| {
        if !word.is_empty() {
            each(word);
            word.clear();
        }
    };
    let mut add = |c: char| match c {
        _ if c.is_whitespace() => finish(&mut word),
        '\u{0}' | '\u{fffd}' => {}
        _ if c.is_control() => {}
        _ if normaliser.strip_accents && is_combining_mark(c) => {}
        _ if is_punctuation(c) || is_ideograph(c) => {
            finish(&mut word);
            word.push(c);
            finish(&mut word);
        }
        _ if normaliser.lowercase => word.extend(c.to_lowercase()),
        _ => word.push(c),
    };
    if normaliser.strip_accents && !text.is_ascii() {
        text.nfd().for_each(&mut add);
    } else {
        text.chars().for_each(&mut add);
    }
    add(' ');
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || (!c.is_ascii() && !c.is_alphanumeric() && is_general_punctuation(c))
}

fn is_general_punctuation(c: char) -> bool {
    matches!(c, '\u{a1}'..='\u{bf}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}'
        | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

impl WordPieces {
    fn parse(model: &Value) -> Result<Self, String> {
        let entries = model["vocab"]
            .as_object()
            .filter(|vocab| !vocab.is_empty())
            .ok_or("it has no vocabulary")?;
        let number = |(token, id): (&String, &Value)| {
            let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
            id.map(|id| (token.clone(), id))
                .ok_or_else(|| format!("the token {token:?} has no number"))
        };
        let vocabulary = entries
            .iter()
            .map(number)
            .collect::<Result<HashMap<_, _>, _>>()?;
        let unknown = model["unk_token"].as_str().unwrap_or("[UNK]");
        Ok(Self {
            unknown: vocabulary.get(unknown).copied(),
            vocabulary,
            continuation_prefix: model["continuing_subword_prefix"]
                .as_str()
                .unwrap_or("##")
                .to_owned(),
            max_word_chars: model["max_input_chars_per_word"]
                .as_u64()
                .unwrap_or(100)
                .min(1_000) as usize,
        })
    }

    /// All pieces of a word, or none where it cannot be put together.
    fn tokenize_word(&self, word: &str, each: &mut impl FnMut(u32)) {
        if word.chars().count() > self.max_word_chars {
            return;
        }
        let mut pieces = Vec::new();
        let mut rest = word;
        while !rest.is_empty() {
            let Some((id, length)) = self.longest_piece(rest, !pieces.is_empty()) else {
                return;
            };
            pieces.push(id);
            rest = &rest[length..];
        }
        pieces
            .into_iter()
            .filter(|&id| Some(id) != self.unknown)
            .for_each(each);
    }

    fn longest_piece(&self, rest: &str, continues: bool) -> Option<(u32, usize)> {
        let prefix = if continues {
            self.continuation_prefix.as_str()
        } else {
            ""
        };
        let mut candidate = format!("{prefix}{rest}");
        while candidate.len() > prefix.len() {
            if let Some(&id) = self.vocabulary.get(&candidate) {
                return Some((id, candidate.len() - prefix.len()));
            }
            candidate.pop();
        }
        None
    }
}
