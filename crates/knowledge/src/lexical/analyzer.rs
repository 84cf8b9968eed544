//! What counts as a word, for texts and for queries alike.

use unicode_segmentation::UnicodeSegmentation;

use super::normalize::{
    is_east_asian, is_emoji, is_unspaced, normalize, strip_arabic_article, strip_emoji_modifiers,
};
use super::stemmer::{Language, StemCache, all_stems, detect_language, is_stop_word};

/// Identifiers are kept up to this many characters; what is longer is cut.
const MAX_TERM_LEN: usize = 200;
/// A run of capitals and small letters with shorter parts than this is a name (LaTeX) or an encoded blob.
const MIN_PART_LEN: usize = 3;
/// So much of a query is read, and so many of its words are looked up.
const MAX_QUERY_LEN: usize = 20_000;
const MAX_QUERY_WORDS: usize = 256;

/// The terms under which a text is found, in their order.
pub fn analyze(text: &str) -> Vec<String> {
    let mut terms = TermBuffer::default();
    terms.push_text(text, 1, detect_language(text));
    terms.iter().map(str::to_owned).collect()
}

/// One for each different word of a query: the terms that may stand for it in a text.
pub fn analyze_query(query: &str) -> Vec<Vec<String>> {
    let mut words: Vec<(bool, Vec<String>)> = Vec::new();
    let query = &query[..query.floor_char_boundary(MAX_QUERY_LEN)];
    scan(query, &mut |found| {
        let (is_frequent, terms) = match found {
            ScannedWord::Word(word) => (is_stop_word(word), all_stems(word)),
            ScannedWord::Whole(term) => (false, vec![term.to_owned()]),
            ScannedWord::Letter(_) => return,
        };
        if words.len() < MAX_QUERY_WORDS && !words.iter().any(|(_, known)| *known == terms) {
            words.push((is_frequent, terms));
        }
    });
    if words.iter().any(|(is_frequent, _)| !is_frequent) {
        words.retain(|(is_frequent, _)| !is_frequent);
    }
    words.into_iter().map(|(_, terms)| terms).collect()
}

/// The terms of texts in one piece of memory: indexing reads millions of them.
#[derive(Clone, Debug, Default)]
pub(super) struct TermBuffer {
    text: String,
    ends: Vec<usize>,
    stems: StemCache,
}

impl TermBuffer {
    /// Adds the terms of a text in a language, so many times over.
    pub fn push_text(&mut self, text: &str, times: usize, language: Language) {
        scan(text, &mut |found| {
            let (ScannedWord::Word(word) | ScannedWord::Whole(word) | ScannedWord::Letter(word)) =
                found;
            let term = match found {
                ScannedWord::Word(word) => self.stems.stem(word, language),
                ScannedWord::Whole(_) | ScannedWord::Letter(_) => word,
            };
            for _ in 0..times {
                self.text.push_str(term);
                self.ends.push(self.text.len());
            }
        });
    }

