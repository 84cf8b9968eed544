//! Detects secrets that a sentence names: "the password is …".

use std::collections::BTreeSet;

use super::SecretKind;

/// Names whose values are secrets in any format.
const PASSWORD_NAMES: [&str; 22] = [
    "password",
    "passwort",
    "kennwort",
    "passphrase",
    "passwd",
    "pwd",
    "passcode",
    "api key",
    "api-key",
    "api_key",
    "apikey",
    "secret key",
    "secret_key",
    "access key",
    "access_key",
    "access token",
    "private key",
    "비밀번호",
    "パスワード",
    "contraseña",
    "mot de passe",
    "密码",
];
/// Names whose values are secrets only if they are not words.
const AMBIGUOUS_NAMES: [&str; 6] = ["secret", "token", "pin", "credential", "암호", "暗証番号"];
const RECOVERY_PHRASE_NAMES: [&str; 5] = [
    "seed phrase",
    "recovery phrase",
    "mnemonic",
    "seed words",
    "secret phrase",
];
/// Words and signs between the name and the value.
const LINK_WORDS: [&str; 14] = [
    ":", "=", "is", "was", "are", "ist", "war", "lautet", "es", "est", "は", "는", "은", "为",
];
/// Words that may follow in a sentence about passwords and are not values.
const NON_VALUE_WORDS: [&str; 36] = [
    "required",
    "needed",
    "wrong",
    "correct",
    "expired",
    "unknown",
    "empty",
    "optional",
    "invalid",
    "safe",
    "weak",
    "strong",
    "stored",
    "missing",
    "set",
    "changed",
    "the",
    "a",
    "an",
    "not",
    "in",
    "kept",
    "managed",
    "asked",
    "never",
    "always",
    "too",
    "same",
    "shared",
    "rotated",
    "nötig",
    "falsch",
    "abgelaufen",
    "gespeichert",
    "hidden",
    "read",
];
/// Most occurrences of a name that are examined.
const MAX_MATCHES: usize = 200;
/// Maximum distance in bytes between a name and its value.
const MAX_VALUE_DISTANCE: usize = 400;

pub(super) fn find(text: &str) -> Option<SecretKind> {
    let lower = text.to_lowercase();
    if text_after(&lower, &RECOVERY_PHRASE_NAMES).any(is_recovery_phrase) {
        return Some(SecretKind::RecoveryPhrase);
    }
    let is_stated = text_after(&lower, &PASSWORD_NAMES)
        .filter_map(parse_value)
        .any(|value| is_secret_value(&value));
    let likely = || {
        text_after(&lower, &AMBIGUOUS_NAMES)
            .filter_map(parse_value)
            .any(|value| is_non_word(&value.word))
    };
    (is_stated || likely()).then_some(SecretKind::Password)
}

/// Returns the values, in lower case, that a text states to be secret and that are not words.
pub(super) fn stated_values(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let names = [&PASSWORD_NAMES[..], &AMBIGUOUS_NAMES[..]].concat();
    let values = text_after(&lower, &names).filter_map(parse_value);
    let words = values.map(|value| value.word);
    words.filter(|word| is_non_word(word)).collect()
}

/// Returns the text after each whole-word occurrence of these names.
fn text_after<'a>(text: &'a str, names: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let matches = names
        .iter()
        .flat_map(|name| text.match_indices(*name).take(MAX_MATCHES));
    matches.filter_map(|(at, name)| {
        let rest = &text[at + name.len()..];
        let is_whole = !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        let is_start = !name.is_ascii() || !text[..at].ends_with(|c: char| c.is_alphanumeric());
        (is_whole && is_start)
            .then(|| &rest[..rest.floor_char_boundary(MAX_VALUE_DISTANCE.min(rest.len()))])
    })
}

struct StatedValue {
    word: String,
    /// True if `:` or `=` precedes the value.
    is_assigned: bool,
    is_quoted: bool,
    /// True if the value ends its sentence.
    is_last: bool,
}

/// Parses the value that is stated after a name.
fn parse_value(rest: &str) -> Option<StatedValue> {
    let rest = rest.trim_start_matches(['"', '\'', '`', '*', ' ', '\t']);
    let link = LINK_WORDS.iter().find(|link| {
        let is_word = link.bytes().all(|b| b.is_ascii_alphabetic());
        rest.strip_prefix(**link)
            .is_some_and(|remaining| !is_word || remaining.starts_with(char::is_whitespace))
    })?;
    let value_text = rest[link.len()..].trim_start_matches([':', '=', ' ', '\t']);
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`' | '「' | '“' | '«');
    let is_quoted = value_text.starts_with(is_quote);
    let value_text = value_text.trim_start_matches(is_quote);
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '」' | '”' | '»' | ',' | ';');
    let end = value_text.find(is_end).unwrap_or(value_text.len());
    let word = value_text[..end]
        .trim_end_matches(['.', '!', '?'])
        .to_owned();
    let remaining = value_text[end..].trim_start_matches(is_end);
    let is_last = remaining.is_empty() || value_text[..end].ends_with(['.', '!', '?']);
    (!word.is_empty()).then_some(StatedValue {
        word,
        is_assigned: matches!(*link, ":" | "="),
        is_quoted,
        is_last,
    })
}

/// Returns true for a value, false for a sentence about passwords in general.
fn is_secret_value(value: &StatedValue) -> bool {
    let word = value.word.as_str();
    if is_placeholder(word) || NON_VALUE_WORDS.contains(&word) {
        return false;
    }
    let is_long = word.chars().count() >= 4;
    is_long && (is_non_word(word) || value.is_quoted || value.is_last || value.is_assigned)
}

/// Returns true for letters mixed with digits, or for digits only.
fn is_non_word(word: &str) -> bool {
    let count = |is: fn(char) -> bool| word.chars().filter(|c| is(*c)).count();
    let (digits, letters) = (count(|c| c.is_ascii_digit()), count(char::is_alphabetic));
    let is_number = digits >= 4 && letters == 0;
    !is_placeholder(word) && word.chars().count() >= 4 && (is_number || (digits > 0 && letters > 0))
}

fn is_placeholder(word: &str) -> bool {
    word.starts_with(['$', '<', '{', '*', '%', '[', '…', '/'])
        || word.starts_with("...")
        || word.contains("***")
}

/// Returns true for twelve lower-case words in sequence.
fn is_recovery_phrase(rest: &str) -> bool {
    let words = rest
        .trim_start_matches([':', '=', ' ', '"', '\''])
        .split_whitespace();
    let is_short_word =
        |word: &&str| (3..=8).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase());
    words
        .skip_while(|word| matches!(*word, "is" | "are" | "ist"))
        .take_while(is_short_word)
        .count()
        >= 12
}
