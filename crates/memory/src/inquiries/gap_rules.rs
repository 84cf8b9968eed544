//! Finds gaps with fixed rules when there is no language model: the user mentions a person, a
//! preference or a project without the fact that one would need to know. English only. Doubtful cases
//! are not gaps.

use std::collections::HashSet;

use lango_domain::inquiries::InquiryPriority;
use lango_domain::knowledge::KnowledgeEntry;
use lango_text::sanitize::one_line;

use crate::turn_transcript::TurnTranscript;
use lango_text::{analyze, analyze_query};

/// Most bytes of a request that are analyzed; text pasted after it is data.
const MAX_BYTES: usize = 2_000;
const MAX_REASON_LEN: usize = 120;

const POSSESSIVES: [&str; 2] = ["my", "our"];
/// Relations to people and animals that have a name.
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
/// Words after "the usual" that are not worth asking about.
const VAGUE_WORDS: [&str; 12] = [
    "way", "thing", "things", "stuff", "suspects", "one", "ones", "case", "rules", "please", "and",
    "or",
];
/// Words by which a sentence states the missing fact itself.
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

/// Missing knowledge that is worth asking about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub topic: String,
    pub question: String,
    pub why: String,
    pub priority: InquiryPriority,
}

/// The terms of all knowledge entries.
pub(super) struct KnownTopics(Vec<HashSet<String>>);

impl KnownTopics {
    pub fn from_entries(entries: &[KnowledgeEntry]) -> Self {
        let words = |entry: &KnowledgeEntry| {
            let text = format!("{} {} {}", entry.key, entry.tags.join(" "), entry.content);
            analyze(&text).into_iter().collect()
        };
        Self(entries.iter().map(words).collect())
    }

    /// Returns true if one entry contains every word of a topic.
    pub fn covers(&self, topic: &str) -> bool {
        let words = analyze_query(topic);
        let has_all_words = |entry: &HashSet<String>| {
            words
                .iter()
                .all(|word| word.iter().any(|term| entry.contains(term)))
        };
        !words.is_empty() && self.0.iter().any(has_all_words)
    }
}

/// Finds the gaps in a turn.
pub(super) fn find_gaps(turn: &TurnTranscript, known: &KnownTopics) -> Vec<Gap> {
    let request = first_paragraph(&turn.request);
    let words = parse_words(request);
    let rules: [GapRule; 3] = [relation_gap, preference_gap, project_gap];
    let mut gaps = Vec::new();
    for at in 0..words.len() {
        for (topic, question) in rules.iter().filter_map(|rule| rule(&words, at)) {
            let why = format!("the user said “{}”", excerpt(request));
            gaps.push(Gap {
                topic,
                question,
                why,
                priority: InquiryPriority::Medium,
            });
        }
    }
    gaps.extend(unanswered_gap(request, &words, turn.answer.as_deref()));
    gaps.retain(|gap| !known.covers(&gap.topic));
    let mut topics = HashSet::new();
    gaps.retain(|gap| topics.insert(gap.topic.clone()));
    gaps
}

