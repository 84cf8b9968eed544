//! Text normalization: removes compatibility forms, accents and vowel signs that people omit when
//! they type. Capitals stay, because they mark where an identifier can be split.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Returns true for scripts without spaces between words.
pub(super) fn is_unspaced(letter: char) -> bool {
    is_east_asian(letter)
        || matches!(letter,
            '\u{e01}'..='\u{e4e}' | '\u{e81}'..='\u{ecd}' | '\u{1000}'..='\u{103f}' | '\u{1780}'..='\u{17d3}')
}

/// Returns true for Han, Hiragana, Katakana and Hangul.
pub(super) fn is_east_asian(letter: char) -> bool {
    is_canonical_east_asian(letter)
        || matches!(letter,
            '\u{1100}'..='\u{11ff}' | '\u{3005}'..='\u{3007}' | '\u{3031}'..='\u{3035}' | '\u{303b}'
            | '\u{3099}'..='\u{309f}' | '\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
            | '\u{a960}'..='\u{a97c}' | '\u{d7b0}'..='\u{d7fb}' | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{323af}')
}

/// Returns true for the common East Asian letters, which normalization does not change.
fn is_canonical_east_asian(letter: char) -> bool {
    matches!(letter,
        '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30fe}')
}

pub(super) fn normalize(text: &str) -> Cow<'_, str> {
    let is_normalized = |letter: char| {
        letter.is_ascii() || is_canonical_east_asian(letter) || "、。「」".contains(letter)
    };
    if text.chars().all(is_normalized) {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    let mut drops_accents = false;
    for letter in text.nfkd() {
        match letter {
            '\u{300}'..='\u{36f}' if drops_accents => continue,
            '\u{300}'..='\u{36f}' => folded.push(letter),
            _ => {
                drops_accents = is_latin_or_greek(letter);
                fold(letter, &mut folded);
            }
        }
    }
    if folded.is_ascii() {
        Cow::Owned(folded)
    } else {
        Cow::Owned(folded.nfc().collect())
    }
}

/// Returns true for scripts whose accents can be dropped. In other scripts, an accent makes a
/// different letter: й is not и.
fn is_latin_or_greek(letter: char) -> bool {
    letter.is_ascii_alphabetic()
        || matches!(letter, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}')
}

fn fold(letter: char, folded: &mut String) {
    let replacement = match letter {
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'ø' => "o",
        'Ø' => "O",
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'ł' => "l",
        'Ł' => "L",
        'ı' => "i",
        'þ' => "th",
        'Þ' => "Th",
        'ς' => "σ",
        '’' | '‘' | 'ʼ' => "'",
        '\u{2010}' | '\u{2011}' => "-",
        // Alef maksura, teh marbuta, alef wasla, Persian yeh and kaf.
        'ى' | 'ی' => "ي",
        'ة' => "ه",
        'ٱ' => "ا",
        'ک' => "ك",
        // Soft hyphen, zero-width non-joiner and byte order mark; tatweel; Hebrew and Arabic vowel signs.
        '\u{ad}'
        | '\u{200c}'
        | '\u{feff}'
        | '\u{640}'
        | '\u{591}'..='\u{5bd}'
        | '\u{5bf}'
        | '\u{5c1}'
        | '\u{5c2}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' => "",
        _ => return folded.push(ascii_digit(letter).unwrap_or(letter)),
    };
    folded.push_str(replacement);
}

/// Returns the ASCII digit of an Arabic-Indic, Persian or Devanagari digit.
fn ascii_digit(letter: char) -> Option<char> {
    let zero = match letter {
        '\u{660}'..='\u{669}' => 0x660,
        '\u{6f0}'..='\u{6f9}' => 0x6f0,
        '\u{966}'..='\u{96f}' => 0x966,
        _ => return None,
    };
    char::from_digit(u32::from(letter) - zero, 10)
}

/// Removes the Arabic article, which is written together with its word.
pub(super) fn strip_arabic_article(word: &str) -> &str {
    match word.strip_prefix("ال") {
        Some(rest) if rest.chars().nth(2).is_some() => rest,
        _ => word,
    }
}

/// Removes skin tones and variation selectors.
pub(super) fn strip_emoji_modifiers(emoji: &str) -> String {
    emoji
        .chars()
        .filter(|part| !matches!(part, '\u{fe0e}' | '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}'))
        .collect()
}

pub(super) fn is_emoji(letter: char) -> bool {
    matches!(letter,
        '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{1f000}'..='\u{1faff}')
}
