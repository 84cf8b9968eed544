//! Gaps that set rules find where there is no language model: something of the user's own world is named, and what one
//! would have to know about it is not said. English only; what is not surely a gap is none.

use std::collections::HashSet;

use lango_domain::inquiries::InquiryPriority;
use lango_domain::knowledge::KnowledgeEntry;
use lango_domain::text::one_line;

use crate::lexical::{analyze, analyze_query};
use crate::turn_transcript::TurnTranscript;

/// So much of a request is read: what was pasted behind it is data.
const MAX_BYTES: usize = 2_000;
const MAX_REASON_LEN: usize = 120;

const POSSESSIVES: [&str; 2] = ["my", "our"];
/// People and animals that have a name.
const NAMED_RELATIONS: [&str; 34] = [
    "sister",
    "brother",
    "wife",
    "husband",
    "partner",
    "girlfriend",
    "boyfriend",
    "son",
    "daughter",
    "mother",
    "father",
    "mom",
    "mum",
    "dad",
    "grandmother",
    "grandfather",
    "aunt",
    "uncle",
    "cousin",
    "boss",
    "manager",
    "assistant",
    "doctor",
    "dentist",
    "landlord",
    "lawyer",
    "accountant",
    "therapist",
    "dog",
    "cat",
    "neighbour",
    "neighbor",
    "nephew",
    "niece",
];
const PREFERENCE_WORDS: [&str; 4] = ["favourite", "favorite", "preferred", "usual"];
/// What follows "the usual" and is nothing to ask about.
const VAGUE_WORDS: [&str; 12] = [
    "way", "thing", "things", "stuff", "suspects", "one", "ones", "case", "rules", "please", "and",
    "or",
];
/// How a sentence goes on that says what would be asked.
const STATEMENT_WORDS: [&str; 12] = [
    "is", "are", "was", "called", "named", "name", "means", "=", "named:", "who's", "whose",
    "about",
];
const QUESTION_WORDS: [&str; 11] = [
    "what", "whats", "when", "where", "who", "which", "how", "do", "does", "is", "are",
];
const UNANSWERED_PHRASES: [&str; 9] = [
    "nothing is known about",
    "nothing was found",
    "i don't know",
    "i don’t know",
    "i do not know",
    "i have no information",
    "could not find",
    "couldn't find",
    "nobody here knows",
];

/// Something worth asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub topic: String,
    pub question: String,
    pub why: String,
    pub priority: InquiryPriority,
}

/// What is known, to be asked whether something is.
pub(super) struct KnownTopics(Vec<HashSet<String>>);

impl KnownTopics {
    pub fn from_entries(entries: &[KnowledgeEntry]) -> Self {
        let words = |entry: &KnowledgeEntry| {
            let text = format!("{} {} {}", entry.key, entry.tags.join(" "), entry.content);
            analyze(&text).into_iter().collect()
        };
        Self(entries.iter().map(words).collect())
    }

    /// Whether one entry has every word of a topic.
    pub fn covers(&self, topic: &str) -> bool {
        let words = analyze_query(topic);
        let is_in = |entry: &HashSet<String>| {
            words
                .iter()
                .all(|word| word.iter().any(|one| entry.contains(one)))
        };
        !words.is_empty() && self.0.iter().any(is_in)
    }
}

/// What an exchange leaves open.
pub(super) fn find_gaps(exchange: &TurnTranscript, known: &KnownTopics) -> Vec<Gap> {
    let said = first_paragraph(&exchange.request);
    let words = parse_words(said);
    let rules: [GapRule; 3] = [relation_gap, preference_gap, project_gap];
    let mut gaps = Vec::new();
    for at in 0..words.len() {
        for (topic, question) in rules.iter().filter_map(|rule| rule(&words, at)) {
            let why = format!("the user said “{}”", excerpt(said));
            gaps.push(Gap {
                topic,
                question,
                why,
                priority: InquiryPriority::Medium,
            });
        }
    }
    gaps.extend(unanswered_gap(said, &words, exchange.answer.as_deref()));
    gaps.retain(|gap| !known.covers(&gap.topic));
    let mut topics = HashSet::new();
    gaps.retain(|gap| topics.insert(gap.topic.clone()));
    gaps
}