/// Returns the topic and the question of a gap that begins at a word.
type GapRule = fn(&[GapWord<'_>], usize) -> Option<(String, String)>;

struct GapWord<'a> {
    /// The word without surrounding punctuation.
    plain: &'a str,
    /// The word in lower case, without `'s`.
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
            let lowercase = plain.to_lowercase();
            let bare = lowercase
                .strip_suffix("'s")
                .or_else(|| lowercase.strip_suffix("’s"));
            Some(GapWord {
                plain,
                has_genitive: bare.is_some(),
                ends_clause: raw[end..].contains([',', '.', ';', ':', '!', '?', ')']),
                is_quoted: raw.starts_with(['"', '“', '\'', '`']),
                lowercase: bare.unwrap_or(&lowercase).to_owned(),
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

/// Matches "my sister" without her name.
fn relation_gap(words: &[GapWord<'_>], at: usize) -> Option<(String, String)> {
    let [possessive, relation, ..] = words.get(at..)? else {
        return None;
    };
    if !POSSESSIVES.contains(&possessive.lowercase.as_str())
        || !NAMED_RELATIONS.contains(&relation.lowercase.as_str())
        || possessive.ends_clause
    {
        return None;
    }
    let next = words.get(at + 2).filter(|_| !relation.ends_clause);
    let is_answered = next.is_some_and(|next| {
        STATEMENT_WORDS.contains(&next.lowercase.as_str())
            || (!relation.has_genitive && is_capitalized(next.plain))
    });
    let relation = &relation.lowercase;
    (!is_answered).then(|| (relation.clone(), format!("What is your {relation}'s name?")))
}

/// Matches "my favourite tea" and "the usual server".
fn preference_gap(words: &[GapWord<'_>], at: usize) -> Option<(String, String)> {
    let [owner, preference, thing, ..] = words.get(at..)? else {
        return None;
    };
    let is_owned = POSSESSIVES.contains(&owner.lowercase.as_str())
        || (owner.lowercase == "the" && preference.lowercase == "usual");
    if !is_owned
        || !PREFERENCE_WORDS.contains(&preference.lowercase.as_str())
        || preference.ends_clause
        || owner.ends_clause
    {
        return None;
    }
    let is_vague = VAGUE_WORDS.contains(&thing.lowercase.as_str())
        || STATEMENT_WORDS.contains(&thing.lowercase.as_str());
    let is_answered = !thing.ends_clause
        && words.get(at + 3).is_some_and(|next| {
            STATEMENT_WORDS.contains(&next.lowercase.as_str()) || is_capitalized(next.plain)
        });
    if is_vague || is_answered || thing.has_genitive {
        return None;
    }
    let (preference, thing) = (&preference.lowercase, &thing.lowercase);
    let question = match preference.as_str() {
        "usual" => format!("Which {thing} do you usually mean?"),
        _ => format!("What is your {preference} {thing}?"),
    };
    Some((format!("{preference} {thing}"), question))
}

/// Matches "project Falcon" and "the Falcon project".
fn project_gap(words: &[GapWord<'_>], at: usize) -> Option<(String, String)> {
    let word = words.get(at).filter(|word| word.lowercase == "project")?;
    let is_name = |word: &&GapWord<'_>| {
        let is_common =
            ["the", "my", "our", "this", "that", "a", "new"].contains(&word.lowercase.as_str());
        (is_capitalized(word.plain) || word.is_quoted) && !is_common
    };
    let name_after = words
        .get(at + 1)
        .filter(|_| !word.ends_clause)
        .filter(is_name);
    let name_before = || {
        let (article, name) = (words.get(at.checked_sub(2)?)?, words.get(at - 1)?);
        let is_article = ["the", "my", "our"].contains(&article.lowercase.as_str());
        (is_article && !name.ends_clause && is_name(&name)).then_some((name, at))
    };
    let (name, end) = name_after.map(|name| (name, at + 1)).or_else(name_before)?;
    let is_answered = !words[end].ends_clause
        && words
            .get(end + 1)
            .is_some_and(|next| ["is", "was", "means"].contains(&next.lowercase.as_str()));
    let topic = format!("project {}", name.lowercase);
    (!is_answered).then(|| (topic, format!("What is the project {} about?", name.plain)))
}

/// Matches a question of the user about their own affairs that was not answered.
fn unanswered_gap(request: &str, words: &[GapWord<'_>], answer: Option<&str>) -> Option<Gap> {
    let answer = answer?.to_lowercase();
    let asks = request.contains('?') || QUESTION_WORDS.contains(&words.first()?.lowercase.as_str());
    let is_own = words
        .iter()
        .any(|word| matches!(word.lowercase.as_str(), "my" | "our" | "we" | "us"));
    if !asks
        || !is_own
        || !UNANSWERED_PHRASES
            .iter()
            .any(|phrase| answer.contains(phrase))
    {
        return None;
    }
    let significant_words = analyze_query(request)
        .into_iter()
        .filter_map(|word| word.into_iter().next());
    let vague_words = ["know", "known", "tell", "find", "say"];
    let topic: Vec<String> = significant_words
        .filter(|word| !vague_words.contains(&word.as_str()))
        .take(4)
        .collect();
    let asked = excerpt(request);
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

    fn questions(request: &str, answer: Option<&str>, known: &[&str]) -> Vec<String> {
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
        let turn = TurnTranscript {
            seq: 1,
            turn: TurnId::new("t"),
            at: Timestamp::UNIX_EPOCH,
            through: 1,
            request: request.to_owned(),
            answer: answer.map(str::to_owned),
            request_label: Label::default(),
            label: Label::default(),
        };
        find_gaps(&turn, &KnownTopics::from_entries(&entries))
            .into_iter()
            .map(|gap| gap.question)
            .collect()
    }

    /// S37
    #[test]
    fn finds_gaps() {
        for (request, question) in [
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
            assert_eq!(
                questions(request, Some("Done."), &[]),
                [question],
                "{request}"
            );
        }
        let asked = questions(
            "when does our office open?",
            Some("Nothing was found."),
            &[],
        );
        assert!(asked[0].contains("when does our office open?"), "{asked:?}");
    }

    #[test]
    fn ignores_stated_and_known_topics() {
        for request in [
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
                questions(request, Some("I don't know"), &[]),
                Vec::<String>::new(),
                "{request}"
            );
        }
        assert!(
            questions(
                "write a card for my sister",
                None,
                &["My sister is called Anna."]
            )
            .is_empty()
        );
        assert!(
            questions("summarise this\n\nmy sister wrote", None, &[]).is_empty(),
            "pasted text is data"
        );
        assert!(questions(&"my sister ".repeat(100_000), None, &[]).len() == 1);
    }
}
