//! Groups that stand or fall together, and the cut that makes a history fit (B72).

use lango_domain::model::Message;
use lango_domain::tokens;

/// Stands where something was left out; also keeps the first message the user's.
const LEFT_OUT: &str = "[The beginning of this conversation is left out here.]";

/// Messages that are kept or left out together: a call never without its result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    messages: Vec<Message>,
    /// The request at hand is never cut.
    pinned: bool,
}

impl Group {
    pub fn of(messages: Vec<Message>) -> Self {
        Self { messages, pinned: false }
    }

    pub fn user(text: String) -> Self {
        Self::of(vec![Message::User(text)])
    }

    pub fn pinned_if(mut self, pinned: bool) -> Self {
        self.pinned = pinned;
        self
    }

    /// More for the same message of the user's.
    pub fn extend_user(&mut self, more: &str) {
        if let Some(Message::User(text)) = self.messages.last_mut() {
            text.push_str("\n\n");
            text.push_str(more);
        }
    }

    fn bytes(&self) -> usize {
        self.texts().map(|text| text.len() + 16).sum()
    }

    fn tokens(&self) -> usize {
        self.texts().map(|text| tokens::estimate(&text) + 4).sum()
    }

    fn texts(&self) -> impl Iterator<Item = String> {
        self.messages.iter().flat_map(|message| match message {
            Message::User(text) => vec![text.clone()],
            Message::Assistant { thoughts, text, calls } => {
                let thoughts = thoughts.iter().map(|thought| format!("{} {:?}", thought.text, thought.seal));
                let calls = calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments));
                std::iter::once(text.clone()).chain(thoughts).chain(calls).collect()
            }
            Message::Results(results) => {
                results.iter().map(|result| format!("{} {}", result.id, result.content)).collect()
            }
        })
    }
}

/// Leaves out the oldest groups until the rest fits. The cut moves in steps of a quarter of the budget, so that the
/// beginning of consecutive requests stays the same for a while (B40).
pub(super) fn fit(groups: Vec<Group>, budget: usize) -> Vec<Message> {
    // No text has more tokens than bytes: most histories need no counting.
    if groups.iter().map(Group::bytes).sum::<usize>() <= budget {
        return flatten(groups);
    }
    let weights: Vec<usize> = groups.iter().map(Group::tokens).collect();
    let total: usize = weights.iter().sum();
    if total <= budget {
        return flatten(groups);
    }
    let step = (budget / 4).max(1);
    let mut excess = (total - budget).div_ceil(step) * step;
    let mut kept = vec![Group::user(LEFT_OUT.to_owned())];
    for (group, weight) in groups.into_iter().zip(weights) {
        if excess > 0 && !group.pinned {
            excess = excess.saturating_sub(weight);
        } else {
            kept.push(group);
        }
    }
    flatten(kept)
}

fn flatten(groups: Vec<Group>) -> Vec<Message> {
    groups.into_iter().flat_map(|group| group.messages).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_domain::event::CallId;
    use lango_domain::model::{Call, CallResult};

    fn step(n: usize) -> Group {
        let id = CallId::new(format!("c{n}"));
        let call = Call { id: id.clone(), name: "fs_read".into(), arguments: serde_json::json!({ "n": n }) };
        let result = CallResult { id, name: "fs_read".into(), ok: true, content: "word ".repeat(100) };
        let calls = Message::Assistant { thoughts: vec![], text: String::new(), calls: vec![call] };
        Group::of(vec![calls, Message::Results(vec![result])])
    }

    fn history(steps: usize) -> Vec<Group> {
        let request = Group::user("the request".into()).pinned_if(true);
        (0..steps).map(step).chain([request]).chain((steps..steps + 2).map(step)).collect()
    }

    /// B72
    #[test]
    fn calls_and_results_are_cut_together_and_the_request_stays() {
        for budget in (10..4_000).step_by(37) {
            let messages = fit(history(20), budget);
            assert!(messages.contains(&Message::User("the request".into())));
            for pair in messages.windows(2) {
                let is_call = matches!(&pair[0], Message::Assistant { calls, .. } if !calls.is_empty());
                assert_eq!(is_call, matches!(pair[1], Message::Results(_)), "budget {budget}");
            }
        }
    }

    #[test]
    fn what_fits_is_left_alone() {
        let whole = flatten(history(5));
        assert_eq!(fit(history(5), 1_000_000), whole);
        assert_eq!(fit(history(5), 1_200), whole, "counted, not guessed from bytes");
    }

    /// B40
    #[test]
    fn the_cut_moves_in_steps() {
        let first_kept = |steps| fit(history(steps), 2_000).get(1).cloned();
        let cuts: Vec<_> = (20..40).map(first_kept).collect();
        let moves = cuts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((1..=8).contains(&moves), "{moves} moves in 19 turns");
    }
}