    pub fn get(&self, at: usize) -> Option<&str> {
        let start = if at == 0 { 0 } else { *self.ends.get(at - 1)? };
        self.text.get(start..*self.ends.get(at)?)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).filter_map(|at| self.get(at))
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

enum ScannedWord<'a> {
    /// In small letters, with its ending.
    Word(&'a str),
    /// A pair of letters, or an emoji: has no ending.
    Whole(&'a str),
    /// One letter of a longer run. Texts are found by it; a query has the pairs, which say more.
    Letter(&'a str),
}

fn scan(text: &str, found: &mut impl FnMut(ScannedWord<'_>)) {
    let mut lower = String::new();
    for piece in text.split_whitespace() {
        // Most words: nothing to take off, to fold or to split.
        if piece
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            found(ScannedWord::Word(truncate(piece)));
        } else if piece.is_ascii() {
            scan_piece(piece, &mut lower, found);
        } else {
            scan_piece(&normalize(piece), &mut lower, found);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanUnit {
    Word,
    /// What may stand inside an identifier.
    Join,
    Unspaced,
    Emoji,
    Other,
}

/// Words that are joined without a space stay together until it is clear where they end.
fn scan_piece(piece: &str, lower: &mut String, found: &mut impl FnMut(ScannedWord<'_>)) {
    let is_ascii = piece.is_ascii();
    let (mut at, mut start, mut end) = (0, 0, 0);
    let mut last = ScanUnit::Other;
    while at < piece.len() {
        let rest = &piece[at..];
        let (unit, length) = if is_ascii {
            next_ascii_unit(rest)
        } else {
            next_unit(rest)
        };
        let goes_on = match unit {
            ScanUnit::Word => matches!(last, ScanUnit::Word | ScanUnit::Join) && end > start,
            ScanUnit::Join => {
                last == ScanUnit::Word || (last == ScanUnit::Join && rest.starts_with('_'))
            }
            ScanUnit::Unspaced | ScanUnit::Emoji | ScanUnit::Other => false,
        };
        if !goes_on {
            scan_compound(&piece[start..end], lower, found);
            (start, end) = (at, at);
        }
        match unit {
            ScanUnit::Word => end = at + length,
            ScanUnit::Unspaced => scan_unspaced(&rest[..length], found),
            ScanUnit::Emoji => found(ScannedWord::Whole(&strip_emoji_modifiers(&rest[..length]))),
            ScanUnit::Join | ScanUnit::Other => {}
        }
        last = if unit == ScanUnit::Join && !goes_on {
            ScanUnit::Other
        } else {
            unit
        };
        at += length;
    }
    scan_compound(&piece[start..end], lower, found);
}

fn is_join(letter: char) -> bool {
    matches!(letter, '_' | '.' | '-' | '\'' | ':')
}

fn next_ascii_unit(rest: &str) -> (ScanUnit, usize) {
    let bytes = rest.as_bytes();
    let letters = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .count();
    match bytes {
        _ if letters > 0 => (ScanUnit::Word, letters),
        [b':', b':', ..] => (ScanUnit::Join, 2),
        [b'_' | b'.' | b'-' | b'\'', ..] => (ScanUnit::Join, 1),
        _ => (ScanUnit::Other, 1),
    }
}

/// The words of Unicode (UAX 29), except that a script without spaces and what joins identifiers end one as well.
fn next_unit(rest: &str) -> (ScanUnit, usize) {
    let run = rest
        .find(|letter| !is_unspaced(letter))
        .unwrap_or(rest.len());
    if run > 0 {
        return (ScanUnit::Unspaced, run);
    }
    if rest.starts_with(is_join) {
        return next_ascii_unit(rest);
    }
    let word = rest.split_word_bounds().next().unwrap_or(rest);
    let word = &word[..word
        .find(|letter| is_join(letter) || is_unspaced(letter))
        .unwrap_or(word.len())];
    let unit = match () {
        () if word.contains(char::is_alphanumeric) => ScanUnit::Word,
        () if word.contains(is_emoji) => ScanUnit::Emoji,
        () => ScanUnit::Other,
    };
    (unit, word.len())
}

/// Pairs of neighbouring letters, since nothing else tells where words begin; East Asian letters alone, too, because
/// one of them can be a word.
fn scan_unspaced(run: &str, found: &mut impl FnMut(ScannedWord<'_>)) {
    let starts: Vec<usize> = run
        .char_indices()
        .map(|(at, _)| at)
        .chain([run.len()])
        .collect();
    if let [_, _] = starts[..] {
        return found(ScannedWord::Whole(run));
    }
    for pair in starts.windows(3) {
        if let [first, _, end] = *pair {
            found(ScannedWord::Whole(&run[first..end]));
        }
    }
    for (at, letter) in run.char_indices() {
        let is_particle = matches!(letter, '\u{3041}'..='\u{309f}');
        if is_east_asian(letter) && !is_particle {
            found(ScannedWord::Letter(&run[at..at + letter.len_utf8()]));
        }
    }
}

/// An identifier is found as a whole, however it is written (`remote_agents`, `remoteAgents`, `remote-agents`), and by
/// each of its words.
fn scan_compound(text: &str, lower: &mut String, found: &mut impl FnMut(ScannedWord<'_>)) {
    let text = text
        .strip_suffix("'s")
        .or_else(|| text.strip_suffix("'S"))
        .unwrap_or(text);
    if text.is_empty() {
        return;
    }
    let is_one_word = !text.contains(is_join);
    if is_one_word && !has_inner_capital(text) {
        return emit_word(text, lower, found);
    }
    if is_one_word || text.chars().nth(MAX_TERM_LEN).is_none() {
        let is_number = !text.contains(char::is_alphabetic);
        lowercase_into(
            text.chars().filter(|letter| is_number || !is_join(*letter)),
            lower,
        );
        found(ScannedWord::Word(truncate(lower)));
    }
    for part in text.split(is_join).filter(|part| !part.is_empty()) {
        if !is_one_word {
            emit_word(part, lower, found);
        }
        let starts = camel_case_starts(part);
        let ends = starts.iter().copied().skip(1).chain([part.len()]);
        for (start, end) in starts.iter().copied().zip(ends) {
            emit_word(&part[start..end], lower, found);
        }
    }
}

fn has_inner_capital(text: &str) -> bool {
    text.chars().skip(1).any(char::is_uppercase) && text.chars().any(char::is_lowercase)
}

/// Where the words of a camelCase one begin; none when it is not worth splitting.
fn camel_case_starts(part: &str) -> Vec<usize> {
    let mut starts = vec![0];
    let mut before = None;
    let mut letters = part.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let ends_capitals = letters.peek().is_some_and(|(_, next)| next.is_lowercase());
        let begins = before.is_some_and(|before: char| !before.is_uppercase() || ends_capitals);
        if letter.is_uppercase() && begins {
            starts.push(at);
        }
        before = Some(letter);
    }
    let is_split =
        starts.len() > 1 && part.len() <= MAX_TERM_LEN && part.len() / starts.len() >= MIN_PART_LEN;
    if is_split { starts } else { Vec::new() }
}

fn emit_word(text: &str, lower: &mut String, found: &mut impl FnMut(ScannedWord<'_>)) {
    lowercase_into(text.chars(), lower);
    found(ScannedWord::Word(strip_arabic_article(truncate(lower))));
}

fn lowercase_into(letters: impl Iterator<Item = char>, lower: &mut String) {
    lower.clear();
    for letter in letters {
        if letter.is_ascii() {
            lower.push(letter.to_ascii_lowercase());
        } else {
            lower.extend(letter.to_lowercase());
        }
    }
}

fn truncate(word: &str) -> &str {
    if word.len() <= MAX_TERM_LEN {
        return word;
    }
    match word.char_indices().nth(MAX_TERM_LEN) {
        Some((end, _)) => &word[..end],
        None => word,
    }
}
