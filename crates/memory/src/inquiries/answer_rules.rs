//! Recognizes answers with fixed rules when there is no language model.

use std::collections::HashSet;

use lango_domain::inquiries::Inquiry;
use lango_domain::knowledge::KnowledgeCategory;
use lango_text::sanitize::one_line;

use super::offer::count_shared_words;
use crate::request_detection::is_request;
use lango_text::{analyze, analyze_query};

/// Words that connect a topic with a statement about it.
const LINK_WORDS: [&str; 12] = [
    "is", "are", "was", "called", "named", "means", "ist", "heißt", "sind", "=", "am", "were",
];
/// Most words between the topic and a link word.
const MAX_WORDS_BETWEEN: usize = 3;
/// Maximum number of words in a reply; longer messages count as new requests.
const MAX_REPLY_WORDS: usize = 8;
const MAX_ANSWER: usize = 600;
/// First words of messages that are not answers, in addition to requests.
const NON_ANSWER_WORDS: [&str; 11] = [
    "ok", "okay", "yes", "no", "thanks", "thank", "hello", "hi", "hey", "later", "nothing",
];

/// An answer to a pending inquiry.
pub(super) struct RuleAnswer {
    pub answer: String,
    pub content: String,
}

/// Finds the answer to an inquiry in a message. A statement about the topic is an answer at any time;
/// a short reply only if the previous answer asked the question.
pub(super) fn find_answer(
    inquiry: &Inquiry,
    message: &str,
    previous_answer: Option<&str>,
) -> Option<RuleAnswer> {
    let message = message.trim().split("\n\n").next().unwrap_or_default();
    let stated = sentences(message).find(|sentence| states_topic(sentence, &inquiry.topic));
    if let Some(sentence) = stated {
        let answer = truncate(sentence);
        return Some(RuleAnswer {
            content: answer.clone(),
            answer,
        });
    }
    let was_asked = previous_answer.is_some_and(|answer| asks_about(answer, &inquiry.topic));
    (was_asked && is_reply(message)).then(|| {
        let answer = truncate(message);
        RuleAnswer {
            content: format!("{} {answer}", one_line(&inquiry.question)),
            answer,
        }
    })
}

/// Returns true if a text states something about a topic.
pub(super) fn is_stated(text: &str, topic: &str) -> bool {
    sentences(text).any(|sentence| states_topic(sentence, topic))
}

/// Returns the knowledge category of an answer about a topic.
pub(super) fn answer_category(topic: &str) -> KnowledgeCategory {
    match topic.split(' ').next() {
        Some("favourite" | "favorite" | "preferred" | "usual") => KnowledgeCategory::Preference,
        Some("project") => KnowledgeCategory::Definition,
        _ => KnowledgeCategory::Fact,
    }
}

fn truncate(text: &str) -> String {
    one_line(text).chars().take(MAX_ANSWER).collect()
}

/// Splits a text into sentences, each with its final punctuation mark.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['!', '?', '\n', ';'])
        .flat_map(|part| part.split_inclusive(". "))
        .map(str::trim)
}

/// Returns true for sentences such as "my sister is called Anna" or "Anna is my sister".
fn states_topic(sentence: &str, topic: &str) -> bool {
    let lowercase = sentence.to_lowercase().replace(['’', '\''], " ");
    let words: Vec<&str> = lowercase
        .split_whitespace()
        .map(|word| word.trim_matches([',', '.', '!', ':', '"', '“', '”']))
        .collect();
    let starts_without_answer = words
        .first()
        .is_none_or(|first| NON_ANSWER_WORDS.contains(first));
    if starts_without_answer || is_request(sentence) {
        return false;
    }
    let topic = analyze_query(topic);
    let is_topic = |word: &str| {
        let terms = analyze(word);
        topic
            .iter()
            .any(|alternatives| alternatives.iter().any(|term| terms.contains(term)))
    };
    let sentence_terms: HashSet<String> = analyze(&lowercase).into_iter().collect();
    let contains_topic = topic
        .iter()
        .all(|word| word.iter().any(|term| sentence_terms.contains(term)));
    let (Some(first), Some(last)) = (
        words.iter().position(|word| is_topic(word)),
        words.iter().rposition(|word| is_topic(word)),
    ) else {
        return false;
    };
    let is_link = |word: &&str| LINK_WORDS.contains(word);
    let link_after = words[last + 1..]
        .iter()
        .take(MAX_WORDS_BETWEEN)
        .position(is_link)
        .map(|at| last + 1 + at);
    let states_after = link_after.is_some_and(|link| link + 1 < words.len()) && first <= 4;
    let states_before =
        last + 1 == words.len() && words[..first].iter().rev().take(2).any(is_link) && first > 1;
    contains_topic && (states_after || states_before)
}

