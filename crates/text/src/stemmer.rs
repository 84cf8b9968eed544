//! Stemming. A text is stemmed in its own language; a query is too short to detect one, so it uses
//! the stems of all languages (`all_stems`).

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

use crate::fingerprint;

/// Longer sequences of letters are not words.
const MAX_WORD_LEN: usize = 40;
/// Bytes of a text that are used to detect its language.
const SAMPLE_BYTES: usize = 1_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    English,
    German,
    /// Another language in Latin letters: only common endings of plurals and genders are removed.
    Other,
}

const LANGUAGES: [Language; 3] = [Language::English, Language::German, Language::Other];

/// Function words that identify a language, sorted, without those that several languages share.
const ENGLISH: [u64; 20] = pack_words([
    "are", "but", "can", "does", "for", "from", "had", "has", "have", "how", "is", "it", "not",
    "of", "that", "the", "their", "this", "to", "with",
]);
const GERMAN: [u64; 36] = pack_words([
    "aber", "auch", "auf", "aus", "bei", "das", "dass", "dem", "den", "der", "die", "ein", "eine",
    "einem", "einen", "einer", "fur", "hat", "ich", "im", "ist", "kann", "mit", "nach", "nicht",
    "oder", "sich", "sie", "sind", "um", "und", "vom", "von", "werden", "wird", "zum",
]);
const OTHER: [u64; 41] = pack_words([
    "aos", "avec", "che", "com", "con", "dans", "de", "degli", "dei", "del", "della", "di", "een",
    "el", "en", "est", "et", "gli", "het", "il", "la", "las", "le", "les", "los", "nao", "non",
    "os", "ou", "para", "pas", "per", "por", "pour", "que", "qui", "sont", "sul", "sur", "une",
    "van",
]);
/// The length of the longest function word.
const MAX_FUNCTION_WORD_LEN: usize = 6;

/// Packs words into integers of the same order, which compare faster: every word of every text is
/// looked up.
const fn pack_words<const COUNT: usize>(words: [&str; COUNT]) -> [u64; COUNT] {
    let mut numbers = [0; COUNT];
    let mut at = 0;
    while at < COUNT {
        numbers[at] = pack_word(words[at].as_bytes());
        at += 1;
    }
    numbers
}

/// Packs a word of at most eight ASCII letters, the first one in the highest byte.
const fn pack_word(word: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let mut at = 0;
    while at < word.len() {
        bytes[at] = word[at].to_ascii_lowercase();
        at += 1;
    }
    u64::from_be_bytes(bytes)
}

/// Words that occur in nearly every English text. They are dropped from queries, but indexed.
const STOP_WORDS: [&str; 68] = [
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in",
    "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "should", "so", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "was", "we",
    "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with",
    "would", "you", "your", "yours",
];

pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Detects the language of a text. Returns English if there is no evidence, as in headings and
/// source code.
pub fn detect_language(text: &str) -> Language {
    let (mut english, mut german, mut other) = (0, 0, 0);
    let sample = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
    let mut count = |word: &str| match detect_word_language(word) {
        Some(Language::English) => english += 1,
        Some(Language::German) => german += 1,
        Some(Language::Other) => other += 1,
        None => {}
    };
    if sample.is_ascii() {
        sample
            .split(|letter: char| !letter.is_ascii_alphabetic())
            .for_each(&mut count);
    } else {
        sample
            .split(|letter: char| !letter.is_alphabetic() && letter != '\u{308}')
            .for_each(&mut count);
    }
    match () {
        () if german > english && german >= other => Language::German,
        () if other > english => Language::Other,
        () => Language::English,
    }
}

fn detect_word_language(word: &str) -> Option<Language> {
    if !word.is_ascii() {
        let is_german = word
            .nfc()
            .any(|letter| matches!(letter, 'ä' | 'ö' | 'ü' | 'Ä' | 'Ö' | 'Ü' | 'ß'));
        return is_german.then_some(Language::German);
    }
    if !(2..=MAX_FUNCTION_WORD_LEN).contains(&word.len()) {
        return None;
    }
    let packed = pack_word(word.as_bytes());
    let contains = |words: &[u64]| words.binary_search(&packed).is_ok();
    match () {
        () if contains(&ENGLISH) => Some(Language::English),
        () if contains(&GERMAN) => Some(Language::German),
        () if contains(&OTHER) => Some(Language::Other),
        () => None,
    }
}

/// Returns the stem of a word. Anything but a word in lower-case ASCII letters stays unchanged.
pub(super) fn stem(word: &str, language: Language) -> Cow<'_, str> {
    match language {
        _ if !is_word(word) => Cow::Borrowed(word),
        Language::English => Stemmer::new(Algorithm::English).stem(word),
        Language::German => stem_german(word),
        Language::Other => Cow::Borrowed(stem_romance(word)),
    }
}

