//! Saves and finds knowledge entries and learnings.

use std::collections::BTreeSet;

use lango_domain::event::Principal;
use lango_domain::knowledge::{
    EntrySaved, FailureCategory, KnowledgeCategory, KnowledgeEntry, Learning, LearningSaved,
    NewKnowledgeEntry, NewLearning, Provenance,
};
use lango_text::sanitize::{one_line, strip_control_chars};

use super::{KnowledgeBase, KnowledgeBaseError};
use lango_text::secret_scan::SecretKind;
use lango_text::short_text_index::ShortTextIndex;

const MAX_KEY: usize = 80;
const MAX_CONTENT: usize = 4_000;
const MAX_TRIGGER: usize = 400;
const MAX_FIX: usize = 1_000;
const MAX_TAGS: usize = 12;
const MAX_TAG: usize = 40;
/// Maximum number of words in a derived key.
const MAX_DERIVED_KEY_WORDS: usize = 5;
/// Minimum search score of a match.
const MIN_SCORE: f32 = 0.2;

/// Error for an entry or learning that is not saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error(
        "the text seems to contain {0}, and secrets are never saved; leave it out and note where it is stored instead"
    )]
    Secret(SecretKind),
    #[error("`{0}` is empty")]
    Empty(&'static str),
    #[error("`{field}` has {length} characters; the limit is {max}, so shorten it")]
    TooLong {
        field: &'static str,
        length: usize,
        max: usize,
    },
}

/// A new entry before validation.
pub(super) struct EntryInput {
    pub key: Option<String>,
    pub category: KnowledgeCategory,
    pub content: String,
    pub tags: Vec<String>,
}

impl KnowledgeBase {
    pub(super) async fn save(
        &self,
        principal: &Principal,
        input: EntryInput,
        source: Provenance,
    ) -> Result<(String, EntrySaved), KnowledgeBaseError> {
        let content = check_length(
            "content",
            strip_control_chars(&input.content).trim(),
            MAX_CONTENT,
        )?;
        let key = match input.key.filter(|key| !key.trim().is_empty()) {
            Some(key) => check_length("key", &normalize_key(&key), MAX_KEY)?,
            None => derive_key(&content),
        };
        let tags = normalize_tags(&input.tags);
        self.reject_secrets(&[&key, &content, &tags.join(" ")])?;
        let at = (self.now)();
        let entry = NewKnowledgeEntry {
            key: key.clone(),
            category: input.category,
            content,
            tags,
            source,
            at,
        };
        Ok((
            key,
            self.store.get().await?.save_entry(principal, entry).await?,
        ))
    }

    /// Returns the entries that match a query, best first.
    pub async fn find(
        &self,
        principal: &Principal,
        query: &str,
        category: Option<KnowledgeCategory>,
        limit: usize,
    ) -> Result<Vec<KnowledgeEntry>, KnowledgeBaseError> {
        let entries = self.store.get().await?.entries(principal).await?;
        let is_wanted =
            |entry: &KnowledgeEntry| category.is_none_or(|category| entry.category == category);
        Ok(best_matches(
            entries.into_iter().filter(is_wanted).collect(),
            query,
            limit,
            searchable_text,
        ))
    }

    pub(super) async fn save_learning(
        &self,
        principal: &Principal,
        (trigger, fix): (&str, &str),
        category: FailureCategory,
        source: Provenance,
    ) -> Result<LearningSaved, KnowledgeBaseError> {
        let trigger = check_length("trigger", &one_line(trigger), MAX_TRIGGER)?;
        let fix = check_length("fix", &one_line(fix), MAX_FIX)?;
        self.reject_secrets(&[&trigger, &fix])?;
        let learning = NewLearning {
            trigger,
            fix,
            category,
            source,
            at: (self.now)(),
        };
        Ok(self
            .store
            .get()
            .await?
            .save_learning(principal, learning)
            .await?)
    }

    pub async fn find_learnings(
        &self,
        principal: &Principal,
        query: &str,
        category: Option<FailureCategory>,
        limit: usize,
    ) -> Result<Vec<Learning>, KnowledgeBaseError> {
        let learnings = self.store.get().await?.learnings(principal).await?;
        let is_wanted =
            |learning: &Learning| category.is_none_or(|category| learning.category == category);
        let text = |learning: &Learning| {
            format!(
                "{} {} {}",
                learning.trigger, learning.fix, learning.category
            )
        };
        Ok(best_matches(
            learnings.into_iter().filter(is_wanted).collect(),
            query,
            limit,
            text,
        ))
    }

