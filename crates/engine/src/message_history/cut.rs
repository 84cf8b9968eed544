//! Groups that stand or fall together, and the cut that makes a history fit (B72).

use lango_domain::markers::{HISTORY_TRUNCATED_MARKER, STEPS_TRUNCATED_MARKER};
use lango_domain::model::{Message, ToolCallResult};
use lango_domain::token_estimate;

use super::TokenBudget;
use crate::tool_execution::truncate_middle;

/// Messages that are kept or left out together: a call never without its result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MessageGroup {
    messages: Vec<Message>,
    age: GroupAge,
}

/// What may be left out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupAge {
    /// Of an earlier turn.
    Past,
    /// A step of the work at hand.
    Current,
    /// The request at hand, which is never cut.
    Request,
}

impl MessageGroup {
    pub fn new(messages: Vec<Message>, age: GroupAge) -> Self {
        Self { messages, age }
    }

    pub fn user(text: String, age: GroupAge) -> Self {
        Self::new(vec![Message::User(text)], age)
    }

    /// More for the same message of the user's.
    pub fn extend_user(&mut self, more: &str) {
        if let Some(Message::User(text)) = self.messages.last_mut() {
            text.push_str("\n\n");
            text.push_str(more);
        }
    }

    /// No result of the group is longer than its share of `most` bytes: one reply's results always fit.
    fn truncate_results(&mut self, most: usize) {
        for message in &mut self.messages {
            if let Message::Results(results) = message {
                let share = (most / results.len().max(1)).max(200);
                for result in results
                    .iter_mut()
                    .filter(|result| result.content.len() > share)
                {
                    result.content = truncate_middle(std::mem::take(&mut result.content), share);
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

    /// What was called, and whether it worked.
    fn call_summaries(&self) -> Vec<String> {
        let results = self.messages.iter().filter_map(|message| match message {
            Message::Results(results) => Some(results),
            _ => None,
        });
        let word = |result: &ToolCallResult| {
            format!(
                "{} {}",
                result.name,
                if result.ok { "ok" } else { "failed" }
            )
        };
        results.flatten().map(word).collect()
    }
}

/// A message by some measure of its texts, and a little for what holds them.
pub(crate) fn measure(message: &Message, of: &dyn Fn(&str) -> usize) -> usize {
    const MESSAGE_OVERHEAD: usize = 8;
    match message {
        Message::User(text) => of(text) + MESSAGE_OVERHEAD,
        Message::Assistant {
            thoughts,
            text,
            calls,
        } => {
            let thoughts: usize = thoughts
                .iter()
                .map(|thought| {
                    of(&thought.text)
                        + thought
                            .seal
                            .as_ref()
                            .map_or(0, |seal| of(&seal.to_string()))
                })
                .sum();
            let calls: usize = calls
                .iter()
                .map(|call| {
                    of(call.id.as_str())
                        + of(&call.name)
                        + of(&call.arguments.to_string())
                        + MESSAGE_OVERHEAD
                })
                .sum();
            of(text) + thoughts + calls + MESSAGE_OVERHEAD
        }
        Message::Results(results) => results
            .iter()
            .map(|result| of(result.id.as_str()) + of(&result.content) + MESSAGE_OVERHEAD)
            .sum::<usize>(),
    }
}

/// Makes the history fit. Earlier turns go first, oldest first, in steps of a quarter of the budget, so that the
/// beginning of consecutive requests stays the same for a while (B40). Then steps of the work at hand, one by one, with
/// a mark in their place; never the last one: an agent always reads what it did last.
pub(super) fn fit_to_budget(mut groups: Vec<MessageGroup>, room: TokenBudget) -> Vec<Message> {
    let budget = room.messages;
    // As many bytes as there are tokens: about a third of the room goes to one reply's results.
    groups
        .iter_mut()
        .for_each(|group| group.truncate_results(room.results));
    // No text has more tokens than bytes: most histories need no counting.
    if groups.iter().map(MessageGroup::bytes).sum::<usize>() <= budget {
        return flatten(groups);
    }
    let mut weighed: Vec<(MessageGroup, usize)> = groups
        .into_iter()
        .map(|group| (group.tokens(), group))
        .map(|(w, g)| (g, w))
        .collect();
    let total: usize = weighed.iter().map(|(_, weight)| weight).sum();
    if total > budget {
        drop_past_turns(&mut weighed, total - budget, budget);
    }
    let rest: usize = weighed.iter().map(|(_, weight)| weight).sum();
    if rest > budget {
        drop_steps(&mut weighed, rest - budget);
    }
    flatten(weighed.into_iter().map(|(group, _)| group).collect())
}

fn drop_past_turns(groups: &mut Vec<(MessageGroup, usize)>, excess: usize, budget: usize) {
    let step = (budget / 4).max(1);
    let mut excess = excess.div_ceil(step) * step;
    let before = groups.len();
    groups.retain(|(group, weight)| {
        let goes = excess > 0 && group.age == GroupAge::Past;
        excess = if goes {
            excess.saturating_sub(*weight)
        } else {
            excess
        };
        !goes
    });
    if groups.len() < before {
        groups.insert(
            0,
            (
                MessageGroup::user(HISTORY_TRUNCATED_MARKER.to_owned(), GroupAge::Request),
                token_estimate::estimate(HISTORY_TRUNCATED_MARKER),
            ),
        );
    }
}

fn drop_steps(groups: &mut Vec<(MessageGroup, usize)>, mut excess: usize) {
    let last = groups.len().saturating_sub(1);
    let mut called = Vec::new();
    let mut place = None;
    let mut kept = Vec::new();
    for (at, (group, weight)) in std::mem::take(groups).into_iter().enumerate() {
        if excess > 0 && group.age == GroupAge::Current && at != last {
            excess = excess.saturating_sub(weight);
            place.get_or_insert(kept.len());
            called.extend(group.call_summaries());
        } else {
            kept.push((group, weight));
        }
    }
    if let Some(place) = place {
        let mark = format!(
            "{STEPS_TRUNCATED_MARKER}, done already: {}.]",
            called.join(", ")
        );
        kept.insert(place, (MessageGroup::user(mark, GroupAge::Request), 0));
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
            content: "word ".repeat(words),
        };
        let calls = Message::Assistant {
            thoughts: vec![],
            text: String::new(),
            calls: vec![call],
        };
        MessageGroup::new(vec![calls, Message::Results(vec![result])], age)
    }

    fn history(past: usize, current: usize) -> Vec<MessageGroup> {
        let request = MessageGroup::user("the request".into(), GroupAge::Request);
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
    fn calls_and_results_are_cut_together_and_the_request_stays() {
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
                        "what was done last is always read"
                    );
                }
            }
        }
    }

