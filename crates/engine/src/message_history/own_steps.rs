//! An agent's own steps: a reply with its calls and their results forms one group.

use lango_domain::event::{Branch, CallId, EventBody, TransferOutcome};
use lango_domain::markers::{CALL_NOT_RUN, REJECT_MARKER, TRANSFER_TOOL};
use lango_domain::model::{Message, Thought, ToolCall, ToolCallResult};
use lango_domain::{Attachment, Content, ReadableKinds};
use serde_json::{Value, json};

use super::quote;
use super::truncate::{GroupAge, MessageGroup};
use crate::attachments;

/// Collects the events of one reply until they are complete.
pub(super) struct OwnSteps {
    readable: ReadableKinds,
    thoughts: Vec<Thought>,
    text: String,
    calls: Vec<OpenCall>,
    has_result: bool,
}

struct OpenCall {
    call: ToolCall,
    transfer: Option<OpenTransfer>,
    result: Option<(bool, Content)>,
}

/// The data that the result of a transfer is formatted from.
struct OpenTransfer {
    to: String,
    into: Branch,
    report_back: bool,
    report: Option<Content>,
}

impl OwnSteps {
    pub fn new(readable: ReadableKinds) -> Self {
        Self {
            readable,
            thoughts: Vec::new(),
            text: String::new(),
            calls: Vec::new(),
            has_result: false,
        }
    }

    /// Adds the next event and returns the groups that it completes. `report` is the content that a
    /// delegation concluded with.
    pub fn push(
        &mut self,
        body: &EventBody,
        report: Option<&Content>,
        age: GroupAge,
    ) -> Vec<MessageGroup> {
        let begins_reply = matches!(
            body,
            EventBody::Thought(_)
                | EventBody::Note { .. }
                | EventBody::ToolCall { .. }
                | EventBody::Transfer { .. }
        );
        let mut complete = Vec::new();
        if begins_reply && self.has_result {
            complete.extend(self.close(age));
        }
        match body {
            // Providers read no images in replies.
            EventBody::Answer(content) | EventBody::Report(content) => {
                complete.extend(self.close(age));
                complete.push(text_group(content.to_plain_text(), age));
            }
            EventBody::Rejected { reason } => {
                complete.extend(self.close(age));
                complete.push(text_group(format!("{REJECT_MARKER} {reason}"), age));
            }
            _ if begins_reply => self.add_to_reply(body, report),
            _ => self.add_result(body),
        }
        complete
    }

    /// Adds an event that is part of a reply: a thought, a note or a call.
    fn add_to_reply(&mut self, body: &EventBody, report: Option<&Content>) {
        match body {
            EventBody::Thought(thought) => self.thoughts.push(thought.clone()),
            EventBody::Note { text } => self.text.clone_from(text),
            EventBody::ToolCall { id, tool, args } => self.open_call(id, tool, args.clone(), None),
            EventBody::Transfer {
                id,
                to,
                task,
                report_back,
                into,
            } => {
                let args = transfer_arguments(to.as_str(), task.as_deref(), *report_back);
                let transfer = OpenTransfer {
                    to: to.to_string(),
                    into: into.clone(),
                    report_back: *report_back,
                    report: report.cloned(),
                };
                self.open_call(id, TRANSFER_TOOL, args, Some(transfer));
            }
            _ => {}
        }
    }

    /// Adds the result of a call or a transfer.
    fn add_result(&mut self, body: &EventBody) {
        match body {
            EventBody::ToolResult {
                id,
                ok,
                content,
                attachments,
                error,
                untrusted,
                advice,
                ..
            } => {
                let text = error.as_ref().map_or(content, |error| error);
                let output = |open: &OpenCall| match untrusted {
                    true => quote::output(&open.call.name, text),
                    false => text.clone(),
                };
                let attachments = without_positions(attachments);
                self.set_result(id, *ok, |open| Content {
                    text: with_advice(output(open), advice.as_deref()),
                    attachments,
                });
            }
            EventBody::TransferResult {
                id,
                outcome,
                detail,
                ..
            } => {
                let ok = *outcome == TransferOutcome::Answered;
                self.set_result(id, ok, |open| {
                    transfer_result(open.transfer.as_ref(), *outcome, detail)
                });
            }
            _ => {}
        }
    }

