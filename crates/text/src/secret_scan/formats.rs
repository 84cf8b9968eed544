//! Detects secrets by their format.

use std::ops::Range;

use super::SecretKind;

/// Key prefixes of well-known providers, with the minimum number of characters that follow.
const KEY_PREFIXES: [(&str, usize); 28] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("whsec_", 16),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xapp-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 16),
    ("hf_", 24),
    ("npm_", 30),
    ("pypi-", 20),
    ("gsk_", 20),
    ("xai-", 20),
    ("SG.", 30),
    ("dop_v1_", 30),
    ("AGE-SECRET-KEY-1", 20),
];

/// Minimum length of a run of mixed letters and digits that may be a key.
const MIN_RANDOM_RUN_LEN: usize = 32;
/// Entropy in bits per character above which a run is random.
const MIN_ENTROPY: f64 = 4.2;
/// Number of digits of a payment card.
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

pub(super) fn find(text: &str) -> Option<SecretKind> {
    if has_private_key(text) {
        return Some(SecretKind::PrivateKey);
    }
    if !card_numbers(text).is_empty() {
        return Some(SecretKind::CardNumber);
    }
    split_words(text).find_map(|(_, word)| classify_word(word, text))
}

pub(super) fn has_private_key(text: &str) -> bool {
    text.contains("-----BEGIN ") && text.contains("PRIVATE KEY")
}

/// Splits a text into words, each with its byte offset.
pub(super) fn split_words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_separator = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')' | ',' | ';')
    };
    let mut at = 0;
    text.split_inclusive(is_separator).map(move |part| {
        let start = at;
        at += part.len();
        (start, part.trim_end_matches(is_separator))
    })
}

pub(super) fn classify_word(word: &str, text: &str) -> Option<SecretKind> {
    if url_password(word).is_some() {
        return Some(SecretKind::Password);
    }
    if is_hex_key(word) && !mentions_transactions(text) {
        return Some(SecretKind::PrivateKey);
    }
    let is_key = has_key_prefix(word) || is_jwt(word) || has_random_run(word);
    is_key.then_some(SecretKind::AccessKey)
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Returns true if a well-known key prefix occurs at a word boundary.
fn has_key_prefix(word: &str) -> bool {
    KEY_PREFIXES.iter().any(|(prefix, min_len)| {
        word.match_indices(prefix).any(|(at, _)| {
            let is_start =
                !word[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
            let tail = &word[at + prefix.len()..];
            let length = tail.chars().take_while(|c| is_key_char(*c)).count();
            is_start && length >= *min_len && tail.chars().any(|c| c.is_ascii_digit())
        })
    })
}

/// Returns true for three dot-separated base64 parts, the first of which is a JSON object.
fn is_jwt(word: &str) -> bool {
    let Some(at) = word.find("eyJ") else {
        return false;
    };
    let parts: Vec<&str> = word[at..].split('.').collect();
    parts.len() >= 3
        && parts
            .iter()
            .take(3)
            .all(|part| part.len() >= 8 && part.chars().all(is_key_char))
}

/// Returns the range of the password in `scheme://name:password@host`. A backslash ends the host, as
/// it does in browsers.
pub(super) fn url_password(word: &str) -> Option<Range<usize>> {
    let authority = url_authority(word)?;
    let at = authority.start;
    let (credentials, _) = word[authority].rsplit_once('@')?;
    let (name, password) = credentials.split_once(':')?;
    let is_literal = !password.is_empty() && !password.starts_with(['$', '<', '*', '{']);
    is_literal.then(|| at + name.len() + 1..at + credentials.len())
}

/// Returns the range of the host in a URL.
pub(super) fn url_host(word: &str) -> Option<Range<usize>> {
    let authority = url_authority(word)?;
    let before = word[authority.clone()].rfind('@').map_or(0, |at| at + 1);
    Some(authority.start + before..authority.end)
}

fn url_authority(word: &str) -> Option<Range<usize>> {
    let start = word.find("://")? + "://".len();
    let length = word[start..]
        .find(['/', '\\', '?', '#'])
        .unwrap_or(word.len() - start);
    Some(start..start + length)
}

fn is_hex_key(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ':', '!', '?']);
    word.strip_prefix("0x")
        .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn mentions_transactions(text: &str) -> bool {
    let text = text.to_lowercase();
    ["transaction", "tx ", "hash", "digest", "block", "sha"]
        .iter()
        .any(|word| text.contains(word))
}

/// Returns true for a long, random run of upper-case and lower-case letters and digits. Paths and URLs
/// consist of words and have a lower entropy.
fn has_random_run(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '=' | '_' | '-');
    word.split(|c: char| !is_part(c))
        .filter(|run| run.len() >= MIN_RANDOM_RUN_LEN)
        .any(|run| {
            let has = |is: fn(&u8) -> bool| run.as_bytes().iter().any(is);
            has(u8::is_ascii_lowercase)
                && has(u8::is_ascii_uppercase)
                && has(u8::is_ascii_digit)
                && entropy(run) > MIN_ENTROPY
        })
}

fn entropy(run: &str) -> f64 {
    let mut counts = [0_u32; 256];
    run.bytes().for_each(|b| counts[usize::from(b)] += 1);
    let length = run.len() as f64;
    let bits = |count: &u32| {
        let share = f64::from(*count) / length;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

/// Returns the ranges of card numbers: digits, possibly grouped, with a valid check digit.
pub(super) fn card_numbers(text: &str) -> Vec<Range<usize>> {
    let is_digit = |c: char| c.is_ascii_digit();
    let (mut remaining, mut found) = (text, Vec::new());
    while let Some(at) = remaining.find(is_digit) {
        let run = &remaining[at..];
        let end = run
            .find(|c: char| !(is_digit(c) || c == ' ' || c == '-'))
            .unwrap_or(run.len());
        let digits: Vec<u8> = run[..end]
            .bytes()
            .filter(u8::is_ascii_digit)
            .map(|b| b - b'0')
            .collect();
        let is_separate =
            !remaining[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '.');
        if is_separate
            && CARD_DIGITS.contains(&digits.len())
            && (3..=6).contains(&digits[0])
            && is_luhn_valid(&digits)
        {
            let start = text.len() - run.len();
            found.push(start..start + run[..end].trim_end_matches([' ', '-']).len());
        }
        remaining = &run[end..];
    }
    found
}

/// Checks the Luhn checksum.
fn is_luhn_valid(digits: &[u8]) -> bool {
    let weighted = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => u32::from(*digit),
            (_, doubled) if doubled > 9 => u32::from(doubled) - 9,
            (_, doubled) => u32::from(doubled),
        });
    weighted.sum::<u32>() % 10 == 0
}
