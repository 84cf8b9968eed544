//! Approval questions and answers as text of A2A messages.

use lango_remote::a2a::Message;

/// Instructions for every reader of the task: the caller that answers need not be the one that
/// started it.
pub(super) const APPROVAL_INSTRUCTIONS: &str =
    "Answer yes or no with a token that has the scope `approve`, here or at /api/approvals.";
pub(super) const YES_OR_NO_INSTRUCTIONS: &str = "Answer yes or no.";
pub(super) const MISSING_SCOPE_INSTRUCTIONS: &str = "This token lacks the scope `approve`. Answer with a token that has it, here or at /api/approvals.";

/// Returns the text of an approval question. `shows` describes the call.
pub(super) fn format_question(shows: &str, instructions: &str) -> String {
    format!("Approval is needed for this: {shows}\n{instructions}")
}

/// Parses a message as yes or no. Returns `None` if it is not clearly one of them.
pub(super) fn parse_answer(message: &Message) -> Option<bool> {
    let text = message
        .texts()
        .collect::<Vec<_>>()
        .join(" ")
        .trim()
        .to_lowercase();
    match text.trim_end_matches(['.', '!']) {
        "yes" | "y" | "approve" | "approved" | "allow" | "ok" => Some(true),
        "no" | "n" | "deny" | "denied" | "reject" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_remote::a2a::{MessageId, Role};

    #[test]
    fn accepts_only_clear_answers() {
        let parse =
            |text: &str| parse_answer(&Message::text(MessageId::new("m"), Role::User, text));
        assert_eq!(
            (parse(" Yes. "), parse("NO"), parse("approve")),
            (Some(true), Some(false), Some(true))
        );
        for unclear in ["", "yes, but only the first", "no problem", "네"] {
            assert_eq!(parse(unclear), None, "{unclear}");
        }
    }
}
