//! Interning of names. Names are compared in a folded form (case, Unicode normalization, spaces) and
//! displayed in their first spelling.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};

use lango_text::suggest;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// Returns the folded form of a name. Equal names have equal folded forms.
pub fn fold(name: &str) -> Cow<'_, str> {
    if is_plain_ascii(name) {
        let has_capitals = name.bytes().any(|byte| byte.is_ascii_uppercase());
        return if has_capitals {
            Cow::Owned(name.to_ascii_lowercase())
        } else {
            Cow::Borrowed(name)
        };
    }
    let lower = name.to_lowercase();
    let lower = match is_nfkc_quick(lower.chars()) {
        IsNormalized::Yes => lower,
        _ => lower.nfkc().collect::<String>().to_lowercase(),
    };
    Cow::Owned(normalize_spaces(&lower).into_owned())
}

/// Returns true for printable ASCII with single spaces between words, which needs no normalization.
fn is_plain_ascii(name: &str) -> bool {
    let mut before = b' ';
    let is_plain = name.bytes().all(|byte| {
        let is_fine = matches!(byte, b'!'..=b'~') || byte == b' ' && before != b' ';
        before = byte;
        is_fine
    });
    is_plain && before != b' '
}

/// Folds a predicate, which also treats spaces, hyphens and underscores as equal.
pub fn fold_predicate(name: &str) -> Cow<'_, str> {
    match fold(name) {
        folded if folded.contains([' ', '-']) => Cow::Owned(folded.replace([' ', '-'], "_")),
        folded => folded,
    }
}

/// Puts a name on one line with single spaces, without terminal control characters.
pub fn normalize_spaces(name: &str) -> Cow<'_, str> {
    if is_plain_ascii(name) {
        return Cow::Borrowed(name);
    }
    let is_odd =
        |c: char| c != ' ' && (c.is_whitespace() || lango_text::sanitize::is_terminal_control(c));
    if !name.contains(is_odd) && !name.contains("  ") && name.trim().len() == name.len() {
        return Cow::Borrowed(name);
    }
    let spaced: String = name
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect();
    Cow::Owned(lango_text::sanitize::one_line(&spaced))
}

/// Strings in one contiguous buffer, addressed by number.
#[derive(Clone, Default)]
struct StringArena {
    all: String,
    ends: Vec<usize>,
}

impl StringArena {
    fn text(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(0);
        self.ends
            .get(number)
            .and_then(|end| self.all.get(start..*end))
            .unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }
}

/// Distinct strings with a hash table from text to number.
#[derive(Clone, Default)]
pub struct StringInterner {
    strings: StringArena,
    /// The number plus one, and the upper half of the text's hash. Zero marks an empty slot.
    slots: Vec<(u32, u32)>,
    hasher: RandomState,
}

impl StringInterner {
    pub fn len(&self) -> usize {
        self.strings.ends.len()
    }

    pub fn text(&self, number: u32) -> &str {
        self.strings.text(number)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|number| self.text(number))
    }

    pub fn find(&self, text: &str) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.probe(text, self.hasher.hash_one(text)).ok()
    }

    /// Returns the number of a text and adds the text if it is new.
    pub fn intern(&mut self, text: &str) -> u32 {
        if self.slots.len() < (self.len() + 1) * 2 {
            self.grow();
        }
        let hash = self.hasher.hash_one(text);
        match self.probe(text, hash) {
            Ok(number) => number,
            Err(slot) => {
                let number = self.len() as u32;
                self.strings.push(text);
                if let Some(slot) = self.slots.get_mut(slot) {
                    *slot = (number + 1, (hash >> 32) as u32);
                }
                number
            }
        }
    }

    /// Returns the number of a text, or the slot to insert it at.
    fn probe(&self, text: &str, hash: u64) -> Result<u32, usize> {
        let (mask, tag) = (self.slots.len() - 1, (hash >> 32) as u32);
        let mut at = hash as usize & mask;
        loop {
            match self.slots.get(at) {
                Some((0, _)) | None => return Err(at),
                Some((number, found)) if *found == tag && self.text(number - 1) == text => {
                    return Ok(number - 1);
                }
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        self.slots = vec![(0, 0); size];
        for number in 0..self.len() as u32 {
            let hash = self.hasher.hash_one(self.text(number));
            let mut at = hash as usize & (size - 1);
            while self.slots.get(at).is_some_and(|slot| slot.0 != 0) {
                at = (at + 1) & (size - 1);
            }
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = (number + 1, (hash >> 32) as u32);
            }
        }
    }
}

