//! The deliveries of a run that ends.

use jiff::Timestamp;
use lango_domain::Label;
use lango_domain::approval::ApprovalQuestion;
use lango_domain::automation::{
    DeliveryMessage, DeliveryOccasion, INBOX_TARGET, Job, JobAction, NewDelivery, Run, RunSpec,
    RunStep,
};
use lango_domain::event::SessionId;
use lango_text::sanitize::truncated_line;

const MAX_TITLE_CHARS: usize = 80;
/// The text of a result that is empty.
const NO_TEXT: &str = "It is done, and its result has no text.";
const MAX_QUESTION_CHARS: usize = 500;
/// The longest stored result, in bytes. The session has the whole answer.
const MAX_RESULT_BYTES: usize = 100_000;

/// The end of a run, as it is delivered.
pub(crate) struct RunReport<'a> {
    pub run: &'a Run,
    pub session: Option<SessionId>,
    pub label: &'a Label,
    pub at: Timestamp,
}

impl RunReport<'_> {
    /// Returns the deliveries of a result. That it is empty is said, so that the end is not silent.
    pub fn of_result(&self, result: &str) -> Vec<NewDelivery> {
        let result = match result.trim().is_empty() {
            true => NO_TEXT,
            false => result,
        };
        let title = match &self.run.spec.action {
            JobAction::Reminder { text } => truncated_line(text, MAX_TITLE_CHARS),
            JobAction::Prompt { .. } | JobAction::Workflow { .. } => {
                truncated_line(&self.run.name, MAX_TITLE_CHARS)
            }
        };
        let targets = or_inbox(&self.run.spec.deliver_to);
        self.to_all(
            DeliveryOccasion::Result,
            &targets,
            (title, result.to_owned()),
        )
    }

    /// Returns the deliveries of a failure, which is never silent.
    pub fn of_failure(&self, error: &str, result: Option<&str>) -> Vec<NewDelivery> {
        let title = truncated_line(&self.run.name, MAX_TITLE_CHARS);
        let text = match result.filter(|result| !result.trim().is_empty()) {
            Some(result) => format!("{error}\n\nWhat was done before:\n\n{result}"),
            None => error.to_owned(),
        };
        let targets = failure_targets(&self.run.spec);
        let content = (format!("Failed: {title}"), text);
        self.to_all(DeliveryOccasion::Failure, &targets, content)
    }

    fn to_all(
        &self,
        occasion: DeliveryOccasion,
        targets: &[String],
        (title, text): (String, String),
    ) -> Vec<NewDelivery> {
        let message = DeliveryMessage {
            from: self.run.name.clone(),
            title,
            text,
            session: self.session.clone(),
            label: self.label.clone(),
            workspace: self.run.spec.workspace.clone(),
        };
        let to_one = |target: &String| NewDelivery {
            run: Some(self.run.id),
            principal: self.run.principal.clone(),
            occasion,
            target: target.clone(),
            message: message.clone(),
            created: self.at,
        };
        targets.iter().map(to_one).collect()
    }
}

/// Returns the deliveries of a question about a call that no one allowed. They go where failures go.
pub(crate) fn question_notices(
    run: &Run,
    row: &RunStep,
    question: &ApprovalQuestion,
    at: Timestamp,
) -> Vec<NewDelivery> {
    let shown = truncated_line(&question.intent.shows, MAX_QUESTION_CHARS);
    let (id, step, session) = (run.id, &row.step, &question.session);
    let text = format!(
        "`{}` wants to call {}, which was not allowed when it was created:\n\n{shown}\n\n\
         `lango workflow approve {id} {step}` allows it, `lango workflow deny {id} {step}` does not. \
         Session: {session}",
        run.name, question.tool,
    );
    let message = DeliveryMessage {
        from: run.name.clone(),
        title: format!("Waits for approval: {}", run.name),
        text,
        session: Some(session.clone()),
        // A model wrote the arguments of the call, perhaps after it read a page.
        label: Label::untrusted(format!("a question of run {id}")),
        workspace: run.spec.workspace.clone(),
    };
    let to_one = |target: String| NewDelivery {
        run: Some(run.id),
        principal: run.principal.clone(),
        occasion: DeliveryOccasion::Notice,
        target,
        message: message.clone(),
        created: at,
    };
    failure_targets(&run.spec).into_iter().map(to_one).collect()
}

pub(crate) fn failure_targets(spec: &RunSpec) -> Vec<String> {
    or_inbox(&spec.failure_deliver_to)
}

fn or_inbox(targets: &[String]) -> Vec<String> {
    match targets.is_empty() {
        true => vec![INBOX_TARGET.to_owned()],
        false => targets.to_vec(),
    }
}

/// Returns a text that is short enough to be stored with a run.
pub(crate) fn capped(mut text: String) -> String {
    if text.len() > MAX_RESULT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_RESULT_BYTES));
        text.push_str("\n\n[The rest is in the session.]");
    }
    text
}

/// Returns the deliveries that tell the user that a job no longer runs.
pub(crate) fn schedule_failure(job: &Job, error: &str, at: Timestamp) -> Vec<NewDelivery> {
    let to_one = |target: String| NewDelivery {
        run: None,
        principal: job.principal.clone(),
        occasion: DeliveryOccasion::Failure,
        target,
        message: DeliveryMessage {
            from: job.name.clone(),
            title: format!("Stopped: {}", truncated_line(&job.name, MAX_TITLE_CHARS)),
            text: format!("The job no longer runs, because its schedule cannot be read: {error}."),
            session: None,
            label: Label::default(),
            workspace: job.spec.workspace.clone(),
        },
        created: at,
    };
    failure_targets(&job.spec).into_iter().map(to_one).collect()
}