/// What begins at a word and is worth asking: a topic, and a question.
type GapRule = fn(&[GapWord<'_>], usize) -> Option<(String, String)>;

struct GapWord<'a> {
    /// Without the marks around it.
    plain: &'a str,
    /// In small letters, without `'s`.
    lowercase: String,
    has_genitive: bool,
    ends_clause: bool,
    is_quoted: bool,
}

fn parse_words(text: &str) -> Vec<GapWord<'_>> {
    let word = |raw: &'_ str| -> Option<(usize, usize)> {
        let start = raw.find(|c: char| c.is_alphanumeric() || c == '=')?;
        let end = raw.rfind(|c: char| c.is_alphanumeric() || c == '=')?;
        Some((
            start,
            end + raw[end..].chars().next().map_or(1, char::len_utf8),
        ))
    };
    text.split_whitespace()
        .filter_map(|raw| {
            let (start, end) = word(raw)?;
            let plain = &raw[start..end];
            let small = plain.to_lowercase();
            let bare = small
                .strip_suffix("'s")
                .or_else(|| small.strip_suffix("’s"));
            Some(GapWord {
                plain,
                has_genitive: bare.is_some(),
                ends_clause: raw[end..].contains([',', '.', ';', ':', '!', '?', ')']),
                is_quoted: raw.starts_with(['"', '“', '\'', '`']),
                lowercase: bare.unwrap_or(&small).to_owned(),
            })
        })
        .collect()
}

fn first_paragraph(text: &str) -> &str {
    let text = text.trim().split("\n\n").next().unwrap_or_default();
    &text[..text.floor_char_boundary(MAX_BYTES.min(text.len()))]
}

fn excerpt(text: &str) -> String {
    one_line(text).chars().take(MAX_REASON_LEN).collect()
}

