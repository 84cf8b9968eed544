//! Keeping and finding what is known.

use std::collections::BTreeSet;

use lango_domain::event::Principal;
use lango_domain::knowledge::{
    EntrySaved, FailureCategory, KnowledgeCategory, KnowledgeEntry, Learning, LearningSaved,
    NewKnowledgeEntry, NewLearning, Provenance,
};
use lango_domain::text::{one_line, strip_control_chars};

use super::{KnowledgeBase, KnowledgeBaseError};
use crate::secret_scan::SecretKind;
use crate::short_text_index::ShortTextIndex;

const MAX_KEY: usize = 80;
const MAX_CONTENT: usize = 4_000;
const MAX_TRIGGER: usize = 400;
const MAX_FIX: usize = 1_000;
const MAX_TAGS: usize = 12;
const MAX_TAG: usize = 40;
/// A key that has to be made up has so many words.
const MAX_DERIVED_KEY_WORDS: usize = 5;
/// What covers less of a question has nothing to do with it.
const MIN_SCORE: f32 = 0.2;

/// Why something is not kept, said to whoever wanted it kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error(
        "this seems to hold {0}, and secrets are never kept here; leave it out, and say instead where it is kept"
    )]
    Secret(SecretKind),
    #[error("`{0}` is empty")]
    Empty(&'static str),
    #[error("`{what}` has {length} characters, but at most {most} are kept; keep the gist of it")]
    TooLong {
        what: &'static str,
        length: usize,
        most: usize,
    },
}

/// What to keep, as somebody said it.
pub(super) struct EntryInput {
    pub key: Option<String>,
    pub category: KnowledgeCategory,
    pub content: String,
    pub tags: Vec<String>,
}

impl KnowledgeBase {
    pub(super) async fn save(
        &self,
        of: &Principal,
        said: EntryInput,
        source: Provenance,
    ) -> Result<(String, EntrySaved), KnowledgeBaseError> {
        let content = check_length(
            "content",
            strip_control_chars(&said.content).trim(),
            MAX_CONTENT,
        )?;
        let key = match said.key.filter(|key| !key.trim().is_empty()) {
            Some(key) => check_length("key", &normalize_key(&key), MAX_KEY)?,
            None => derive_key(&content),
        };
        let tags = normalize_tags(&said.tags);
        self.reject_secrets(&[&key, &content, &tags.join(" ")])?;
        let at = (self.now)();
        let entry = NewKnowledgeEntry {
            key: key.clone(),
            category: said.category,
            content,
            tags,
            source,
            at,
        };
        Ok((key, self.store.get().await?.save_entry(of, entry).await?))
    }

    /// What covers most of a question, best first.
    pub async fn find(
        &self,
        of: &Principal,
        question: &str,
        category: Option<KnowledgeCategory>,
        most: usize,
    ) -> Result<Vec<KnowledgeEntry>, KnowledgeBaseError> {
        let entries = self.store.get().await?.entries(of).await?;
        let is_wanted =
            |entry: &KnowledgeEntry| category.is_none_or(|category| entry.category == category);
        Ok(best_matches(
            entries.into_iter().filter(is_wanted).collect(),
            question,
            most,
            searchable_text,
        ))
    }

    pub(super) async fn save_learning(
        &self,
        of: &Principal,
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
        Ok(self.store.get().await?.save_learning(of, learning).await?)
    }

    pub async fn find_learnings(
        &self,
        of: &Principal,
        question: &str,
        category: Option<FailureCategory>,
        most: usize,
    ) -> Result<Vec<Learning>, KnowledgeBaseError> {
        let learnings = self.store.get().await?.learnings(of).await?;
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
            question,
            most,
            text,
        ))
    }

    fn reject_secrets(&self, texts: &[&str]) -> Result<(), EntryError> {
        match texts
            .iter()
            .find_map(|text| self.secret_scanner.find_secret(text))
        {
            Some(likeness) => Err(EntryError::Secret(likeness)),
            None => Ok(()),
        }
    }
}

/// A key as it is kept: in small letters, on one line.
pub fn normalize_key(text: &str) -> String {
    let plain = one_line(&text.to_lowercase());
    plain
        .trim_matches(|c: char| !c.is_alphanumeric() && c.is_ascii_punctuation())
        .to_owned()
}

/// An entry on one line, for people and models alike.
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
    all: Vec<T>,
    question: &str,
    most: usize,
    text: impl Fn(&T) -> String,
) -> Vec<T> {
    let list = ShortTextIndex::from_texts(
        all.iter()
            .enumerate()
            .map(|(at, one)| (at as u64, text(one))),
    );
    let mut all: Vec<Option<T>> = all.into_iter().map(Some).collect();
    let found = list
        .search(question, most)
        .into_iter()
        .filter(|(_, score)| *score >= MIN_SCORE);
    found
        .filter_map(|(at, _)| all.get_mut(at as usize)?.take())
        .collect()
}

fn check_length(what: &'static str, text: &str, most: usize) -> Result<String, EntryError> {
    match text.chars().count() {
        0 => Err(EntryError::Empty(what)),
        length if length > most => Err(EntryError::TooLong { what, length, most }),
        _ => Ok(text.to_owned()),
    }
}

fn normalize_tags(tags: &[String]) -> Vec<String> {
    let tidy = tags
        .iter()
        .map(|tag| normalize_key(tag).chars().take(MAX_TAG).collect::<String>());
    let tidy: BTreeSet<String> = tidy.filter(|tag| !tag.is_empty()).collect();
    tidy.into_iter().take(MAX_TAGS).collect()
}

/// What a sentence is about: what stands before its "is", else its first words that say something.
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
    let is_telling = |word: &&&str| !STOP_WORDS.contains(*word);
    let telling: Vec<&str> = subject
        .iter()
        .filter(is_telling)
        .take(MAX_DERIVED_KEY_WORDS)
        .copied()
        .collect();
    let telling = if telling.is_empty() {
        words.iter().take(MAX_DERIVED_KEY_WORDS).copied().collect()
    } else {
        telling
    };
    telling
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
    fn a_key_is_what_the_sentence_is_about() {
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
    fn keys_and_tags_are_tidy() {
        assert_eq!(normalize_key("  Office\n Hours! "), "office hours");
        assert_eq!(
            normalize_tags(&["B".into(), "a".into(), " b ".into(), "".into()]),
            ["a", "b"]
        );
    }
}
