//! Words in a form that compares.

use unicode_normalization::UnicodeNormalization;

/// Splits a text into words in lower case, without accents and apostrophes.
pub fn normalize_words(text: &str) -> Vec<String> {
    let folded: String = text
        .nfkd()
        .filter(|c| !matches!(c, '\'' | '’' | '\u{300}'..='\u{36f}'))
        .flat_map(char::to_lowercase)
        .nfc()
        .collect::<String>()
        .replace('ß', "ss");
    folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
