//! Answers that set rules recognise where there is no language model.

use std::collections::HashSet;

use lango_domain::inquiries::Inquiry;
use lango_domain::knowledge::KnowledgeCategory;
use lango_domain::text::one_line;

use super::offer::count_shared_words;
use crate::lexical::{analyze, analyze_query};
use crate::request_detection::is_request;

/// What says something about the words before it.
const LINK_WORDS: [&str; 12] = [
    "is", "are", "was", "called", "named", "means", "ist", "heißt", "sind", "=", "am", "were",
];
/// So many words may stand between the topic and what says something about it.
const MAX_WORDS_BETWEEN: usize = 3;
/// A longer reply to a question is a new request.
const MAX_REPLY_WORDS: usize = 8;
const MAX_ANSWER: usize = 600;
/// How replies begin that answer nothing, beside requests.
const NON_ANSWER_WORDS: [&str; 11] = [
    "ok", "okay", "yes", "no", "thanks", "thank", "hello", "hi", "hey", "later", "nothing",
];

/// What the user said to a pending inquiry, in words that can be kept.
pub(super) struct RuleAnswer {
    pub answer: String,
    pub content: String,
}

/// A statement about the topic answers it whenever it is made; a short reply only right after it was asked.
pub(super) fn find_answer(
    inquiry: &Inquiry,
    said: &str,
    before: Option<&str>,
) -> Option<RuleAnswer> {
    let said = said.trim().split("\n\n").next().unwrap_or_default();
    let stated = sentences(said).find(|sentence| states_topic(sentence, &inquiry.topic));
    if let Some(sentence) = stated {
        let answer = truncate(sentence);
        return Some(RuleAnswer {
            content: answer.clone(),
            answer,
        });
    }
    let was_asked = before.is_some_and(|answer| asks_about(answer, &inquiry.topic));
    (was_asked && is_reply(said)).then(|| {
        let answer = truncate(said);
        RuleAnswer {
            content: format!("{} {answer}", one_line(&inquiry.question)),
            answer,
        }
    })
}

/// Whether a text says something about a topic.
pub(super) fn is_stated(said: &str, topic: &str) -> bool {
    sentences(said).any(|sentence| states_topic(sentence, topic))
}

/// What kind of knowledge an answer is.
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

/// With the mark that ends each.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['!', '?', '\n', ';'])
        .flat_map(|part| part.split_inclusive(". "))
        .map(str::trim)
}

/// "my sister is called Anna", "Anna is my sister".
fn states_topic(sentence: &str, topic: &str) -> bool {
    let small = sentence.to_lowercase().replace(['’', '\''], " ");
    let words: Vec<&str> = small
        .split_whitespace()
        .map(|word| word.trim_matches([',', '.', '!', ':', '"', '“', '”']))
        .collect();
    let begins_otherwise = words
        .first()
        .is_none_or(|first| NON_ANSWER_WORDS.contains(first));
    if begins_otherwise || is_request(sentence) {
        return false;
    }
    let topic = analyze_query(topic);
    let is_topic = |word: &str| {
        let terms = analyze(word);
        topic
            .iter()
            .any(|alternatives| alternatives.iter().any(|one| terms.contains(one)))
    };
    let named: HashSet<String> = analyze(&small).into_iter().collect();
    let names_all = topic
        .iter()
        .all(|word| word.iter().any(|one| named.contains(one)));
    let (Some(first), Some(last)) = (
        words.iter().position(|word| is_topic(word)),
        words.iter().rposition(|word| is_topic(word)),
    ) else {
        return false;
    };
    let is_link = |word: &&str| LINK_WORDS.contains(word);
    let behind = words[last + 1..]
        .iter()
        .take(MAX_WORDS_BETWEEN)
        .position(is_link)
        .map(|at| last + 1 + at);
    let says_behind = behind.is_some_and(|link| link + 1 < words.len()) && first <= 4;
    let says_before =
        last + 1 == words.len() && words[..first].iter().rev().take(2).any(is_link) && first > 1;
    names_all && (says_behind || says_before)
}

/// Whether an answer of the team's asked for it.
fn asks_about(answer: &str, topic: &str) -> bool {
    sentences(answer)
        .filter(|sentence| sentence.ends_with('?'))
        .any(|question| count_shared_words(topic, &analyze(question).into_iter().collect()) > 0)
}

fn is_reply(said: &str) -> bool {
    let first = said
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let first = first.trim_matches(|c: char| !c.is_alphanumeric());
    let count = said.split_whitespace().count();
    (1..=MAX_REPLY_WORDS).contains(&count)
        && !sentences(said).any(is_request)
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

    fn content(topic: &str, said: &str, before: Option<&str>) -> Option<String> {
        find_answer(&inquiry(topic), said, before).map(|said| said.content)
    }

    /// S37
    #[test]
    fn statements_about_the_topic_answer_it() {
        for (topic, said) in [
            ("sister", "My sister is called Anna."),
            ("sister", "my sister's name is Anna"),
            ("sister", "Anna is my sister"),
            ("usual server", "the usual server is build-7"),
            ("project falcon", "The Falcon project is about birds"),
            ("favourite tea", "My favourite tea is oolong!"),
        ] {
            assert_eq!(content(topic, said, None).as_deref(), Some(said), "{said}");
        }
        let both = "Thanks! My sister is called Anna. Please write the card.";
        assert_eq!(
            content("sister", both, None).as_deref(),
            Some("My sister is called Anna.")
        );
    }

    #[test]
    fn short_replies_answer_what_was_just_asked() {
        let asked = Some("The card is written. By the way: what is your sister's name?");
        let told = content("sister", "Anna", asked);
        assert_eq!(told.as_deref(), Some("What about your sister? Anna"));
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
    fn other_words_about_it_are_no_answers() {
        for said in [
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
            assert_eq!(content("sister", said, None), None, "{said}");
        }
        assert_eq!(content("usual server", "the server is down", None), None);
    }
}