    fn reject_secrets(&self, texts: &[&str]) -> Result<(), EntryError> {
        match texts
            .iter()
            .find_map(|text| self.secret_scanner.find_secret(text))
        {
            Some(kind) => Err(EntryError::Secret(kind)),
            None => Ok(()),
        }
    }
}

/// Normalizes a key: lower case, one line, no surrounding punctuation.
pub fn normalize_key(text: &str) -> String {
    let plain = one_line(&text.to_lowercase());
    plain
        .trim_matches(|c: char| !c.is_alphanumeric() && c.is_ascii_punctuation())
        .to_owned()
}

/// Formats an entry on one line, for people and models.
pub fn entry_line(entry: &KnowledgeEntry) -> String {
    let tags = if entry.tags.is_empty() {
        String::new()
    } else {
        format!("; {}", entry.tags.join(", "))
    };
    let (key, category, day) = (&entry.key, entry.category, entry.at.strftime("%Y-%m-%d"));
    format!(
        "{key} ({category}, version {}, {day}{tags}): {}",
        entry.version,
        one_line(&entry.content)
    )
}

pub(super) fn searchable_text(entry: &KnowledgeEntry) -> String {
    format!(
        "{} {} {} {}",
        entry.key,
        entry.tags.join(" "),
        entry.category,
        entry.content
    )
}

fn best_matches<T>(
    items: Vec<T>,
    query: &str,
    limit: usize,
    text: impl Fn(&T) -> String,
) -> Vec<T> {
    let texts = items.iter().map(text);
    let index = ShortTextIndex::from_texts((0..).zip(texts));
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    let hits = index.search(query, limit).into_iter();
    hits.filter(|(_, score)| *score >= MIN_SCORE)
        .filter_map(|(number, _)| items.get_mut(number as usize)?.take())
        .collect()
}

fn check_length(field: &'static str, text: &str, max: usize) -> Result<String, EntryError> {
    match text.chars().count() {
        0 => Err(EntryError::Empty(field)),
        length if length > max => Err(EntryError::TooLong { field, length, max }),
        _ => Ok(text.to_owned()),
    }
}

fn normalize_tags(tags: &[String]) -> Vec<String> {
    let normalized = tags
        .iter()
        .map(|tag| normalize_key(tag).chars().take(MAX_TAG).collect::<String>());
    let distinct: BTreeSet<String> = normalized.filter(|tag| !tag.is_empty()).collect();
    distinct.into_iter().take(MAX_TAGS).collect()
}

/// Derives a key from a sentence: the words before its verb "is", or its first words, without stop
/// words.
fn derive_key(content: &str) -> String {
    const STOP_WORDS: [&str; 18] = [
        "the", "a", "an", "my", "our", "your", "that", "this", "is", "are", "was", "of", "in",
        "on", "at", "to", "and", "for",
    ];
    let plain = normalize_key(content.lines().next().unwrap_or(content));
    let words: Vec<&str> = plain.split(' ').collect();
    let link = words
        .iter()
        .position(|word| matches!(*word, "is" | "are" | "was" | "means" | "=" | "ist" | "sind"));
    let subject = link.map_or(&words[..], |at| &words[..at]);
    let is_key_word = |word: &&&str| !STOP_WORDS.contains(*word);
    let key_words: Vec<&str> = subject
        .iter()
        .filter(is_key_word)
        .take(MAX_DERIVED_KEY_WORDS)
        .copied()
        .collect();
    let key_words = if key_words.is_empty() {
        words.iter().take(MAX_DERIVED_KEY_WORDS).copied().collect()
    } else {
        key_words
    };
    key_words
        .join(" ")
        .trim_matches([':', ',', '.'])
        .chars()
        .take(MAX_KEY)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_keys_from_sentences() {
        for (content, key) in [
            ("The wifi name is Falcon", "wifi name"),
            ("the office closes at six", "office closes six"),
            ("My sister is called Anna", "sister"),
            ("is", "is"),
            (
                "회사 사무실은 여섯 시에 닫는다",
                "회사 사무실은 여섯 시에 닫는다",
            ),
            ("Übergabe: Freitag", "übergabe: freitag"),
        ] {
            assert_eq!(derive_key(content), key);
        }
        assert!(derive_key(&"ж".repeat(500)).chars().count() <= MAX_KEY);
    }

    #[test]
    fn normalizes_keys_and_tags() {
        assert_eq!(normalize_key("  Office\n Hours! "), "office hours");
        assert_eq!(
            normalize_tags(&["B".into(), "a".into(), " b ".into(), "".into()]),
            ["a", "b"]
        );
    }
}