/// "my sister", without her name.
fn relation_gap(words: &[GapWord<'_>], at: usize) -> Option<(String, String)> {
    let [own, who, ..] = words.get(at..)? else {
        return None;
    };
    if !POSSESSIVES.contains(&own.lowercase.as_str())
        || !NAMED_RELATIONS.contains(&who.lowercase.as_str())
        || own.ends_clause
    {
        return None;
    }
    let next = words.get(at + 2).filter(|_| !who.ends_clause);
    let is_told = next.is_some_and(|next| {
        STATEMENT_WORDS.contains(&next.lowercase.as_str())
            || (!who.has_genitive && is_capitalized(next.plain))
    });
    let who = &who.lowercase;
    (!is_told).then(|| (who.clone(), format!("What is your {who}'s name?")))
}

/// "my favourite tea", "the usual server".
fn preference_gap(words: &[GapWord<'_>], at: usize) -> Option<(String, String)> {
    let [whose, liked, what, ..] = words.get(at..)? else {
        return None;
    };
    let is_owned = POSSESSIVES.contains(&whose.lowercase.as_str())
        || (whose.lowercase == "the" && liked.lowercase == "usual");
    if !is_owned
        || !PREFERENCE_WORDS.contains(&liked.lowercase.as_str())
        || liked.ends_clause
        || whose.ends_clause
    {
        return None;
    }
    let is_vague = VAGUE_WORDS.contains(&what.lowercase.as_str())
        || STATEMENT_WORDS.contains(&what.lowercase.as_str());
    let is_told = !what.ends_clause
        && words.get(at + 3).is_some_and(|next| {
            STATEMENT_WORDS.contains(&next.lowercase.as_str()) || is_capitalized(next.plain)
        });
    if is_vague || is_told || what.has_genitive {
        return None;
    }
    let (liked, what) = (&liked.lowercase, &what.lowercase);
    let question = match liked.as_str() {
        "usual" => format!("Which {what} do you usually mean?"),
        _ => format!("What is your {liked} {what}?"),
    };
    Some((format!("{liked} {what}"), question))
}

/// "project Falcon", "the Falcon project".
fn project_gap(words: &[GapWord<'_>], at: usize) -> Option<(String, String)> {
    let word = words.get(at).filter(|word| word.lowercase == "project")?;
    let is_name = |word: &&GapWord<'_>| {
        let is_common =
            ["the", "my", "our", "this", "that", "a", "new"].contains(&word.lowercase.as_str());
        (is_capitalized(word.plain) || word.is_quoted) && !is_common
    };
    let behind = words
        .get(at + 1)
        .filter(|_| !word.ends_clause)
        .filter(is_name);
    let before = || {
        let (article, name) = (words.get(at.checked_sub(2)?)?, words.get(at - 1)?);
        let is_article = ["the", "my", "our"].contains(&article.lowercase.as_str());
        (is_article && !name.ends_clause && is_name(&name)).then_some((name, at))
    };
    let (name, end) = behind.map(|name| (name, at + 1)).or_else(before)?;
    let is_told = !words[end].ends_clause
        && words
            .get(end + 1)
            .is_some_and(|next| ["is", "was", "means"].contains(&next.lowercase.as_str()));
    let topic = format!("project {}", name.lowercase);
    (!is_told).then(|| (topic, format!("What is the project {} about?", name.plain)))
}

/// A question about the user's own world that nobody could answer.
fn unanswered_gap(said: &str, words: &[GapWord<'_>], answered: Option<&str>) -> Option<Gap> {
    let answered = answered?.to_lowercase();
    let asks = said.contains('?') || QUESTION_WORDS.contains(&words.first()?.lowercase.as_str());
    let is_own = words
        .iter()
        .any(|word| matches!(word.lowercase.as_str(), "my" | "our" | "we" | "us"));
    if !asks
        || !is_own
        || !UNANSWERED_PHRASES
            .iter()
            .any(|phrase| answered.contains(phrase))
    {
        return None;
    }
    let telling = analyze_query(said)
        .into_iter()
        .filter_map(|word| word.into_iter().next());
    let little = ["know", "known", "tell", "find", "say"];
    let topic: Vec<String> = telling
        .filter(|word| !little.contains(&word.as_str()))
        .take(4)
        .collect();
    let asked = excerpt(said);
    (!topic.is_empty()).then(|| Gap {
        topic: topic.join(" "),
        question: format!("You asked “{asked}”, and nobody here knew. What is the answer?"),
        why: "it was asked and could not be answered".to_owned(),
        priority: InquiryPriority::High,
    })
}

fn is_capitalized(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase) && word != "I"
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use lango_domain::Label;
    use lango_domain::event::TurnId;
    use lango_domain::knowledge::{KnowledgeCategory, Provenance};

    use super::*;

    fn found(said: &str, answered: Option<&str>, known: &[&str]) -> Vec<String> {
        let entries: Vec<KnowledgeEntry> = known
            .iter()
            .map(|content| KnowledgeEntry {
                key: "x".into(),
                version: 1,
                category: KnowledgeCategory::Fact,
                content: (*content).to_owned(),
                tags: Vec::new(),
                source: Provenance {
                    session: None,
                    turn: TurnId::new("t"),
                    by: String::new(),
                    label: Default::default(),
                },
                at: Timestamp::UNIX_EPOCH,
            })
            .collect();
        let exchange = TurnTranscript {
            seq: 1,
            turn: TurnId::new("t"),
            at: Timestamp::UNIX_EPOCH,
            through: 1,
            request: said.to_owned(),
            answer: answered.map(str::to_owned),
            request_label: Label::default(),
            label: Label::default(),
        };
        find_gaps(&exchange, &KnownTopics::from_entries(&entries))
            .into_iter()
            .map(|gap| gap.question)
            .collect()
    }

    /// S37
    #[test]
    fn what_is_named_and_not_known_is_a_gap() {
        for (said, question) in [
            ("write a card for my sister", "What is your sister's name?"),
            (
                "What could I give my sister's kids?",
                "What is your sister's name?",
            ),
            (
                "order my favourite tea, please",
                "What is your favourite tea?",
            ),
            (
                "deploy it to the usual server",
                "Which server do you usually mean?",
            ),
            (
                "plan the next week of the Falcon project",
                "What is the project Falcon about?",
            ),
            (
                "summarise project Falcon.",
                "What is the project Falcon about?",
            ),
        ] {
            assert_eq!(found(said, Some("Done."), &[]), [question], "{said}");
        }
        let asked = found(
            "when does our office open?",
            Some("Nothing was found."),
            &[],
        );
        assert!(asked[0].contains("when does our office open?"), "{asked:?}");
    }

    #[test]
    fn nothing_is_asked_that_is_said_or_known_or_nobodys() {
        for said in [
            "",
            "write a card for my sister Anna",
            "my sister is called Anna",
            "my sister's name is Anna",
            "my favourite tea is oolong",
            "the usual way, please",
            "the project is late",
            "what is a sister city?",
            "내 여동생에게 카드를 써 줘",
            "🦀 “my” ‘’ ''",
            "when does the sun rise?",
        ] {
            assert_eq!(
                found(said, Some("I don't know"), &[]),
                Vec::<String>::new(),
                "{said}"
            );
        }
        assert!(
            found(
                "write a card for my sister",
                None,
                &["My sister is called Anna."]
            )
            .is_empty()
        );
        assert!(
            found("summarise this\n\nmy sister wrote", None, &[]).is_empty(),
            "what is pasted is data"
        );
        assert!(found(&"my sister ".repeat(100_000), None, &[]).len() == 1);
    }
}