/// The folding that decides if two spellings are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldMode {
    Name,
    Predicate,
}

/// Names by their folded form, each with its first spelling.
#[derive(Clone)]
pub struct NameInterner {
    folded: StringInterner,
    display: StringArena,
    fold_mode: FoldMode,
}

impl NameInterner {
    pub fn new(fold_mode: FoldMode) -> Self {
        Self {
            folded: StringInterner::default(),
            display: StringArena::default(),
            fold_mode,
        }
    }

    fn fold<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.fold_mode {
            FoldMode::Name => fold(name),
            FoldMode::Predicate => fold_predicate(name),
        }
    }

    pub fn len(&self) -> usize {
        self.folded.len()
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        self.folded.find(&self.fold(name))
    }

    /// Like [`Self::find`], for a name that is folded already.
    pub fn find_folded(&self, folded: &str) -> Option<u32> {
        self.folded.find(folded)
    }

    pub fn intern(&mut self, name: &str) -> u32 {
        let known = self.len();
        let number = match self.fold_mode {
            FoldMode::Name => self.folded.intern(&fold(name)),
            FoldMode::Predicate => self.folded.intern(&fold_predicate(name)),
        };
        if number as usize == known {
            self.display.push(name);
        }
        number
    }

    pub fn display_name(&self, number: u32) -> &str {
        self.display.text(number)
    }

    /// Returns similar names, best match first, for a "did you mean" hint.
    pub fn similar(&self, name: &str) -> Vec<&str> {
        let folded = self.fold(name);
        let (letters, length) = (letter_mask(&folded), folded.chars().count());
        let could_be = |number: &u32| {
            let other = self.folded.text(*number);
            if other.starts_with(&*folded) || folded.starts_with(other) {
                return true;
            }
            // A difference of one letter changes at most two bits of the mask.
            let max_edits = (length.max(other.len()) * 3).div_ceil(10);
            let differing = (letters ^ letter_mask(other)).count_ones() as usize;
            other.len() <= folded.len() * 2 + 4 && differing <= max_edits * 2
        };
        let candidates = (0..self.len() as u32)
            .filter(could_be)
            .map(|number| self.display_name(number));
        suggest::nearest(&folded, candidates)
    }
}

/// Returns a bit mask of the letters in a text; several letters may share a bit.
fn letter_mask(text: &str) -> u64 {
    let letters = text.chars().filter(|c| !matches!(c, ' ' | '-' | '_'));
    letters.fold(0, |all, letter| all | 1 << (u32::from(letter) % 61))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_spellings_of_one_name() {
        for (one, other) in [
            ("Berlin", "BERLIN"),
            ("  New \t York ", "new york"),
            ("Zu\u{308}rich", "ZÜRICH"),
            ("ｔｏｋｙｏ", "Tokyo"),
            ("가", "\u{1100}\u{1161}"),
            ("ΟΔΟΣ", "οδος"),
        ] {
            let (one, other) = (fold(one), fold(other));
            assert_eq!(one.replace('ς', "σ"), other.replace('ς', "σ"));
        }
        assert_ne!(
            fold("Zürich"),
            fold("Zurich"),
            "a different letter makes a different name"
        );
        assert_eq!(fold_predicate("Capital-Of"), fold_predicate("capital of"));
    }

    #[test]
    fn numbers_stay_stable_while_the_table_grows() {
        let mut texts = StringInterner::default();
        assert_eq!(texts.find("a"), None);
        let numbers: Vec<u32> = (0..5_000)
            .map(|n| texts.intern(&format!("name {n}")))
            .collect();
        assert_eq!(numbers, (0..5_000).collect::<Vec<_>>());
        assert_eq!(texts.find("name 4321"), Some(4_321));
        assert_eq!(texts.intern("name 17"), 17);
        assert_eq!(texts.intern(""), 5_000);
        assert_eq!(
            (texts.text(5_000), texts.text(0), texts.text(9_999)),
            ("", "name 0", "")
        );
    }

    #[test]
    fn displays_the_first_spelling_and_suggests_similar_names() {
        let mut names = NameInterner::new(FoldMode::Name);
        for name in ["Berlin", "BERLIN", "Hamburg", "서울특별시", "Österreich"] {
            names.intern(name);
        }
        assert_eq!((names.len(), names.display_name(0)), (4, "Berlin"));
        assert_eq!(names.similar("Brelin"), ["Berlin"]);
        assert_eq!(names.similar("서울"), ["서울특별시"]);
        assert_eq!(names.similar("Osterreich"), ["Österreich"]);
        assert!(names.similar("xyz").is_empty());
    }
}