fn is_word(word: &str) -> bool {
    (3..=MAX_WORD_LEN).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// A cache of stems: most words of a text are among a few thousand. Each word has one slot, which
/// it shares with other words.
#[derive(Clone, Debug, Default)]
pub(super) struct StemCache {
    slots: Vec<CachedStem>,
}

#[derive(Clone, Debug, Default)]
struct CachedStem {
    language: Option<Language>,
    word: String,
    stem: String,
}

impl StemCache {
    const SLOTS: usize = 1 << 14;

    pub fn stem<'a>(&'a mut self, word: &'a str, language: Language) -> &'a str {
        if !is_word(word) {
            return word;
        }
        if self.slots.is_empty() {
            self.slots.resize(Self::SLOTS, CachedStem::default());
        }
        let slot = &mut self.slots[fingerprint(word.as_bytes()) as usize % Self::SLOTS];
        if slot.word != word || slot.language != Some(language) {
            slot.language = Some(language);
            slot.word.clear();
            slot.word.push_str(word);
            slot.stem.clear();
            slot.stem.push_str(&stem(word, language));
        }
        &slot.stem
    }
}

/// Returns the stems of a word in all languages.
pub(super) fn all_stems(word: &str) -> Vec<String> {
    let mut stems: Vec<String> = Vec::with_capacity(LANGUAGES.len());
    for language in LANGUAGES {
        let stem = stem(word, language);
        if !stems.iter().any(|known| *known == stem) {
            stems.push(stem.into_owned());
        }
    }
    stems
}

/// Removes endings of cases and plurals. Umlauts were folded before; `ae`, `oe` and `ue` are folded
/// the same way.
fn stem_german(word: &str) -> Cow<'_, str> {
    let is_spelled_out = ["ae", "oe", "ue"].iter().any(|pair| word.contains(pair));
    if is_spelled_out {
        return Cow::Owned(strip_german_ending(&fold_spelled_umlauts(word)).to_owned());
    }
    Cow::Borrowed(strip_german_ending(word))
}

fn fold_spelled_umlauts(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    let mut previous = ' ';
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        folded.push(letter);
        let can_be_umlaut =
            matches!(letter, 'a' | 'o' | 'u') && !matches!(previous, 'a' | 'e' | 'q');
        if can_be_umlaut && letters.peek() == Some(&'e') {
            letters.next();
        }
        previous = letter;
    }
    folded
}

fn strip_german_ending(word: &str) -> &str {
    let word = match word.strip_suffix('s') {
        Some(rest) if rest.len() >= 3 && !rest.ends_with(['e', 's', 'u']) => rest,
        _ => word,
    };
    let stripped = |ending: &&str| word.strip_suffix(*ending).filter(|rest| rest.len() >= 3);
    let rest = ["ern", "em", "en", "er", "es", "e"]
        .iter()
        .find_map(stripped);
    let rest = rest.or_else(|| {
        word.strip_suffix('n')
            .filter(|rest| rest.len() >= 4 && rest.ends_with(['l', 'r']))
    });
    let rest = rest.unwrap_or(word);
    if rest.ends_with("inn") {
        &rest[..rest.len() - 1]
    } else {
        rest
    }
}

/// Removes the plural -s and the vowel of gender or number.
fn stem_romance(word: &str) -> &str {
    let singular = match word.strip_suffix('s') {
        Some(rest) if rest.len() >= 3 && !rest.ends_with('s') => rest,
        _ => word,
    };
    match singular.strip_suffix(['a', 'e', 'i', 'o']) {
        Some(rest) if rest.len() >= 4 => rest,
        _ => singular,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(ENGLISH.is_sorted() && GERMAN.is_sorted() && OTHER.is_sorted());
    }

    #[test]
    fn detects_languages_by_function_words() {
        assert_eq!(
            detect_language("The agent is asked to plan."),
            Language::English
        );
        assert_eq!(
            detect_language("Der Agent wird gebeten, die Aufgabe zu planen."),
            Language::German
        );
        assert_eq!(
            detect_language("Les agents sont dans le jardin avec une table."),
            Language::Other
        );
        assert_eq!(detect_language("Häuserzeile"), Language::German);
        assert_eq!(detect_language("Neural networks"), Language::English);
    }

    #[test]
    fn cached_stems_match_computed_stems() {
        let mut cache = StemCache::default();
        let words: Vec<String> = (0..40_000_u32)
            .map(|number| {
                let letter = |at: u32| char::from(b'a' + (number / 26_u32.pow(at) % 26) as u8);
                format!("{}{}{}{}ings", letter(0), letter(1), letter(2), letter(3))
            })
            .collect();
        for word in words
            .iter()
            .chain(&words)
            .map(String::as_str)
            .chain(["naïve", "x9", "은행", ""])
        {
            for language in LANGUAGES {
                assert_eq!(cache.stem(word, language), stem(word, language));
            }
        }
    }

    #[test]
    fn removes_german_endings() {
        for words in [
            &["haus", "hauses", "hause", "hauser", "hausern"][..],
            &["kind", "kinder", "kindern", "kindes"],
            &["strasse", "strassen"],
            &["regel", "regeln"],
            &["freundin", "freundinnen"],
            &["muller", "mueller"],
            &["auto", "autos"],
        ] {
            let stems: Vec<_> = words
                .iter()
                .map(|word| stem(word, Language::German))
                .collect();
            assert!(
                stems.iter().all(|stem| *stem == stems[0]),
                "{words:?} became {stems:?}"
            );
        }
    }
}
