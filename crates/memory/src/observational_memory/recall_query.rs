//! Parses recall queries into kinds of memories, topics and words.

use lango_domain::memory::MemoryKind;
use lango_text::normalize_words;

use super::topics::topics;

/// Words that request a kind of memory.
const KIND_WORDS: [(MemoryKind, &str); 5] = [
    (
        MemoryKind::Preference,
        "like likes prefer prefers preference preferences preferred favourite favorite favourites favorites love hate \
        dislike dislikes enjoy rather mag bevorzuge gern gerne liebsten lieblings gusta prefiero aime prefere taste",
    ),
    (
        MemoryKind::Decision,
        "decide decided decision decisions agree agreed choose chose chosen settled entschieden beschlossen decidido \
        decide",
    ),
    (
        MemoryKind::Promise,
        "promise promised promises owe commitments versprochen prometido promis",
    ),
    (
        MemoryKind::Date,
        "when date dates deadline deadlines birthday appointment appointments wann cuando quand",
    ),
    (
        MemoryKind::Name,
        "who name names called wer heisse heisst quien qui llamo mappelle",
    ),
];

const KIND_WORDS_UNSPACED: [(MemoryKind, &str); 5] = [
    (MemoryKind::Preference, "좋아 싫어 선호 好き 嫌い 喜欢"),
    (MemoryKind::Decision, "결정 決め 决定"),
    (MemoryKind::Promise, "약속 約束 答应"),
    (MemoryKind::Date, "언제 いつ 什么时候"),
    (MemoryKind::Name, "이름 名前 名字"),
];

/// Kind words that are also searched for.
const CONTENT_KIND_WORDS: &str = "birthday deadline deadlines appointment appointments";

/// Words that are not searched for.
const STOP_WORDS: &str = "a about again all already am an and any anything are as at be been before but by can conversation could did \
    discuss discussed do does earlier ever everything for from had has have hello hey history how i if im in is it \
    its ive know known last me memories memory mention mentioned mine my myself of on or our please recall remember \
    said say should so some something talk talked tell that the them there these they thing things this those time to \
    told us was we were what whats where which whom why will with would yesterday you your want week to ich mein \
    meine meinen was ist das der die und du uber weisst mich mir wir que me mi sabes de sobre sais tu moi mon ma je";

/// Words of questions about the user.
const FIRST_PERSON_WORDS: &str =
    "i im ive me my mine we us our ours ich mich mir mein meine wir mi je moi mon";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecallQuery {
    /// The requested kinds.
    pub kinds: Vec<MemoryKind>,
    /// The topics, one bit for each.
    pub topics: u16,
    /// The remaining words; empty if the query asks for everything.
    pub content: String,
    /// True if the query is about the user.
    pub is_about_user: bool,
}

impl RecallQuery {
    pub fn parse(text: &str) -> Self {
        let words = normalize_words(text);
        let mut kinds: Vec<MemoryKind> = Vec::new();
        let requested_kind = |word: &str| {
            KIND_WORDS
                .iter()
                .find(|(_, words_of_kind)| contains_word(words_of_kind, word))
                .map(|(kind, _)| *kind)
        };
        let mut remaining = text.to_owned();
        for (kind, phrases) in KIND_WORDS_UNSPACED {
            for phrase in phrases.split(' ').filter(|phrase| text.contains(*phrase)) {
                kinds.push(kind);
                remaining = remaining.replace(phrase, " ");
            }
        }
        kinds.extend(words.iter().filter_map(|word| requested_kind(word)));
        // Dates and promises overlap: a promise often has a date.
        if kinds.contains(&MemoryKind::Date) || kinds.contains(&MemoryKind::Promise) {
            kinds.extend([MemoryKind::Date, MemoryKind::Promise]);
        }
        kinds.sort_unstable();
        kinds.dedup();
        let only_names_kind =
            |word: &str| requested_kind(word).is_some() && !contains_word(CONTENT_KIND_WORDS, word);
        let is_ignored = |word: &String| contains_word(STOP_WORDS, word) || only_names_kind(word);
        let content: Vec<String> = normalize_words(&remaining)
            .into_iter()
            .filter(|word| !is_ignored(word))
            .collect();
        Self {
            kinds,
            topics: topics(&words, text),
            content: content.join(" "),
            is_about_user: words
                .iter()
                .any(|word| contains_word(FIRST_PERSON_WORDS, word)),
        }
    }

    /// Returns true if the query asks for all memories, or all of a kind.
    pub fn is_general(&self) -> bool {
        self.content.is_empty()
    }
}

fn contains_word(list: &str, word: &str) -> bool {
    list.split(' ').any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_kinds_topics_and_words() {
        let drink = RecallQuery::parse("what do I like to drink?");
        assert_eq!(
            (
                drink.kinds.as_slice(),
                drink.content.as_str(),
                drink.is_about_user
            ),
            (&[MemoryKind::Preference][..], "drink", true)
        );
        assert!(drink.topics != 0 && !drink.is_general());
        assert!(RecallQuery::parse("What do you know about me?").is_general());
        assert!(RecallQuery::parse("what are my preferences").is_general());
        assert_eq!(
            RecallQuery::parse("when is the release").kinds,
            [MemoryKind::Promise, MemoryKind::Date]
        );
        assert_eq!(
            RecallQuery::parse("제가 뭘 좋아하나요").kinds,
            [MemoryKind::Preference]
        );
        assert_eq!(RecallQuery::parse("run the tests").kinds, []);
        assert!(!RecallQuery::parse("run the tests").is_about_user);
        assert!(RecallQuery::parse("").is_general());
    }
}
