//! The tokenizer of a static model: the parts of `tokenizer.json` that WordPiece and Unigram need.

use std::collections::HashMap;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::viterbi::Unigrams;

/// Marks the start of a word for Unigram models.
const WORD_START_MARKER: char = '▁';

/// Splits texts into token ids.
pub(super) struct Tokenizer {
    normalizer: TextNormalizer,
    model: TokenizerModel,
}

enum TokenizerModel {
    Pieces(WordPieces),
    Unigrams(Unigrams),
}

/// Normalization of a text before tokenization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TextNormalizer {
    lowercase: bool,
    strip_accents: bool,
}

/// A WordPiece model: greedy longest match from left to right.
struct WordPieces {
    vocabulary: HashMap<String, u32>,
    continuation_prefix: String,
    max_word_chars: usize,
    unknown: Option<u32>,
}

impl Tokenizer {
    /// Parses `tokenizer.json`. The error is a text for the user.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let model = &file["model"];
        // Old files have no type, but only WordPiece has such a prefix.
        let kind = model["type"].as_str().or(model["continuing_subword_prefix"]
            .as_str()
            .map(|_| "WordPiece"));
        let model = match kind {
            Some("WordPiece") => TokenizerModel::Pieces(WordPieces::parse(model)?),
            Some("Unigram") => TokenizerModel::Unigrams(Unigrams::parse(model)?),
            Some(other) => {
                return Err(format!(
                    "unsupported tokenizer model {other}; expected WordPiece or Unigram"
                ));
            }
            None => return Err("no type of tokenizer model".to_owned()),
        };
        let mut normalizer = TextNormalizer::default();
        normalizer.add_config(&file["normalizer"]);
        Ok(Self { normalizer, model })
    }

    /// Calls `each` with the tokens of a text, without unknown tokens.
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
    /// Adds the options of a normalizer; normalizers may be nested.
    fn add_config(&mut self, config: &Value) {
        match config["type"].as_str() {
            Some("BertNormalizer") => {
                self.lowercase |= config["lowercase"].as_bool().unwrap_or(true);
                // The default is the value of `lowercase`.
                self.strip_accents |= config["strip_accents"].as_bool().unwrap_or(self.lowercase);
            }
            Some("Lowercase") => self.lowercase = true,
            Some("StripAccents") => self.strip_accents = true,
            Some("Sequence") => {
                let parts = config["normalizers"].as_array();
                parts
                    .into_iter()
                    .flatten()
                    .for_each(|part| self.add_config(part));
            }
            _ => {}
        }
    }
}

/// Calls `each` with every word and punctuation mark, as BERT's pre-tokenizer splits them.
fn for_each_word(text: &str, normalizer: TextNormalizer, mut each: impl FnMut(&str)) {
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
        _ if normalizer.strip_accents && is_combining_mark(c) => {}
        _ if is_punctuation(c) || is_ideograph(c) => {
            finish(&mut word);
            word.push(c);
            finish(&mut word);
        }
        _ if normalizer.lowercase => word.extend(c.to_lowercase()),
        _ => word.push(c),
    };
    if normalizer.strip_accents && !text.is_ascii() {
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
            .ok_or("no vocabulary")?;
        let entry = |(token, id): (&String, &Value)| {
            let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
            id.map(|id| (token.clone(), id))
                .ok_or_else(|| format!("the token {token:?} has no valid id"))
        };
        let vocabulary = entries
            .iter()
            .map(entry)
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

    /// Calls `each` with all pieces of a word, or with none if the word has no complete split.
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
