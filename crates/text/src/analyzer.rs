//! The analyzer: splits texts and queries into terms.

use unicode_segmentation::UnicodeSegmentation;

use super::normalize::{
    is_east_asian, is_emoji, is_unspaced, normalize, strip_arabic_article, strip_emoji_modifiers,
};
use super::stemmer::{Language, StemCache, all_stems, detect_language, is_stop_word};

/// Longer terms are truncated to this many characters.
const MAX_TERM_LEN: usize = 200;
/// A camelCase word with shorter parts on average is a name (LaTeX) or encoded data.
const MIN_PART_LEN: usize = 3;
/// Limits for a query, in bytes and in words.
const MAX_QUERY_LEN: usize = 20_000;
const MAX_QUERY_WORDS: usize = 256;

/// Returns the terms of a text, in order.
pub fn analyze(text: &str) -> Vec<String> {
    let mut terms = TermBuffer::default();
    terms.push_text(text, 1, detect_language(text));
    terms.iter().map(str::to_owned).collect()
}

/// Returns, for each distinct word of a query, the terms that match it in a text.
pub fn analyze_query(query: &str) -> Vec<Vec<String>> {
    let mut words: Vec<(bool, Vec<String>)> = Vec::new();
    let query = &query[..query.floor_char_boundary(MAX_QUERY_LEN)];
    scan(query, &mut |scanned| {
        let (is_frequent, terms) = match scanned {
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

/// The terms of texts in one allocation: indexing reads millions of them.
#[derive(Clone, Debug, Default)]
pub struct TermBuffer {
    text: String,
    ends: Vec<usize>,
    stems: StemCache,
}

impl TermBuffer {
    /// Adds the terms of a text in a language, each of them `times` times.
    pub fn push_text(&mut self, text: &str, times: usize, language: Language) {
        scan(text, &mut |scanned| {
            let (ScannedWord::Word(word) | ScannedWord::Whole(word) | ScannedWord::Letter(word)) =
                scanned;
            let term = match scanned {
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
    /// A word in lower case, not stemmed.
    Word(&'a str),
    /// A pair of letters or an emoji, which is not stemmed.
    Whole(&'a str),
    /// One letter of a longer run. Indexed for texts; queries use the pairs, which are more specific.
    Letter(&'a str),
}

fn scan(text: &str, emit: &mut impl FnMut(ScannedWord<'_>)) {
    let mut lower = String::new();
    for piece in text.split_whitespace() {
        // The fast path for most words: nothing to normalize or to split.
        if piece
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
            emit(ScannedWord::Word(truncate(piece)));
        } else if piece.is_ascii() {
            scan_piece(piece, &mut lower, emit);
        } else {
            scan_piece(&normalize(piece), &mut lower, emit);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanUnit {
    Word,
    /// A character that may join the parts of an identifier.
    Join,
    Unspaced,
    Emoji,
    Other,
}

/// Splits a text without spaces into units and joins the parts of identifiers.
fn scan_piece(piece: &str, lower: &mut String, emit: &mut impl FnMut(ScannedWord<'_>)) {
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
        let continues = match unit {
            ScanUnit::Word => matches!(last, ScanUnit::Word | ScanUnit::Join) && end > start,
            ScanUnit::Join => {
                last == ScanUnit::Word || (last == ScanUnit::Join && rest.starts_with('_'))
            }
            ScanUnit::Unspaced | ScanUnit::Emoji | ScanUnit::Other => false,
        };
        if !continues {
            scan_compound(&piece[start..end], lower, emit);
            (start, end) = (at, at);
        }
        match unit {
            ScanUnit::Word => end = at + length,
            ScanUnit::Unspaced => scan_unspaced(&rest[..length], emit),
            ScanUnit::Emoji => emit(ScannedWord::Whole(&strip_emoji_modifiers(&rest[..length]))),
            ScanUnit::Join | ScanUnit::Other => {}
        }
        last = if unit == ScanUnit::Join && !continues {
            ScanUnit::Other
        } else {
            unit
        };
        at += length;
    }
    scan_compound(&piece[start..end], lower, emit);
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

/// Returns the next Unicode word (UAX 29), which unspaced scripts and joining characters end as
/// well.
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

/// Emits pairs of adjacent letters, because nothing marks where words begin, and single East Asian
/// letters, because one of them can be a word.
fn scan_unspaced(run: &str, emit: &mut impl FnMut(ScannedWord<'_>)) {
    let starts: Vec<usize> = run
        .char_indices()
        .map(|(at, _)| at)
        .chain([run.len()])
        .collect();
    if let [_, _] = starts[..] {
        return emit(ScannedWord::Whole(run));
    }
    for pair in starts.windows(3) {
        if let [first, _, end] = *pair {
            emit(ScannedWord::Whole(&run[first..end]));
        }
    }
    for (at, letter) in run.char_indices() {
        let is_particle = matches!(letter, '\u{3041}'..='\u{309f}');
        if is_east_asian(letter) && !is_particle {
            emit(ScannedWord::Letter(&run[at..at + letter.len_utf8()]));
        }
    }
}

/// Emits an identifier as a whole, independent of its spelling (`remote_agents`, `remoteAgents`,
/// `remote-agents`), and each of its words.
fn scan_compound(text: &str, lower: &mut String, emit: &mut impl FnMut(ScannedWord<'_>)) {
    let text = text
        .strip_suffix("'s")
        .or_else(|| text.strip_suffix("'S"))
        .unwrap_or(text);
    if text.is_empty() {
        return;
    }
    let is_one_word = !text.contains(is_join);
    if is_one_word && !has_inner_capital(text) {
        return emit_word(text, lower, emit);
    }
    if is_one_word || text.chars().nth(MAX_TERM_LEN).is_none() {
        let is_number = !text.contains(char::is_alphabetic);
        lowercase_into(
            text.chars().filter(|letter| is_number || !is_join(*letter)),
            lower,
        );
        emit(ScannedWord::Word(truncate(lower)));
    }
    for part in text.split(is_join).filter(|part| !part.is_empty()) {
        if !is_one_word {
            emit_word(part, lower, emit);
        }
        let starts = camel_case_starts(part);
        let ends = starts.iter().copied().skip(1).chain([part.len()]);
        for (start, end) in starts.iter().copied().zip(ends) {
            emit_word(&part[start..end], lower, emit);
        }
    }
}

fn has_inner_capital(text: &str) -> bool {
    text.chars().skip(1).any(char::is_uppercase) && text.chars().any(char::is_lowercase)
}

/// Returns the offsets at which the words of a camelCase word start; none if it is not to be
/// split.
fn camel_case_starts(part: &str) -> Vec<usize> {
    let mut starts = vec![0];
    let mut previous = None;
    let mut letters = part.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let ends_capitals = letters.peek().is_some_and(|(_, next)| next.is_lowercase());
        let is_start =
            previous.is_some_and(|previous: char| !previous.is_uppercase() || ends_capitals);
        if letter.is_uppercase() && is_start {
            starts.push(at);
        }
        previous = Some(letter);
    }
    let is_split =
        starts.len() > 1 && part.len() <= MAX_TERM_LEN && part.len() / starts.len() >= MIN_PART_LEN;
    if is_split { starts } else { Vec::new() }
}

fn emit_word(text: &str, lower: &mut String, emit: &mut impl FnMut(ScannedWord<'_>)) {
    lowercase_into(text.chars(), lower);
    emit(ScannedWord::Word(strip_arabic_article(truncate(lower))));
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