    #[test]
    fn work_that_is_left_out_leaves_a_mark() {
        let messages = fit(history(3, 9), 600);
        assert_eq!(messages[0], Message::User(HISTORY_TRUNCATED_MARKER.into()));
        assert_eq!(messages[1], Message::User("the request".into()));
        assert!(
            matches!(&messages[2], Message::User(mark) if mark.starts_with("[Left out here, done already: tool_3 ok, tool_4 ok"))
        );
    }

    #[test]
    fn one_huge_result_is_shortened_not_lost() {
        let request = MessageGroup::user("the request".into(), GroupAge::Request);
        let messages = fit(vec![request, step(1, 50_000, GroupAge::Current)], 1_000);
        let Some(Message::Results(results)) = messages.last() else {
            panic!("the result is lost")
        };
        assert!(results[0].content.contains("bytes left out") && weight(&messages) <= 1_000);
    }

    #[test]
    fn what_fits_is_left_alone() {
        let whole = flatten(history(5, 2));
        assert_eq!(fit(history(5, 2), 1_000_000), whole);
        assert_eq!(
            fit(history(5, 2), 1_200),
            whole,
            "counted, not guessed from bytes"
        );
    }

    /// B40
    #[test]
    fn the_cut_moves_in_steps() {
        let first_kept = |past| fit(history(past, 1), 2_000).get(1).cloned();
        let cuts: Vec<_> = (20..40).map(first_kept).collect();
        let moves = cuts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((1..=8).contains(&moves), "{moves} moves in 19 turns");
    }
}
