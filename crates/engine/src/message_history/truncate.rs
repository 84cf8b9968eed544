//! Groups of messages, and their truncation to the token budget (B72).

use lango_domain::markers::{HISTORY_TRUNCATED_MARKER, STEPS_TRUNCATED_MARKER};
use lango_domain::model::{Message, ToolCallResult};
use lango_domain::{Attachment, Content};
use lango_text::token_estimate;

use super::TokenBudget;
use crate::tool_execution::truncate_middle;

/// Messages that are kept or dropped together, so that a call always has its result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MessageGroup {
    messages: Vec<Message>,
    age: GroupAge,
}

/// The order in which groups are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupAge {
    /// Part of an earlier turn; dropped first.
    Past,
    /// A step of the current work.
    Current,
    /// The current request; never dropped.
    Request,
}

impl MessageGroup {
    pub fn new(messages: Vec<Message>, age: GroupAge) -> Self {
        Self { messages, age }
    }

    pub fn user(content: impl Into<Content>, age: GroupAge) -> Self {
        Self::new(vec![Message::User(content.into())], age)
    }

    /// Appends text to the user message.
    pub fn extend_user(&mut self, more: &str) {
        if let Some(Message::User(content)) = self.messages.last_mut() {
            content.push_paragraph(more);
        }
    }

