//! What a question is after: a kind of memory, a topic, certain words.

use lango_domain::memory::Kind;

use super::rules::plain_words;
use super::topics::topics;

/// Words that ask for a kind.
const ASKING: [(Kind, &str); 5] = [
    (
        Kind::Preference,
        "like likes prefer prefers preference preferences preferred favourite favorite favourites favorites love hate \
        dislike dislikes enjoy rather mag bevorzuge gern gerne liebsten lieblings gusta prefiero aime prefere taste",
    ),
    (
        Kind::Decision,
        "decide decided decision decisions agree agreed choose chose chosen settled entschieden beschlossen decidido \
        decide",
    ),
    (Kind::Promise, "promise promised promises owe commitments versprochen prometido promis"),
    (Kind::Date, "when date dates deadline deadlines birthday appointment appointments wann cuando quand"),
    (Kind::Name, "who name names called wer heisse heisst quien qui llamo mappelle"),
];

const ASKING_UNSPACED: [(Kind, &str); 5] = [
    (Kind::Preference, "좋아 싫어 선호 好き 嫌い 喜欢"),
    (Kind::Decision, "결정 決め 决定"),
    (Kind::Promise, "약속 約束 答应"),
    (Kind::Date, "언제 いつ 什么时候"),
    (Kind::Name, "이름 名前 名字"),
];

/// Of these, words that also say what it is about.
const ASKING_AND_TELLING: &str = "birthday deadline deadlines appointment appointments";

/// Words that say nothing about what is asked for.
const EMPTY: &str = "a about again all already am an and any anything are as at be been before but by can conversation could did \
    discuss discussed do does earlier ever everything for from had has have hello hey history how i if im in is it \
    its ive know known last me memories memory mention mentioned mine my myself of on or our please recall remember \
    said say should so some something talk talked tell that the them there these they thing things this those time to \
    told us was we were what whats where which whom why will with would yesterday you your want week to ich mein \
    meine meinen was ist das der die und du uber weisst mich mir wir que me mi sabes de sobre sais tu moi mon ma je";

/// Words that make a question the asker's own.
const OWN: &str = "i im ive me my mine we us our ours ich mich mir mein meine wir mi je moi mon";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecallQuery {
    /// Kinds that it asks for.
    pub kinds: Vec<Kind>,
    /// What it is about, one bit for each topic.
    pub topics: u16,
    /// Its other words; empty where it asks for everything.
    pub content: String,
    /// Whether it asks about the asker.
    pub is_own: bool,
}

impl RecallQuery {
    pub fn read(text: &str) -> Self {
        let words = plain_words(text);
        let mut kinds: Vec<Kind> = Vec::new();
        let asks = |word: &str| ASKING.iter().find(|(_, asking)| holds(asking, word)).map(|(kind, _)| *kind);
        let mut rest = text.to_owned();
        for (kind, pieces) in ASKING_UNSPACED {
            for piece in pieces.split(' ').filter(|piece| text.contains(*piece)) {
                kinds.push(kind);
                rest = rest.replace(piece, " ");
            }
        }
        kinds.extend(words.iter().filter_map(|word| asks(word)));
        // A date may be a promise's, and a promise has a date.
        if kinds.contains(&Kind::Date) || kinds.contains(&Kind::Promise) {
            kinds.extend([Kind::Date, Kind::Promise]);
        }
        kinds.sort_unstable();
        kinds.dedup();
        let only_asks = |word: &str| asks(word).is_some() && !holds(ASKING_AND_TELLING, word);
        let is_empty = |word: &String| holds(EMPTY, word) || only_asks(word);
        let content: Vec<String> = plain_words(&rest).into_iter().filter(|word| !is_empty(word)).collect();
        Self {
            kinds,
            topics: topics(&words, text),
            content: content.join(" "),
            is_own: words.iter().any(|word| holds(OWN, word)),
        }
    }

    /// Whether it asks for all there is, or all of a kind.
    pub fn is_general(&self) -> bool {
        self.content.is_empty()
    }
}

fn holds(list: &str, word: &str) -> bool {
    list.split(' ').any(|other| other == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_after_a_kind_a_topic_or_words() {
        let drink = RecallQuery::read("what do I like to drink?");
        assert_eq!(
            (drink.kinds.as_slice(), drink.content.as_str(), drink.is_own),
            (&[Kind::Preference][..], "drink", true)
        );
        assert!(drink.topics != 0 && !drink.is_general());
        assert!(RecallQuery::read("What do you know about me?").is_general());
        assert!(RecallQuery::read("what are my preferences").is_general());
        assert_eq!(RecallQuery::read("when is the release").kinds, [Kind::Promise, Kind::Date]);
        assert_eq!(RecallQuery::read("제가 뭘 좋아하나요").kinds, [Kind::Preference]);
        assert_eq!(RecallQuery::read("run the tests").kinds, []);
        assert!(!RecallQuery::read("run the tests").is_own);
        assert!(RecallQuery::read("").is_general());
    }
}