/// Returns true if an answer of the assistant contains a question about the topic.
fn asks_about(answer: &str, topic: &str) -> bool {
    sentences(answer)
        .filter(|sentence| sentence.ends_with('?'))
        .any(|question| count_shared_words(topic, &analyze(question).into_iter().collect()) > 0)
}

fn is_reply(message: &str) -> bool {
    let first = message
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let first = first.trim_matches(|c: char| !c.is_alphanumeric());
    let count = message.split_whitespace().count();
    (1..=MAX_REPLY_WORDS).contains(&count)
        && !sentences(message).any(is_request)
        && !first.is_empty()
        && !NON_ANSWER_WORDS.contains(&first)
}

#[cfg(test)]
pub(super) mod tests {
    use jiff::Timestamp;
    use lango_domain::event::{SessionId, TurnId};
    use lango_domain::inquiries::{Finder, InquiryPriority, InquiryStatus};

    use super::*;

    pub fn inquiry(topic: &str) -> Inquiry {
        Inquiry {
            id: 1,
            topic: topic.to_owned(),
            question: format!("What about your {topic}?"),
            why: String::new(),
            priority: InquiryPriority::Medium,
            found_by: Finder::Rule,
            status: InquiryStatus::Pending,
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            created: Timestamp::UNIX_EPOCH,
            offers: 0,
            offered: None,
            answer: None,
            knowledge_key: None,
            closed: None,
        }
    }

    fn content(topic: &str, message: &str, previous_answer: Option<&str>) -> Option<String> {
        find_answer(&inquiry(topic), message, previous_answer).map(|answer| answer.content)
    }

    /// S37
    #[test]
    fn statements_about_the_topic_are_answers() {
        for (topic, message) in [
            ("sister", "My sister is called Anna."),
            ("sister", "my sister's name is Anna"),
            ("sister", "Anna is my sister"),
            ("usual server", "the usual server is build-7"),
            ("project falcon", "The Falcon project is about birds"),
            ("favourite tea", "My favourite tea is oolong!"),
        ] {
            assert_eq!(
                content(topic, message, None).as_deref(),
                Some(message),
                "{message}"
            );
        }
        let message = "Thanks! My sister is called Anna. Please write the card.";
        assert_eq!(
            content("sister", message, None).as_deref(),
            Some("My sister is called Anna.")
        );
    }

    #[test]
    fn short_replies_answer_the_previous_question() {
        let asked = Some("The card is written. By the way: what is your sister's name?");
        let answer = content("sister", "Anna", asked);
        assert_eq!(answer.as_deref(), Some("What about your sister? Anna"));
        assert_eq!(
            content("sister", "Anna", Some("The card is written.")),
            None
        );
        assert_eq!(content("sister", "Anna", Some("Which colour?")), None);
        for no_answer in [
            "no",
            "read the file a.txt",
            "why?",
            "",
            "…",
            "thanks",
            "/quit",
            "forget it",
            "forget Anna",
            "please stop",
            "cancel that",
            "vergiss Anna",
            "olvida a Ana",
            "oublie Anne",
            "Anna을 잊어 줘",
        ] {
            assert_eq!(content("sister", no_answer, asked), None, "{no_answer}");
        }
    }

    #[test]
    fn other_messages_about_the_topic_are_not_answers() {
        for message in [
            "write another card for my sister",
            "is my sister called Anna?",
            "tell my sister that the party is at six",
            "what is my sister called",
            "forget that my sister is called Anna",
            "Please forget that my sister is called Anna.",
            "Lango, forget that Anna is my sister",
            "remember that my sister is called Anna",
            "can you delete that my sister is called Anna",
            "my sister",
            "my sister is",
        ] {
            assert_eq!(content("sister", message, None), None, "{message}");
        }
        assert_eq!(content("usual server", "the server is down", None), None);
    }
}