    /// Truncates every result to its share of `max_bytes`, so that the results of one reply always fit.
    fn truncate_results(&mut self, max_bytes: usize) {
        for message in &mut self.messages {
            if let Message::Results(results) = message {
                let share = (max_bytes / results.len().max(1)).max(200);
                for result in results {
                    let text = std::mem::take(&mut result.content.text);
                    result.content.text = truncate_middle(text, share);
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        self.messages
            .iter()
            .map(|message| measure(message, &str::len))
            .sum()
    }

    fn tokens(&self) -> usize {
        self.messages
            .iter()
            .map(|message| measure(message, &token_estimate::estimate))
            .sum()
    }

    /// Returns the names of the called tools and whether each call succeeded.
    fn call_summaries(&self) -> Vec<String> {
        let results = self.messages.iter().filter_map(|message| match message {
            Message::Results(results) => Some(results),
            _ => None,
        });
        let summary = |result: &ToolCallResult| {
            format!(
                "{} {}",
                result.name,
                if result.ok { "ok" } else { "failed" }
            )
        };
        results.flatten().map(summary).collect()
    }
}

/// Measures the texts of a message with `size`, and adds a constant overhead.
pub(crate) fn measure(message: &Message, size: &dyn Fn(&str) -> usize) -> usize {
    const MESSAGE_OVERHEAD: usize = 8;
    match message {
        Message::User(content) => measure_content(content, size) + MESSAGE_OVERHEAD,
        Message::Assistant {
            thoughts,
            text,
            calls,
        } => {
            let thoughts = thoughts.iter().map(|thought| {
                let seal = thought.seal.as_ref();
                size(&thought.text) + seal.map_or(0, |seal| size(&seal.to_string()))
            });
            let calls = calls.iter().map(|call| {
                size(call.id.as_str())
                    + size(&call.name)
                    + size(&call.arguments.to_string())
                    + MESSAGE_OVERHEAD
            });
            size(text) + thoughts.sum::<usize>() + calls.sum::<usize>() + MESSAGE_OVERHEAD
        }
        Message::Results(results) => results
            .iter()
            .map(|result| {
                let content = measure_content(&result.content, size);
                size(result.id.as_str()) + content + MESSAGE_OVERHEAD
            })
            .sum(),
    }
}

fn measure_content(content: &Content, size: &dyn Fn(&str) -> usize) -> usize {
    let attachments = content.attachments.iter();
    size(&content.text) + attachments.map(Attachment::estimated_tokens).sum::<usize>()
}

/// Drops groups until the history fits. Earlier turns are dropped first, oldest first, in steps of a
/// quarter of the budget, so that consecutive requests share a prefix for a while (B40). Then steps
/// of the current work are dropped one by one and replaced by a marker. The last step always stays:
/// an agent always reads what it did last.
pub(super) fn fit_to_budget(mut groups: Vec<MessageGroup>, limits: TokenBudget) -> Vec<Message> {
    let budget = limits.messages;
    // One byte per token: the results of one reply take about a third of the budget.
    groups
        .iter_mut()
        .for_each(|group| group.truncate_results(limits.results));
    // No text has more tokens than bytes, so most histories need no token count.
    if groups.iter().map(MessageGroup::bytes).sum::<usize>() <= budget {
        return flatten(groups);
    }
    let mut weighed: Vec<(MessageGroup, usize)> = groups
        .into_iter()
        .map(|group| {
            let tokens = group.tokens();
            (group, tokens)
        })
        .collect();
    let total: usize = weighed.iter().map(|(_, tokens)| tokens).sum();
    if total > budget {
        drop_past_turns(&mut weighed, total - budget, budget);
    }
    let rest: usize = weighed.iter().map(|(_, tokens)| tokens).sum();
    if rest > budget {
        drop_steps(&mut weighed, rest - budget);
    }
    flatten(weighed.into_iter().map(|(group, _)| group).collect())
}

fn drop_past_turns(groups: &mut Vec<(MessageGroup, usize)>, excess: usize, budget: usize) {
    let step = (budget / 4).max(1);
    let mut excess = excess.div_ceil(step) * step;
    let before = groups.len();
    groups.retain(|(group, tokens)| {
        let is_dropped = excess > 0 && group.age == GroupAge::Past;
        if is_dropped {
            excess = excess.saturating_sub(*tokens);
        }
        !is_dropped
    });
    if groups.len() < before {
        let marker = MessageGroup::user(HISTORY_TRUNCATED_MARKER.to_owned(), GroupAge::Request);
        let tokens = token_estimate::estimate(HISTORY_TRUNCATED_MARKER);
        groups.insert(0, (marker, tokens));
    }
}

fn drop_steps(groups: &mut Vec<(MessageGroup, usize)>, mut excess: usize) {
    let last = groups.len().saturating_sub(1);
    let mut summaries = Vec::new();
    let mut marker_index = None;
    let mut kept = Vec::new();
    for (index, (group, tokens)) in std::mem::take(groups).into_iter().enumerate() {
        if excess > 0 && group.age == GroupAge::Current && index != last {
            excess = excess.saturating_sub(tokens);
            marker_index.get_or_insert(kept.len());
            summaries.extend(group.call_summaries());
        } else {
            kept.push((group, tokens));
        }
    }
    if let Some(index) = marker_index {
        let marker = format!(
            "{STEPS_TRUNCATED_MARKER}, done already: {}.]",
            summaries.join(", ")
        );
        kept.insert(index, (MessageGroup::user(marker, GroupAge::Request), 0));
    }
    *groups = kept;
}

fn flatten(groups: Vec<MessageGroup>) -> Vec<Message> {
    groups
        .into_iter()
        .flat_map(|group| group.messages)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_domain::event::CallId;
    use lango_domain::model::ToolCall;

    fn step(n: usize, words: usize, age: GroupAge) -> MessageGroup {
        let id = CallId::new(format!("c{n}"));
        let call = ToolCall {
            id: id.clone(),
            name: format!("tool_{n}"),
            arguments: serde_json::json!({ "n": n }),
        };
        let result = ToolCallResult {
            id,
            name: format!("tool_{n}"),
            ok: true,
            content: "word ".repeat(words).into(),
        };
        let calls = Message::Assistant {
            thoughts: vec![],
            text: String::new(),
            calls: vec![call],
        };
        MessageGroup::new(vec![calls, Message::Results(vec![result])], age)
    }

    fn history(past: usize, current: usize) -> Vec<MessageGroup> {
        let request = MessageGroup::user("the request", GroupAge::Request);
        let steps = (past..past + current).map(|n| step(n, 100, GroupAge::Current));
        (0..past)
            .map(|n| step(n, 100, GroupAge::Past))
            .chain([request])
            .chain(steps)
            .collect()
    }

    fn fit(groups: Vec<MessageGroup>, budget: usize) -> Vec<Message> {
        super::fit_to_budget(
            groups,
            TokenBudget {
                messages: budget,
                results: budget,
            },
        )
    }

    fn weight(messages: &[Message]) -> usize {
        messages
            .iter()
            .map(|message| measure(message, &token_estimate::estimate))
            .sum()
    }

    /// B72
    #[test]
    fn drops_calls_with_their_results_and_keeps_the_request() {
        for budget in (400..5_000).step_by(37) {
            for current in [0, 1, 2, 9] {
                let messages = fit(history(20, current), budget);
                assert!(messages.contains(&Message::User("the request".into())));
                for pair in messages.windows(2) {
                    let is_call =
                        matches!(&pair[0], Message::Assistant { calls, .. } if !calls.is_empty());
                    assert_eq!(
                        is_call,
                        matches!(pair[1], Message::Results(_)),
                        "budget {budget}"
                    );
                }
                assert!(
                    weight(&messages) <= budget + 80,
                    "{} of {budget}",
                    weight(&messages)
                );
                if current > 0 {
                    assert!(
                        matches!(messages.last(), Some(Message::Results(_))),
                        "the last step is always kept"
                    );
                }
            }
        }
    }

    #[test]
    fn dropped_steps_leave_a_marker() {
        let messages = fit(history(3, 9), 600);
        assert_eq!(messages[0], Message::User(HISTORY_TRUNCATED_MARKER.into()));
        assert_eq!(messages[1], Message::User("the request".into()));
        assert!(
            matches!(&messages[2], Message::User(marker) if marker.text.starts_with("[Left out here, done already: tool_3 ok, tool_4 ok"))
        );
    }

    #[test]
    fn truncates_one_huge_result() {
        let request = MessageGroup::user("the request", GroupAge::Request);
        let messages = fit(vec![request, step(1, 50_000, GroupAge::Current)], 1_000);
        let Some(Message::Results(results)) = messages.last() else {
            panic!("the result is lost")
        };
        assert!(results[0].content.text.contains("bytes left out") && weight(&messages) <= 1_000);
    }

    #[test]
    fn keeps_a_history_that_fits() {
        let whole = flatten(history(5, 2));
        assert_eq!(fit(history(5, 2), 1_000_000), whole);
        assert_eq!(
            fit(history(5, 2), 1_200),
            whole,
            "tokens are counted, not derived from bytes"
        );
    }

    /// B40
    #[test]
    fn truncation_moves_in_steps() {
        let first_kept = |past| fit(history(past, 1), 2_000).get(1).cloned();
        let cuts: Vec<_> = (20..40).map(first_kept).collect();
        let moves = cuts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((1..=8).contains(&moves), "{moves} moves in 19 turns");
    }
}