    /// Returns the reply collected so far. A call without a result is reported as interrupted (B72).
    pub fn close(&mut self, age: GroupAge) -> Option<MessageGroup> {
        let Self {
            thoughts,
            text,
            calls,
            ..
        } = std::mem::replace(self, Self::new(self.readable));
        if calls.is_empty() {
            return (!text.is_empty()).then(|| text_group(text, age));
        }
        let results = calls.iter().map(|open| {
            let (ok, content) = open.result.clone().unwrap_or((false, "interrupted".into()));
            ToolCallResult {
                id: open.call.id.clone(),
                name: open.call.name.clone(),
                ok,
                content,
            }
        });
        let results = Message::Results(results.collect());
        let calls = calls.into_iter().map(|open| open.call).collect();
        let reply = Message::Assistant {
            thoughts,
            text,
            calls,
        };
        Some(MessageGroup::new(vec![reply, results], age))
    }

    /// Returns true if an open call is a transfer into this branch.
    pub fn has_delegated_into(&self, branch: &Branch) -> bool {
        self.calls.iter().any(|open| {
            open.transfer
                .as_ref()
                .is_some_and(|transfer| transfer.into == *branch)
        })
    }

    fn open_call(
        &mut self,
        id: &CallId,
        name: &str,
        arguments: Value,
        transfer: Option<OpenTransfer>,
    ) {
        let call = ToolCall {
            id: id.clone(),
            name: name.to_owned(),
            arguments,
        };
        self.calls.push(OpenCall {
            call,
            transfer,
            result: None,
        });
    }

    fn set_result(&mut self, id: &CallId, ok: bool, content: impl FnOnce(&OpenCall) -> Content) {
        if let Some(open) = self.calls.iter_mut().find(|open| open.call.id == *id) {
            let content = attachments::replace_unreadable(&content(open), self.readable);
            open.result = Some((ok, content));
            self.has_result = true;
        }
    }
}

fn text_group(text: String, age: GroupAge) -> MessageGroup {
    let message = Message::Assistant {
        thoughts: Vec::new(),
        text,
        calls: Vec::new(),
    };
    MessageGroup::new(vec![message], age)
}

fn with_advice(output: String, advice: Option<&str>) -> String {
    match advice {
        Some(advice) => format!("{output}\n\n{}", quote::advice(advice)),
        None => output,
    }
}

fn transfer_arguments(to: &str, task: Option<&str>, report_back: bool) -> Value {
    let mut arguments = json!({ "agent_name": to });
    if let Some(task) = task {
        arguments["task"] = Value::from(task);
    }
    if report_back {
        arguments["report_back"] = Value::Bool(true);
    }
    arguments
}

fn transfer_result(
    transfer: Option<&OpenTransfer>,
    outcome: TransferOutcome,
    detail: &str,
) -> Content {
    let Some(transfer) = transfer else {
        return detail.into();
    };
    let to = &transfer.to;
    let (text, attachments) = match &transfer.report {
        Some(content) => (
            content.text.as_str(),
            without_positions(&content.attachments),
        ),
        None => ("", Vec::new()),
    };
    let report = || quote::report(to, text);
    let text = match outcome {
        TransferOutcome::Answered if transfer.report_back => report(),
        TransferOutcome::Answered => format!("{to} answered the user:\n{}", report()),
        TransferOutcome::Rejected => {
            format!("{to} gave the task back:\n{}", quote::report(to, detail))
        }
        TransferOutcome::Failed => format!("{to} failed:\n{}", quote::report(to, detail)),
        TransferOutcome::Cancelled if detail == CALL_NOT_RUN => detail.to_owned(),
        TransferOutcome::Cancelled => format!("{to} was stopped before it finished"),
    };
    Content { text, attachments }
}

/// Returns attachments that stand behind the text, which is quoted and so has other positions.
fn without_positions(attachments: &[Attachment]) -> Vec<Attachment> {
    let at_end = |attachment: &Attachment| Attachment {
        at: None,
        ..attachment.clone()
    };
    attachments.iter().map(at_end).collect()
}
